package kubeconfig_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

const overridden = `
current-context: one
clusters:
- name: a
  cluster: {server: "https://a", certificate-authority-data: Y2E=, tls-server-name: tls, proxy-url: "http://p"}
- name: b
  cluster: {server: "https://b", insecure-skip-tls-verify: true}
users:
- name: joe
  user: {token: t, as: jane, as-uid: "1", as-groups: [g], as-user-extra: {k: [v]}}
- name: basic
  user: {username: u, password: p}
contexts:
- {name: one, context: {cluster: a, user: joe, namespace: shop}}
`

func TestEveryOptionOverrides(t *testing.T) {
	home := alone(t)
	path := write(t, filepath.Join(home, "config"), overridden)
	hidden := apiclient.NewSecret
	for name, c := range map[string]struct {
		o      kubeconfig.Options
		change func(*apiclient.Config)
	}{
		"nothing": {kubeconfig.Options{}, func(*apiclient.Config) {}},
		"cluster": {kubeconfig.Options{Cluster: "b"}, func(c *apiclient.Config) {
			c.Host, c.TLS, c.ProxyURL = "https://b", apiclient.TLS{Insecure: true}, nil
		}},
		"user": {kubeconfig.Options{User: "basic"}, func(c *apiclient.Config) {
			c.BearerToken, c.Impersonate = apiclient.Secret{}, apiclient.Impersonate{}
			c.Username, c.Password = "u", hidden("p")
		}},
		"server":          {kubeconfig.Options{Server: "https://c"}, func(c *apiclient.Config) { c.Host, c.TLS.ServerName = "https://c", "" }},
		"server and name": {kubeconfig.Options{Server: "https://c", TLSServerName: "m"}, func(c *apiclient.Config) { c.Host, c.TLS.ServerName = "https://c", "m" }},
		"name":            {kubeconfig.Options{TLSServerName: "m"}, func(c *apiclient.Config) { c.TLS.ServerName = "m" }},
		"authorities":     {kubeconfig.Options{CAFile: "ca"}, func(c *apiclient.Config) { c.TLS.CAData, c.TLS.CAFile = nil, "ca" }},
		"authorities of an insecure cluster": {kubeconfig.Options{Cluster: "b", CAFile: "ca"}, func(c *apiclient.Config) {
			c.Host, c.TLS, c.ProxyURL = "https://b", apiclient.TLS{CAFile: "ca"}, nil
		}},
		"insecure":    {kubeconfig.Options{Insecure: true}, func(c *apiclient.Config) { c.TLS.CAData, c.TLS.Insecure = nil, true }},
		"proxy":       {kubeconfig.Options{ProxyURL: hidden("socks5://q")}, func(c *apiclient.Config) { c.ProxyURL = &url.URL{Scheme: "socks5", Host: "q"} }},
		"compression": {kubeconfig.Options{DisableCompression: true}, func(c *apiclient.Config) { c.DisableCompression = true }},
		"token":       {kubeconfig.Options{Token: hidden("x")}, func(c *apiclient.Config) { c.BearerToken = hidden("x") }},
		"password": {kubeconfig.Options{Username: "x", Password: hidden("y")}, func(c *apiclient.Config) {
			c.BearerToken, c.Username, c.Password = apiclient.Secret{}, "x", hidden("y")
		}},
		"certificate": {kubeconfig.Options{CertFile: "x", KeyFile: "y"}, func(c *apiclient.Config) {
			c.BearerToken, c.TLS.CertFile, c.TLS.KeyFile = apiclient.Secret{}, "x", "y"
		}},
		"as":       {kubeconfig.Options{Impersonate: apiclient.Impersonate{UserName: "x"}}, func(c *apiclient.Config) { c.Impersonate = apiclient.Impersonate{UserName: "x"} }},
		"as uid":   {kubeconfig.Options{Impersonate: apiclient.Impersonate{UID: "2"}}, func(c *apiclient.Config) { c.Impersonate.UID = "2" }},
		"as group": {kubeconfig.Options{Impersonate: apiclient.Impersonate{Groups: []string{"h"}}}, func(c *apiclient.Config) { c.Impersonate.Groups = []string{"h"} }},
		"as extra": {kubeconfig.Options{Impersonate: apiclient.Impersonate{Extra: map[string][]string{"l": {"w"}}}}, func(c *apiclient.Config) {
			c.Impersonate.Extra = map[string][]string{"l": {"w"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := apiclient.Config{
				Host: "https://a", BearerToken: hidden("t"), ProxyURL: &url.URL{Scheme: "http", Host: "p"},
				TLS:         apiclient.TLS{CAData: []byte("ca"), ServerName: "tls"},
				Impersonate: apiclient.Impersonate{UserName: "jane", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
			}
			c.change(&want)
			c.o.Path = path
			cfg, namespace, err := kubeconfig.Load(t.Context(), c.o)
			require.NoError(t, err)
			require.Equal(t, "shop", namespace)
			require.Equal(t, want, cfg)
		})
	}

	write(t, path, overridden[len("\ncurrent-context: one"):])
	cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Cluster: "b", User: "basic"})
	require.NoError(t, err, "a cluster and a user make a context")
	require.Equal(t, apiclient.Config{Host: "https://b", Username: "u", Password: hidden("p"), TLS: apiclient.TLS{Insecure: true}}, cfg)
	require.Equal(t, "default", namespace)
}

// TestReplacedFieldsAreNotRead loads an entry that is an error without the options.
func TestReplacedFieldsAreNotRead(t *testing.T) {
	home := alone(t)
	path := write(t, filepath.Join(home, "config"), `
current-context: c
clusters: [{name: c, cluster: {server: "https://s"}}]
users: [{name: u, user: {auth-provider: {name: gcp}, client-key-data: "*", as: jane}}]
contexts: [{name: c, context: {cluster: c, user: u}}]`)
	cfg, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Token: apiclient.NewSecret("t")})
	require.NoError(t, err)
	require.Equal(t, apiclient.Config{
		Host: "https://s", BearerToken: apiclient.NewSecret("t"), Impersonate: apiclient.Impersonate{UserName: "jane"},
	}, cfg)
}

