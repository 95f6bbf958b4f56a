package kubeconfig

import (
	"errors"
	"net/url"
	"strings"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
)

// Options select files and entries, and override fields. kubectl has a flag for each except Plugins. The zero value
// does what kubectl does without flags. Paths are relative to the current folder. Options correspond to
// ClientConfigLoadingRules and ConfigOverrides of client-go.
type Options struct {
	// Path is the file to read. It must exist. Empty means the files that KUBECONFIG lists, or else ~/.kube/config;
	// files of the list that do not exist are skipped. A file must be a regular file of at most 4 MiB, or a link to
	// one. A FIFO, such as that of a shell's <(command), is an error. So is a file with more than 250,000 YAML
	// indicators and line breaks, which has room for 25,000 contexts.
	Path string
	// Context is the context to use instead of the current one.
	Context string
	// Cluster and User are the entries to use instead of those of the context.
	Cluster string
	User    string
	// Namespace replaces the namespace of the context.
	Namespace string

	// Server replaces the URL of the cluster. It also clears the entry's tls-server-name, which belongs to the old URL.
	// With Server, no file is needed.
	Server string
	// TLSServerName replaces the name that the server's certificate must have.
	TLSServerName string
	// CAFile replaces the authorities of the cluster. It must be a regular file of at most 4 MiB, or a link to one.
	CAFile string
	// Insecure accepts any certificate of the server.
	Insecure bool
	// ProxyURL replaces the proxy of the cluster. It is a Secret because it may contain a password.
	ProxyURL apiclient.Secret
	// DisableCompression disables compressed answers, even if the cluster's entry allows them.
	DisableCompression bool

	// Token, Username with Password, and CertFile with KeyFile are credentials. One of them replaces all credentials of
	// the user's entry, and no plugin runs: beside a client certificate, the server would ignore the token. A file must
	// be a regular file of at most 4 MiB, or a link to one.
	Token    apiclient.Secret
	Username string
	Password apiclient.Secret
	CertFile string
	KeyFile  string

	// Impersonate replaces the impersonation of the user's entry as a whole. Without a user name, its other fields
	// replace those of the entry.
	Impersonate apiclient.Impersonate

	// Plugins has the policy, the timeout and the files of exec plugins.
	Plugins exec.Terms
}

// identifies reports whether the options have credentials.
func (o *Options) identifies() bool {
	return !o.Token.IsZero() || o.Username != "" || !o.Password.IsZero() || o.CertFile != "" || o.KeyFile != ""
}

// override replaces the fields of a configuration that the options set.
func (o *Options) override(c *apiclient.Config) error {
	if o.Server != "" {
		c.Host, c.TLS.ServerName = o.Server, ""
	}
	if o.TLSServerName != "" {
		c.TLS.ServerName = o.TLSServerName
	}
	if o.CAFile != "" || o.Insecure {
		c.TLS.CAFile, c.TLS.CAData, c.TLS.Insecure = o.CAFile, nil, o.Insecure
	}
	if !o.ProxyURL.IsZero() {
		u, err := parseProxy(o.ProxyURL.Reveal())
		if err != nil {
			return &Error{Field: "Options.ProxyURL", Err: err}
		}
		c.ProxyURL = u
	}
	c.DisableCompression = c.DisableCompression || o.DisableCompression
	if o.identifies() {
		c.BearerToken, c.BearerTokenFile = o.Token, ""
		c.Username, c.Password = o.Username, o.Password
		c.TLS.CertData, c.TLS.CertFile, c.TLS.KeyData, c.TLS.KeyFile = nil, o.CertFile, apiclient.Secret{}, o.KeyFile
	}
	o.impersonate(&c.Impersonate)
	return nil
}

func (o *Options) impersonate(i *apiclient.Impersonate) {
	if o.Impersonate.UserName != "" {
		*i = o.Impersonate
		return
	}
	if o.Impersonate.UID != "" {
		i.UID = o.Impersonate.UID
	}
	if len(o.Impersonate.Groups) > 0 {
		i.Groups = o.Impersonate.Groups
	}
	if len(o.Impersonate.Extra) > 0 {
		i.Extra = o.Impersonate.Extra
	}
}

// parseProxy parses a URL. Its error does not quote the URL, which may contain a password.
func parseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	return u, nil
}

// places has, for each field of a Config, the field of the user's or the cluster's entry, and the option that replaces
// it.
var places = map[string]struct {
	list, field, option string
	replaced            func(*Options) bool
}{
	"Host":         {"clusters", "server", "Server", func(o *Options) bool { return o.Server != "" }},
	"ProxyURL":     {"clusters", "proxy-url", "ProxyURL", func(o *Options) bool { return !o.ProxyURL.IsZero() }},
	"TLS":          {"clusters", "insecure-skip-tls-verify", "Insecure", func(o *Options) bool { return o.Insecure }},
	"BearerToken":  {"users", "token", "Token", (*Options).identifies},
	"Username":     {"users", "username", "Username", (*Options).identifies},
	"TLS.KeyData":  {"users", "client-key", "KeyFile", (*Options).identifies},
	"TLS.CertData": {"users", "client-certificate", "CertFile", (*Options).identifies},
	"Impersonate": {"users", "as", "Impersonate", func(o *Options) bool {
		return o.Impersonate.UserName != "" || o.Impersonate.UID != "" || len(o.Impersonate.Groups)+len(o.Impersonate.Extra) > 0
	}},
}

// place replaces an error of a field of a Config by an error of the entry's field or of the option.
func (o *Options) place(err error, c choice) error {
	var wrong *apiclient.FieldError
	if !errors.As(err, &wrong) {
		return err
	}
	p, ok := places[wrong.Field]
	if !ok {
		above, _, _ := strings.Cut(wrong.Field, ".")
		p, ok = places[above]
	}
	switch {
	case !ok:
		return err
	case p.replaced(o) || c.inCluster:
		return &Error{Field: "Options." + p.option, Err: wrong.Err}
	case p.list == "users":
		return &Error{Path: c.user.origin, Field: "users[" + c.userName + "]." + p.field, Err: wrong.Err}
	}
	return &Error{Path: c.cluster.origin, Field: "clusters[" + c.clusterName + "]." + p.field, Err: wrong.Err}
}
