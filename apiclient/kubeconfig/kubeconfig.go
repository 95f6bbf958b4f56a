package kubeconfig

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/leatproject/leat/apiclient"
)

// DefaultNamespace is the namespace if the context has no namespace.
const DefaultNamespace = "default"

// Load returns the configuration and the namespace of a kubeconfig. If no file and no option names a server, and the
// program runs in a pod, it returns those of the pod. An error in a file is an *Error that names the file and the
// field. apiclient.New opens the files of certificates and tokens, and the first request runs a plugin. Load
// corresponds to clientcmd.NewNonInteractiveDeferredLoadingClientConfig of client-go.
//
// Load returns the error of ctx when ctx ends. A file system may not answer, for instance over a network, and no
// context ends a read of a file. So the files are read on a goroutine that ends when they are read.
func Load(ctx context.Context, o Options) (apiclient.Config, string, error) {
	return until(ctx, func() (apiclient.Config, string, error) {
		m, err := readAll(o.Path)
		if err != nil {
			return apiclient.Config{}, "", err
		}
		return o.load(m)
	})
}

// Parse returns what Load returns for a file with the given content, for instance from a Secret. It reads no file and
// never uses the service account of the pod. Errors name the file "content". Relative paths in it are relative to the
// current folder. Options.Path must be empty. Content that others may write can name a plugin, which is a program that
// leat runs; Options.Plugins can forbid that. It corresponds to clientcmd.RESTConfigFromKubeConfig of client-go.
func Parse(content []byte, o Options) (apiclient.Config, string, error) {
	if o.Path != "" {
		return apiclient.Config{}, "", &Error{Field: "Options.Path", Err: errors.New("Parse reads no file; use Load")}
	}
	m := newMerged()
	m.named = true
	err := m.addContent(content)
	if err != nil {
		return apiclient.Config{}, "", err
	}
	return o.load(m)
}

// until returns the results of load, or the error of ctx if ctx ends earlier.
func until(ctx context.Context, load func() (apiclient.Config, string, error)) (apiclient.Config, string, error) {
	var cfg apiclient.Config
	var namespace string
	done := make(chan error, 1)
	go func() {
		var err error
		cfg, namespace, err = load()
		done <- err
	}()
	select {
	case err := <-done:
		return cfg, namespace, err
	case <-ctx.Done(): // cfg is not read, because load may still write it
		return apiclient.Config{}, "", &Error{Err: fmt.Errorf("read the files: %w", context.Cause(ctx))}
	}
}

// load returns the configuration that the options select from the files.
func (o *Options) load(m *merged) (apiclient.Config, string, error) {
	cfg, namespace, err := o.fill(m)
	if err != nil {
		return apiclient.Config{}, "", err
	}
	return cfg, namespace, nil
}

func (o *Options) fill(m *merged) (apiclient.Config, string, error) {
	var cfg apiclient.Config
	c, err := m.choose(o)
	if err != nil {
		return cfg, "", err
	}
	namespace := c.context.Namespace
	if c.inCluster {
		if cfg, err = inCluster(m); err != nil {
			return cfg, "", err
		}
		namespace = apiclient.InClusterNamespace()
	}
	if err := c.fill(&cfg, o); err != nil {
		return cfg, "", err
	}
	switch {
	case o.Namespace != "":
		namespace = o.Namespace
	case namespace == "":
		namespace = DefaultNamespace
	}
	return cfg, namespace, nil
}

// choice is the context, cluster and user that the options and the files select.
type choice struct {
	inCluster bool // no file and no option names a server: use the pod's configuration

	context                            contextInfo
	contextName, clusterName, userName string
	cluster                            cluster
	user                               user
}

// choose selects the context, and its cluster and user.
func (m *merged) choose(o *Options) (choice, error) {
	var c choice
	if c.contextName = o.Context; c.contextName == "" {
		c.contextName = m.currentContext
	}
	if c.contextName != "" {
		var ok bool
		if c.context, ok = m.contexts[c.contextName]; !ok {
			return c, m.errorf("", "there is no context %q; the contexts are %s", c.contextName, names(m.contexts))
		}
	} else if o.Server == "" && o.Cluster == "" {
		if m.named { // a named file must not lead to the account of the pod
			return c, m.errorf("current-context", "it is empty; the contexts are %s", names(m.contexts))
		}
		c.inCluster = true
	}
	if err := m.chooseCluster(&c, o); err != nil {
		return c, err
	}
	return c, m.chooseUser(&c, o)
}