func TestErrorsNameTheOption(t *testing.T) {
	home := alone(t)
	path := write(t, filepath.Join(home, "config"), overridden)
	for want, o := range map[string]kubeconfig.Options{
		`Options.Cluster: there is no cluster "x"; the clusters are "a", "b"`:       {Cluster: "x"},
		`Options.User: there is no user "x"; the users are "basic", "joe"`:          {User: "x"},
		`Options.Server: "c" has no scheme`:                                         {Server: "c"},
		`Options.Insecure: it conflicts with the authorities`:                       {Insecure: true, CAFile: "ca"},
		`Options.ProxyURL: it is not a URL`:                                         {ProxyURL: apiclient.NewSecret("http://u:" + secret + "@[")},
		`Options.ProxyURL: its scheme is "ftp"`:                                     {ProxyURL: apiclient.NewSecret("ftp://u:" + secret + "@p")},
		`Options.Username: it conflicts with a bearer token`:                        {Username: "u", Token: apiclient.NewSecret(secret)},
		`Options.Username: it is empty, but there is a password`:                    {Password: apiclient.NewSecret(secret)},
		`Options.CertFile: a client key needs a certificate`:                        {KeyFile: "k"},
		`Options.KeyFile: a client certificate needs a key`:                         {CertFile: "c"},
		`Options.Token: it cannot be sent in a header`:                              {Token: apiclient.NewSecret(secret + "\n")},
		`Options.Impersonate: it is empty, but other fields of Impersonate are set`: {User: "basic", Impersonate: apiclient.Impersonate{Groups: []string{"g"}}},
	} {
		o.Path = path
		_, _, err := kubeconfig.Load(t.Context(), o)
		require.ErrorContains(t, err, "kubeconfig: "+want)
		require.NotContains(t, err.Error(), secret)
	}
}

