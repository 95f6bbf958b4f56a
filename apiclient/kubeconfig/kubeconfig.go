package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leatproject/leat/apiclient"
)

// DefaultNamespace is the namespace of a context that names none.
const DefaultNamespace = "default"

// Options say where to look and what to override. The zero value is what kubectl does without flags.
type Options struct {
	// Path is the one file to read, which must exist. Empty means the files that KUBECONFIG lists, else ~/.kube/config,
	// of which those that do not exist are passed over.
	Path string
	// Context is the context to use instead of the current one.
	Context string
	// Namespace replaces the context's.
	Namespace string
	// Server replaces the cluster's URL. With it no file is needed at all.
	Server string
	// Token is sent as bearer token, and nothing else of what the user's entry says about credentials is used: a client
	// certificate beside it would be who the server sees.
	Token apiclient.Secret
	// CAFile replaces the cluster's authorities.
	CAFile string
	// Insecure accepts any certificate of the server.
	Insecure bool
}

// Load returns the configuration and the namespace that a kubeconfig says, or, where there is no file and the program
// runs in a pod, those of the pod. What is wrong in a file is an *Error that names the file and the field. The files of
// certificates and tokens are not opened before apiclient.New.
// It corresponds to clientcmd.NewNonInteractiveDeferredLoadingClientConfig of client-go.
func Load(o Options) (apiclient.Config, string, error) {
	m, err := readAll(o.Path)
	if err != nil {
		return apiclient.Config{}, "", err
	}
	cfg, namespace, err := m.resolve(o)
	if err != nil {
		return apiclient.Config{}, "", err
	}
	o.override(&cfg)
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return cfg, namespace, nil
}

// override lets the options win over what was read.
func (o Options) override(c *apiclient.Config) {
	if o.Server != "" {
		c.Host = o.Server
	}
	if !o.Token.IsZero() {
		c.BearerToken, c.BearerTokenFile, c.Username, c.Password = o.Token, "", "", apiclient.Secret{}
		c.TLS.CertData, c.TLS.CertFile, c.TLS.KeyData, c.TLS.KeyFile = nil, "", apiclient.Secret{}, ""
	}
	if o.CAFile != "" {
		c.TLS.CAFile, c.TLS.CAData, c.TLS.Insecure = o.CAFile, nil, false
	}
	if o.Insecure {
		c.TLS.CAFile, c.TLS.CAData, c.TLS.Insecure = "", nil, true
	}
}