func (m *merged) chooseCluster(c *choice, o *Options) error {
	var ok bool
	if c.clusterName = o.Cluster; c.clusterName == "" {
		c.clusterName = c.context.Cluster
	}
	c.cluster, ok = m.clusters[c.clusterName]
	needed := c.clusterName != "" || o.Server == "" && !c.inCluster
	switch {
	case !ok && o.Cluster != "":
		return &Error{Field: "Options.Cluster", Err: fmt.Errorf("there is no cluster %q; the clusters are %s", o.Cluster, names(m.clusters))}
	case !ok && needed:
		return &Error{
			Path: c.context.origin, Field: "contexts[" + c.contextName + "].cluster",
			Err: fmt.Errorf("there is no cluster %q; the clusters are %s", c.clusterName, names(m.clusters)),
		}
	}
	return nil
}

func (m *merged) chooseUser(c *choice, o *Options) error {
	var ok bool
	if c.userName = o.User; c.userName == "" {
		c.userName = c.context.User
	}
	c.user, ok = m.users[c.userName]
	switch {
	case !ok && o.User != "":
		return &Error{Field: "Options.User", Err: fmt.Errorf("there is no user %q; the users are %s", o.User, names(m.users))}
	case !ok && c.userName != "":
		return &Error{
			Path: c.context.origin, Field: "contexts[" + c.contextName + "].user",
			Err: fmt.Errorf("there is no user %q; the users are %s", c.userName, names(m.users)),
		}
	}
	return nil
}

func inCluster(m *merged) (apiclient.Config, error) {
	cfg, err := apiclient.InCluster()
	switch {
	case !errors.Is(err, apiclient.ErrNotInCluster):
		return cfg, err
	case len(m.paths) > 0:
		return cfg, m.errorf("current-context", "it is empty, and the program does not run in a pod; the contexts are %s", names(m.contexts))
	}
	return cfg, m.errorf("", "there is no such file, and the program does not run in a pod: name a kubeconfig or a server")
}

// fill sets the fields of a configuration from the choice and the options.
func (c *choice) fill(cfg *apiclient.Config, o *Options) error {
	if !c.inCluster {
		if err := c.applyCluster(cfg); err != nil {
			return err
		}
	}
	if c.userName != "" { // Options.User may set it in a pod too
		if err := c.applyUser(cfg, o); err != nil {
			return err
		}
	}
	if err := o.override(cfg); err != nil {
		return err
	}
	if err := c.applyPlugin(cfg, o); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return o.place(err, *c)
	}
	return nil
}

func (c *choice) applyCluster(cfg *apiclient.Config) error {
	field := "clusters[" + c.clusterName + "]"
	ca, err := decode(c.cluster.origin, field+".certificate-authority-data", c.cluster.CAData)
	if err != nil {
		return err
	}
	if text := c.cluster.ProxyURL; text != "" {
		if cfg.ProxyURL, err = parseProxy(text); err != nil {
			return &Error{Path: c.cluster.origin, Field: field + ".proxy-url", Err: err}
		}
	}
	cfg.Host, cfg.DisableCompression = c.cluster.Server, c.cluster.DisableCompression
	cfg.TLS.CAData, cfg.TLS.CAFile = ca, beside(c.cluster.origin, c.cluster.CA)
	cfg.TLS.Insecure, cfg.TLS.ServerName = c.cluster.Insecure, c.cluster.TLSServerName
	return nil
}

// applyUser sets the impersonation and, unless the options have credentials, the credentials of the user's entry.
func (c *choice) applyUser(cfg *apiclient.Config, o *Options) error {
	u, field := c.user, "users["+c.userName+"]"
	cfg.Impersonate = apiclient.Impersonate{UserName: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra}
	if o.identifies() {
		return nil
	}
	if u.AuthProvider != nil {
		return &Error{
			Path: u.origin, Field: field + ".auth-provider",
			Err: fmt.Errorf("leat does not have the auth provider %q; use an exec plugin, which replaces auth providers", u.AuthProvider.Name),
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
	return nil
}

// decode decodes a field of base64 data, which may have line breaks.
func decode(path, field, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, &Error{Path: path, Field: field, Err: err}
	}
	return data, nil
}

// beside resolves a path relative to the file that names it.
func beside(origin, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(origin), path)
}