func TestErrorsOfAConfigurationNameTheField(t *testing.T) {
	home := alone(t)
	path := filepath.Join(home, "config")
	for _, c := range []struct{ cluster, user, want string }{
		{"server: c:6443", "", `clusters[c].server: "c:6443" has no scheme`},
		{"server: 'https://u:" + secret + "@c'", "", `clusters[c].server: it has a user or password`},
		{"server: 'https://c', proxy-url: 'p:1'", "", `clusters[c].proxy-url: `},
		{"server: 'https://c', proxy-url: 'http://u:" + secret + "@['", "", `clusters[c].proxy-url: it is not a URL`},
		{"server: 'https://c', insecure-skip-tls-verify: true, certificate-authority: ca", "", `clusters[c].insecure-skip-tls-verify: it conflicts with the authorities`},
		{"server: 'https://c'", "token: \"" + secret + "\\n\"", `users[u].token: it cannot be sent in a header`},
		{"server: 'https://c'", "token: " + secret + ", username: joe", `users[u].username: it conflicts with a bearer token`},
		{"server: 'https://c'", "password: " + secret, `users[u].username: it is empty`},
		{"server: 'https://c'", "client-certificate: c", `users[u].client-key: a client certificate needs a key`},
		{"server: 'https://c'", "client-key-data: Yw==", `users[u].client-certificate: a client key needs a certificate`},
		{"server: 'https://c'", "as-groups: [g]", `users[u].as: it is empty, but other fields`},
		{"server: 'https://c'", "as: \"a\\nb\"", `users[u].as: the name or the UID has a control character`},
		{"server: 'https://c'", "as: a, as-groups: g", `users[u].as-groups: text stands where a list belongs`},
		{"server: 'https://c'", "as: a, as-user-extra: {k: v}", `users[u].as-user-extra: text stands where a list belongs`},
		{"server: 'https://c'", "auth-provider: {name: oidc, config: {id-token: " + secret + "}}", `users[u].auth-provider: leat does not have the auth provider "oidc"`},
	} {
		write(t, path, "current-context: c\nclusters: [{name: c, cluster: {"+c.cluster+"}}]\nusers: [{name: u, user: {"+c.user+"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]")
		_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
		require.ErrorContains(t, err, "kubeconfig "+path+": "+c.want)
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestOddFiles(t *testing.T) {
	home := alone(t)
	path := filepath.Join(home, "config")
	const plain = "current-context: c\nclusters:\n- name: c\n  cluster:\n    server: https://s\ncontexts:\n- name: c\n  context:\n    cluster: c\n    namespace: shop\n"
	for name, content := range map[string]string{
		"plain":              plain,
		"no end of line":     plain[:len(plain)-1],
		"BOM":                "\ufeff" + plain,
		"CRLF":               "current-context: c\r\nclusters:\r\n- name: c\r\n  cluster:\r\n    server: https://s\r\ncontexts:\r\n- name: c\r\n  context:\r\n    cluster: c\r\n    namespace: shop\r\n",
		"a document":         "# made by hand\n---\n" + plain + "---\n# no more\n",
		"a document in CRLF": "---\r\n" + plain + "...\r\n",
		"anchors":            "x: &x {cluster: c, namespace: shop}\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: c, context: *x}]",
		"merge keys":         "x: &x {cluster: c}\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts: [{name: c, context: {<<: *x, namespace: shop}}]",
		"JSON":               `{"kind":"Config","apiVersion":"v1","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://s"}}],"contexts":[{"name":"c","context":{"cluster":"c","namespace":"shop"}}],"users":null}`,
		"fields of vendors":  plain + "preferences: {colors: true}\nextensions: [{name: minikube, extension: {version: 1}}]\nusers:\n- name: u\n  user: {auth: {deep: [1]}}\n  more: true\n",
		"dashes in a text":   plain + "note: |\n  ---\n  text\n  --- \nkey: '---- no marker'\n---x: no marker either\n",
		"a directive":        "%YAML 1.1\n---\n" + plain,
		"an unused bad user": plain + "users: [{name: u, user: {client-key-data: '*', auth-provider: {name: gcp}}}]\n",
		"an unused dead end": plain + "- name: d\n  context: {cluster: gone, user: gone}\n",
	} {
		write(t, path, content)
		cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
		require.NoError(t, err, name)
		require.Equal(t, apiclient.Config{Host: "https://s"}, cfg, name)
		require.Equal(t, "shop", namespace, name)
	}

	for content, want := range map[string]string{
		plain + "---\n" + plain:        "more than one document",
		"---\n" + plain + "--- \na: b": "more than one document",
		plain + "---\r\na: b":          "more than one document",
		"--- {a: b}\n---\tc: d\n":      "more than one document",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]": "excessive aliasing",
		"users: [null]":                       "users[0].name: it is empty",
		"users: [{name: 1}]":                  "users[0].name: a number stands where text belongs",
		"users: [joe]":                        "users[0]: text stands where a map belongs",
		"clusters: [{name: ''}]":              "clusters[0].name: it is empty",
		"contexts: [{name: c, context: [x]}]": "contexts[c].context: a list stands where a map belongs",
		"current-context: [c]":                "current-context: a list stands where text belongs",
	} {
		write(t, path, content)
		_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
		require.ErrorContains(t, err, "kubeconfig "+path+": ")
		require.ErrorContains(t, err, want)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	home := alone(t)
	missing, dir := filepath.Join(home, "missing"), filepath.Join(home, "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Setenv("KUBECONFIG", missing+string(filepath.ListSeparator)+dir)
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.EqualError(t, err, "kubeconfig "+dir+": it is a directory, not a regular file")

	empty := write(t, filepath.Join(home, "empty"), "")
	t.Setenv("KUBECONFIG", empty+string(filepath.ListSeparator)+empty)
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Context: "c"})
	require.EqualError(t, err, "kubeconfig "+empty+`: there is no context "c"; the contexts are none`, "each file is read once")

	large := filepath.Join(home, "large")
	f, err := os.Create(large)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<30))
	require.NoError(t, f.Close())
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: large})
	require.EqualError(t, err, "kubeconfig "+large+": it is larger than 4 MiB")

	t.Setenv("KUBECONFIG", missing)
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.EqualError(t, err, "kubeconfig "+missing+": there is no such file, and the program does not run in a pod: name a kubeconfig or a server")
}