// readAll reads one file, or those of the list that exist. Without any the result has no paths.
func readAll(path string) (*merged, error) {
	m := newMerged()
	if path != "" {
		return m, m.add(path)
	}
	for _, p := range defaultPaths() {
		if err := m.add(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return m, nil
}

// defaultPaths are the files of KUBECONFIG, each once, or the one in the home directory.
func defaultPaths() []string {
	var paths []string
	for _, p := range filepath.SplitList(os.Getenv("KUBECONFIG")) {
		if p != "" && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if len(paths) > 0 {
		return paths
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".kube", "config")}
}

// resolve follows the context to its cluster and its user.
func (m *merged) resolve(o Options) (apiclient.Config, string, error) {
	name := o.Context
	if name == "" {
		name = m.currentContext
	}
	if name == "" && o.Server != "" {
		return apiclient.Config{}, "", nil // the options say all that is needed
	}
	if len(m.paths) == 0 && name == "" {
		return inCluster()
	}
	if name == "" {
		return apiclient.Config{}, "", m.errorf("current-context", "it is empty; the contexts are %s", names(m.contexts))
	}
	ctx, ok := m.contexts[name]
	if !ok {
		return apiclient.Config{}, "", m.errorf("", "there is no context %q; the contexts are %s", name, names(m.contexts))
	}
	cfg := apiclient.Config{}
	if err := m.applyCluster(&cfg, name, ctx, o); err != nil {
		return apiclient.Config{}, "", err
	}
	if err := m.applyUser(&cfg, name, ctx, o); err != nil {
		return apiclient.Config{}, "", err
	}
	return cfg, ctx.Namespace, nil
}

func inCluster() (apiclient.Config, string, error) {
	cfg, err := apiclient.InCluster()
	if errors.Is(err, apiclient.ErrNotInCluster) {
		return cfg, "", &Error{
			Path: strings.Join(defaultPaths(), string(filepath.ListSeparator)),
			Err:  errors.New("there is no such file, and this is not a pod either: name a kubeconfig or a server"),
		}
	}
	return cfg, apiclient.InClusterNamespace(), err
}

func (m *merged) applyCluster(cfg *apiclient.Config, context string, ctx contextInfo, o Options) error {
	c, ok := m.clusters[ctx.Cluster]
	if !ok && (ctx.Cluster != "" || o.Server == "") {
		return &Error{
			Path: ctx.origin, Field: "contexts[" + context + "].cluster",
			Err: fmt.Errorf("there is no cluster %q; the clusters are %s", ctx.Cluster, names(m.clusters)),
		}
	}
	field := "clusters[" + ctx.Cluster + "]"
	if c.Server == "" && o.Server == "" {
		return &Error{Path: c.origin, Field: field + ".server", Err: errors.New("it is empty")}
	}
	ca, err := decode(c.origin, field+".certificate-authority-data", c.CAData)
	if err != nil {
		return err
	}
	cfg.Host, cfg.DisableCompression = c.Server, c.DisableCompression
	if cfg.ProxyURL, err = parseProxy(c.origin, field+".proxy-url", c.ProxyURL); err != nil {
		return err
	}
	cfg.TLS.CAData, cfg.TLS.CAFile = ca, beside(c.origin, c.CA)
	cfg.TLS.Insecure, cfg.TLS.ServerName = c.Insecure, c.TLSServerName
	return nil
}

func (m *merged) applyUser(cfg *apiclient.Config, context string, ctx contextInfo, o Options) error {
	u, ok := m.users[ctx.User]
	if !ok && ctx.User != "" {
		return &Error{
			Path: ctx.origin, Field: "contexts[" + context + "].user",
			Err: fmt.Errorf("there is no user %q; the users are %s", ctx.User, names(m.users)),
		}
	}
	field := "users[" + ctx.User + "]"
	if o.Token.IsZero() {
		if err := u.supported(field); err != nil {
			return err
		}
	}
	cert, err := decode(u.origin, field+".client-certificate-data", u.CertData)
	if err != nil {
		return err
	}
	key, err := decode(u.origin, field+".client-key-data", u.KeyData)
	if err != nil {
		return err
	}
	cfg.BearerToken, cfg.BearerTokenFile = apiclient.NewSecret(u.Token), beside(u.origin, u.TokenFile)
	cfg.Username, cfg.Password = u.Username, apiclient.NewSecret(u.Password)
	cfg.TLS.CertData, cfg.TLS.CertFile = cert, beside(u.origin, u.Cert)
	cfg.TLS.KeyData, cfg.TLS.KeyFile = apiclient.NewSecret(string(key)), beside(u.origin, u.Key)
	cfg.Impersonate = apiclient.Impersonate{UserName: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra}
	return nil
}

// supported refuses the two ways to get credentials that are not read from the file. (Exec plugins have their place in
// a package beside this one, which an agent links only if it calls it.)
func (u user) supported(field string) error {
	switch {
	case u.Exec != nil:
		return &Error{
			Path: u.origin, Field: field + ".exec",
			Err: fmt.Errorf("the credentials come from the exec plugin %q, and this version of leat does not run exec plugins; give a token instead", u.Exec.Command),
		}
	case u.AuthProvider != nil:
		return &Error{
			Path: u.origin, Field: field + ".auth-provider",
			Err: fmt.Errorf("the credentials come from the provider %q; Kubernetes 1.26 gave up auth-provider for exec", u.AuthProvider.Name),
		}
	}
	return nil
}

func (m *merged) errorf(field, format string, a ...any) error {
	return &Error{Path: m.path(), Field: field, Err: fmt.Errorf(format, a...)}
}

// names lists the keys of a map for an error, in order.
func names[V any](m map[string]V) string {
	if len(m) == 0 {
		return "none"
	}
	quoted := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
