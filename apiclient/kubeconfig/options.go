package kubeconfig

import (
	"errors"
	"net/url"
	"strings"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
)

// Options say where to look and what to override; kubectl has a flag for each but the last. The zero value is what
// kubectl does without flags. Paths in them are relative to the current folder.
// They correspond to ClientConfigLoadingRules and ConfigOverrides of client-go.
type Options struct {
	// Path is the file to read. It must exist. Empty means the files that KUBECONFIG lists, or else ~/.kube/config;
	// files of the list that do not exist are skipped. A file must be a regular file of at most 4 MiB, or a link to one.
	// A FIFO, such as that of a shell's <(command), is an error. So is a file with more than 250,000 YAML indicators and
	// line breaks, which has room for 25,000 contexts.
	Path string
	// Context is the context to use instead of the current one.
	Context string
	// Cluster and User are entries to use instead of those that the context names.
	Cluster string
	User    string
	// Namespace replaces the context's.
	Namespace string

	// Server replaces the cluster's URL, and with it the name of TLSServerName, which belongs to the old one. With it no
	// file is needed at all.
	Server string
	// TLSServerName replaces the name that the server's certificate must carry.
	TLSServerName string
	// CAFile replaces the cluster's authorities.
	CAFile string
	// Insecure accepts any certificate of the server.
	Insecure bool
	// ProxyURL replaces the cluster's proxy. It may hold a password, and so does not show.
	ProxyURL apiclient.Secret
	// DisableCompression stops asking for compressed answers, whatever the cluster's entry says.
	DisableCompression bool

	// Token, Username with Password, and CertFile with KeyFile say who asks. With one of them nothing of what the user's
	// entry says about credentials is used: a client certificate beside a token would be who the server sees, and no
	// plugin runs.
	Token    apiclient.Secret
	Username string
	Password apiclient.Secret
	CertFile string
	KeyFile  string

	// Impersonate replaces whom the user's entry impersonates, as a whole. Without a user name, the rest is added to the
	// entry's.
	Impersonate apiclient.Impersonate

	// Plugins are the terms on which exec plugins run.
	Plugins exec.Terms
}

// identifies tells whether the options say who asks.
func (o *Options) identifies() bool {
	return !o.Token.IsZero() || o.Username != "" || !o.Password.IsZero() || o.CertFile != "" || o.KeyFile != ""
}

// override lets the options win over what was read.
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

// parseProxy reads a URL whose text may hold a password, which an error does not quote.
func parseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it is not a URL")
	}
	return u, nil
}

// places say, for each field of a Config, which field of a user's or a cluster's entry it came from, and which option
// replaces it.
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

// place translates an error about a field of a Config into one about what the field was made from.
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