// TestComplexFilesAreRefused has files of less than 4 MiB that would take several hundred megabytes of memory.
func TestComplexFilesAreRefused(t *testing.T) {
	home := alone(t)
	for _, content := range []string{strings.Repeat("\n", 250_001), "a: [" + strings.Repeat("a,", 300_000) + "]", strings.Repeat("- - - -\n", 60_000)} {
		path := write(t, filepath.Join(home, "config"), content)
		_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
		require.EqualError(t, err, "kubeconfig "+path+": it is too complex: it has more than 250000 YAML indicators and line breaks; "+
			"split it, and list the parts in KUBECONFIG")
	}
	path := write(t, filepath.Join(home, "config"), strings.Repeat("\n", 250_000))
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.ErrorContains(t, err, "current-context: it is empty")
}

// TestErrorsAreShort has a file with very many entries, and one with a name as long as the file.
func TestErrorsAreShort(t *testing.T) {
	home := alone(t)
	var many strings.Builder
	many.WriteString("clusters: [{name: c, cluster: {server: 'https://s'}}]\ncontexts:\n")
	for i := range 2000 {
		fmt.Fprintf(&many, "- {name: ctx-%04d, context: {cluster: c}}\n", i)
	}
	path := write(t, filepath.Join(home, "many"), many.String())
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Context: "none"})
	require.EqualError(t, err, "kubeconfig "+path+`: there is no context "none"; the contexts are "ctx-0000", "ctx-0001", "ctx-0002", `+
		`"ctx-0003", "ctx-0004", "ctx-0005", "ctx-0006", "ctx-0007", "ctx-0008", "ctx-0009" and 1990 more`)
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Context: "ctx-1999"})
	require.NoError(t, err)

	long := strings.Repeat("x", 1<<16)
	for name, content := range map[string]string{
		"current context": "current-context: " + long,
		"context":         "contexts: [{name: " + long + ", context: {cluster: c}}]",
		"entry":           "users: [{name: " + long + ", user: {token: 1}}]",
		"two entries":     "users: [{name: " + long + ", user: {}}, {name: " + long + ", user: {}}]",
		"server":          "current-context: a\nclusters: [{name: a, cluster: {server: " + long + "}}]\ncontexts: [{name: a, context: {cluster: a}}]",
		"cluster":         "current-context: a\ncontexts: [{name: a, context: {cluster: " + long + "}}]",
	} {
		path = write(t, filepath.Join(home, name), content)
		_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
		require.ErrorContains(t, err, "kubeconfig "+path+": ")
		require.Less(t, len(err.Error()), len(path)+2048, name)
	}
}

// TestAPodIsTheLastResort follows kubectl: Load uses the pod's account only if there is no context, cluster or server.
// The pod of the test has no token, so the error shows that Load used the pod.
func TestAPodIsTheLastResort(t *testing.T) {
	home := alone(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	const inPod = "the pod has no token"
	path := write(t, filepath.Join(home, ".kube", "config"), overridden[len("\ncurrent-context: one"):])
	for want, o := range map[string]kubeconfig.Options{
		inPod:                          {Namespace: "x", Token: apiclient.NewSecret("t")},
		"current-context: it is empty": {Path: path},
		`there is no context "two"`:    {Context: "two"},
		`there is no cluster "x"`:      {Cluster: "x"},
	} {
		_, _, err := kubeconfig.Load(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
	for _, o := range []kubeconfig.Options{{Server: "https://x"}, {Cluster: "b"}, {Context: "one"}} {
		_, _, err := kubeconfig.Load(t.Context(), o)
		require.NoError(t, err)
	}
	require.NoError(t, os.Remove(path))
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.ErrorContains(t, err, inPod)

	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	write(t, path, "contexts: [{name: a, context: {}}]")
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.EqualError(t, err, "kubeconfig "+path+`: current-context: it is empty, and the program does not run in a pod; the contexts are "a"`)
}
