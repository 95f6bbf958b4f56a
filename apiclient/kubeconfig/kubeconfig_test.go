package kubeconfig_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
)

const secret = "s3cr3t-t0ken"

// alone removes the kubeconfigs and the pod of the machine from the environment.
func alone(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	return home
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

const whole = `
apiVersion: v1
kind: Config
current-context: prod
preferences: {}
clusters:
- name: prod
  cluster:
    server: https://prod.example:6443/base
    certificate-authority: certs/ca.crt
    tls-server-name: kubernetes
    proxy-url: socks5://proxy.example:1080
    disable-compression: true
    extensions: [{name: vendor, extension: {a: b}}]
- name: dev
  cluster: {server: "http://127.0.0.1:8080", insecure-skip-tls-verify: true}
users:
- name: admin
  user:
    client-certificate: certs/admin.crt
    client-key-data: a2V5
    as: jane
    as-uid: "7"
    as-groups: [dev, ops]
    as-user-extra: {scopes: [view]}
- name: token
  user: {token: s3cr3t-t0ken, tokenFile: token}
- name: basic
  user: {username: joe, password: s3cr3t-t0ken}
- name: cloud
  user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws-iam, args: [s3cr3t-t0ken]}}
- name: old
  user: {auth-provider: {name: gcp, config: {access-token: s3cr3t-t0ken}}}
contexts:
- {name: prod, context: {cluster: prod, user: admin, namespace: shop}}
- {name: dev, context: {cluster: dev, user: token}}
- {name: basic, context: {cluster: dev, user: basic}}
- {name: cloud, context: {cluster: dev, user: cloud}}
- {name: old, context: {cluster: dev, user: old}}
- {name: nobody, context: {cluster: dev, user: ""}}
- {name: lost-user, context: {cluster: dev, user: gone}}
- {name: lost-cluster, context: {cluster: gone, user: admin}}
`

func TestLoadReadsEveryField(t *testing.T) {
	home := alone(t)
	path := write(t, filepath.Join(home, ".kube", "config"), whole)
	dir := filepath.Dir(path)

	cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.NoError(t, err)
	require.Equal(t, "shop", namespace)
	require.Equal(t, apiclient.Config{
		Host:               "https://prod.example:6443/base",
		ProxyURL:           &url.URL{Scheme: "socks5", Host: "proxy.example:1080"},
		DisableCompression: true,
		TLS: apiclient.TLS{
			CAFile:     filepath.Join(dir, "certs", "ca.crt"),
			CertFile:   filepath.Join(dir, "certs", "admin.crt"),
			KeyData:    apiclient.NewSecret("key"),
			ServerName: "kubernetes",
		},
		Impersonate: apiclient.Impersonate{
			UserName: "jane", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"scopes": {"view"}},
		},
	}, cfg)

	cfg, namespace, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Context: "dev"})
	require.NoError(t, err)
	require.Equal(t, "default", namespace)
	require.Equal(t, apiclient.Config{
		Host: "http://127.0.0.1:8080", BearerToken: apiclient.NewSecret(secret), BearerTokenFile: filepath.Join(dir, "token"),
		TLS: apiclient.TLS{Insecure: true},
	}, cfg)

	cfg, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Context: "basic"})
	require.NoError(t, err)
	require.Equal(t, "joe", cfg.Username)
	require.Equal(t, secret, cfg.Password.Reveal())

	cfg, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Context: "nobody"})
	require.NoError(t, err)
	require.Equal(t, apiclient.Config{Host: "http://127.0.0.1:8080", TLS: apiclient.TLS{Insecure: true}}, cfg)
}

func TestOptionsOverride(t *testing.T) {
	home := alone(t)
	path := write(t, filepath.Join(home, "config"), whole)

	cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{
		Path: path, Namespace: "other", Server: "https://else.example", Token: apiclient.NewSecret(secret), CAFile: "/ca.pem",
	})
	require.NoError(t, err)
	require.Equal(t, "other", namespace)
	require.Equal(t, "https://else.example", cfg.Host)
	require.Equal(t, secret, cfg.BearerToken.Reveal())
	require.Equal(t, apiclient.TLS{CAFile: "/ca.pem"}, cfg.TLS, "the client certificate and the name of the old server are removed")

	cfg, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Insecure: true})
	require.NoError(t, err)
	require.True(t, cfg.TLS.Insecure)
	require.Empty(t, cfg.TLS.CAFile)

	cfg, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Context: "cloud", Token: apiclient.NewSecret(secret)})
	require.NoError(t, err, "a token replaces a plugin")
	require.Equal(t, secret, cfg.BearerToken.Reveal())

	cfg, namespace, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Server: "http://127.0.0.1:1234"})
	require.NoError(t, err, "a server is enough")
	require.Equal(t, apiclient.Config{Host: "http://127.0.0.1:1234"}, cfg)
	require.Equal(t, "default", namespace)
}

func TestFilesOfAListMerge(t *testing.T) {
	home := alone(t)
	first := write(t, filepath.Join(home, "a", "first"), `
current-context: one
users: [{name: joe, user: {tokenFile: joe.token}}]
contexts: [{name: one, context: {cluster: c, user: joe, namespace: first}}]
`)
	second := write(t, filepath.Join(home, "b", "second"), `
current-context: two
clusters: [{name: c, cluster: {server: "https://c.example", certificate-authority: ca.crt}}]
users: [{name: joe, user: {username: joe, password: p}}]
contexts:
- {name: one, context: {cluster: none, user: none, namespace: second}}
- {name: two, context: {cluster: c, user: joe}}
`)
	list := strings.Join([]string{"", filepath.Join(home, "missing"), first, second, first}, string(filepath.ListSeparator))
	t.Setenv("KUBECONFIG", list)

	cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.NoError(t, err)
	require.Equal(t, "first", namespace)
	require.Equal(t, apiclient.Config{
		Host:            "https://c.example",
		BearerTokenFile: filepath.Join(home, "a", "joe.token"),
		TLS:             apiclient.TLS{CAFile: filepath.Join(home, "b", "ca.crt")},
	}, cfg, "the first file that has an entry wins, and paths are relative to their file")

	_, namespace, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Context: "two"})
	require.NoError(t, err)
	require.Equal(t, "default", namespace)
}

func TestErrorsNameFileAndField(t *testing.T) {
	home := alone(t)
	path := filepath.Join(home, "config")
	cases := []struct{ name, content, context, want string }{
		{"missing context", whole, "none", `there is no context "none"; the contexts are "basic", "cloud"`},
		{"missing cluster", whole, "lost-cluster", `contexts[lost-cluster].cluster: there is no cluster "gone"; the clusters are "dev", "prod"`},
		{"missing user", whole, "lost-user", `contexts[lost-user].user: there is no user "gone"; the users are`},
		{"auth provider", whole, "old", `users[old].auth-provider: leat does not have the auth provider "gcp"`},
		{"no current context", "contexts: [{name: a, context: {}}]", "", `current-context: it is empty; the contexts are "a"`},
		{"empty file", "", "", `current-context: it is empty; the contexts are none`},
		{"no server", "clusters: [{name: c, cluster: {}}]\ncontexts: [{name: a, context: {cluster: c}}]", "a", `clusters[c].server: it is empty`},
		{"context without cluster", "contexts: [{name: a, context: {}}]", "a", `contexts[a].cluster: there is no cluster ""`},
		{"bad CA data", "clusters: [{name: c, cluster: {server: s, certificate-authority-data: '*'}}]\ncontexts: [{name: a, context: {cluster: c}}]", "a", `clusters[c].certificate-authority-data: illegal base64`},
		{"bad cert data", "clusters: [{name: c, cluster: {server: s}}]\nusers: [{name: u, user: {client-certificate-data: '*'}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]", "a", `users[u].client-certificate-data: illegal base64`},
		{"bad key data", "clusters: [{name: c, cluster: {server: s}}]\nusers: [{name: u, user: {client-key-data: '*s3cr3t-t0ken'}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]", "a", `users[u].client-key-data: illegal base64`},
		{"token is a map", "users: [{name: u, user: {token: {s3cr3t-t0ken: 1}}}]", "", `users[u].token: a map stands where text belongs`},
		{"token is a number", "users: [{name: u, user: {token: 12345678}}]", "", `users[u].token: a number stands where text belongs; put it in quotes`},
		{"insecure is text", "clusters: [{name: u, cluster: {insecure-skip-tls-verify: 'yes'}}]", "", `clusters[u].insecure-skip-tls-verify: text stands where true or false belongs`},
		{"users is a map", "users: {u: {token: s3cr3t-t0ken}}", "", `users: a map stands where a list belongs`},
		{"duplicate cluster", "clusters: [{name: a, cluster: {}}, {name: a, cluster: {}}]", "", `clusters: two entries have the name "a"`},
		{"duplicate user", "users: [{name: a, user: {}}, {name: a, user: {}}]", "", `users: two entries have the name "a"`},
		{"duplicate context", "contexts: [{name: a, context: {}}, {name: a, context: {}}]", "", `contexts: two entries have the name "a"`},
		{"nameless user", "users: [{user: {token: s3cr3t-t0ken}}]", "", `users[0].name: it is empty`},
		{"duplicate field", "current-context: a\ncurrent-context: b", "", `line 2: key "current-context" already set`},
		{"syntax", "clusters:\n- name: a\n  cluster: [", "", `line 3`},
		{"tabs", "clusters:\n\t- name: a", "", `line 2`},
		{"not a map", "- a\n- b", "", `a list stands where a map belongs`},
		{"plain text", "hello s3cr3t-t0ken", "", `text stands where a map belongs`},
		{"another kind", "kind: Pod\napiVersion: v1", "", `kind: it has a Pod of v1, not a Config of v1`},
		{"unknown anchor", "users: [{name: u, user: {token: *s3cr3t-t0ken}}]", "", `unknown anchor (not shown)`},
		{"unrendered template", "users: [{name: u, user: {token: {{ s3cr3t-t0ken }}}}]", "", `invalid map key (not shown)`},
		{"unknown escape", `users: [{name: u, user: {token: "\s3cr3t-t0ken"}}]`, "", `config`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			write(t, path, c.content)
			_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Context: c.context})
			require.Error(t, err)
			var typed *kubeconfig.Error
			require.ErrorAs(t, err, &typed)
			require.Contains(t, err.Error(), c.want)
			require.Contains(t, err.Error(), path)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "\n", "one line")
			require.Equal(t, strings.Contains(c.want, "quotes"), strings.Contains(err.Error(), "quotes"), "the error has a hint")
		})
	}
}

func TestMissingFiles(t *testing.T) {
	home := alone(t)
	path := filepath.Join(home, "none")
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "kubeconfig "+path+": "+errno(err))

	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.ErrorContains(t, err, filepath.Join(home, ".kube", "config"))
	require.ErrorContains(t, err, "the program does not run in a pod")

	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Context: "prod"})
	require.ErrorContains(t, err, `there is no context "prod"; the contexts are none`)
}

// errno returns the text of the operating system for an error.
func errno(err error) string {
	var typed *kubeconfig.Error
	if !errors.As(err, &typed) {
		return ""
	}
	return typed.Err.Error()
}

func TestInAPodWithoutAToken(t *testing.T) {
	alone(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.ErrorContains(t, err, "the pod has no token of a service account")
}

func TestWriteIsReadBack(t *testing.T) {
	home := alone(t)
	path := filepath.Join(home, "written")
	cfg := apiclient.Config{
		Host: "https://127.0.0.1:6443", BearerToken: apiclient.NewSecret(secret),
		TLS: apiclient.TLS{
			CAData: []byte("ca"), CertData: []byte("cert"), KeyData: apiclient.NewSecret("key"), ServerName: "kubernetes",
			CertFile: filepath.Join(home, "cert"), KeyFile: filepath.Join(home, "key"), CAFile: filepath.Join(home, "ca"),
		},
		Impersonate: apiclient.Impersonate{UserName: "jane", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		ProxyURL:    &url.URL{Scheme: "http", Host: "proxy.example"}, DisableCompression: true, BearerTokenFile: filepath.Join(home, "token"),
	}
	require.NoError(t, kubeconfig.Write(path, apiclient.Config{Host: "http://old"}, ""))
	require.NoError(t, kubeconfig.Write(path, cfg, "shop"))
	got, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	require.Equal(t, "shop", namespace)
	require.Equal(t, cfg, got)

	basic := apiclient.Config{Host: "https://127.0.0.1:6443", Username: "joe", Password: apiclient.NewSecret(secret), TLS: apiclient.TLS{Insecure: true}}
	require.NoError(t, kubeconfig.Write(path, basic, ""))
	got, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	require.Equal(t, basic, got)

	info := must.Get(os.Stat(path))(t)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	require.Len(t, must.Get(os.ReadDir(home))(t), 1, "there is no temporary file")
}

func TestWriteRefusesFieldsThatAFileCannotHave(t *testing.T) {
	home := alone(t)
	err := kubeconfig.Write(filepath.Join(home, "c"), apiclient.Config{Host: "http://h", Transport: roundTripper{}}, "")
	require.ErrorContains(t, err, "cannot be written to a file")
	err = kubeconfig.Write(filepath.Join(home, "c"), apiclient.Config{Host: "http://h", Credentials: &exec.Plugin{}}, "")
	require.ErrorContains(t, err, "credentials that come from a *exec.Plugin cannot be written to a file")
	require.NoFileExists(t, filepath.Join(home, "c"))
	err = kubeconfig.Write(filepath.Join(home, "no", "such", "dir"), apiclient.Config{Host: "http://h"}, "")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestOptionsHideTheToken(t *testing.T) {
	o := kubeconfig.Options{Token: apiclient.NewSecret(secret), Server: "https://s"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, o), secret, verb)
		require.NotContains(t, fmt.Sprintf(verb, &o), secret, verb)
	}
	require.Contains(t, fmt.Sprint(o), "https://s")
}

// TestParse reads a kubeconfig from memory, in a pod.
func TestParse(t *testing.T) {
	alone(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	cfg, namespace, err := kubeconfig.Parse([]byte(overridden), kubeconfig.Options{})
	require.NoError(t, err)
	require.Equal(t, "shop", namespace)
	path := write(t, filepath.Join(t.TempDir(), "config"), overridden)
	fromFile, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	require.Equal(t, fromFile.Host, cfg.Host)
	_, namespace, err = kubeconfig.Parse([]byte(overridden), kubeconfig.Options{Namespace: "other"})
	require.NoError(t, err)
	require.Equal(t, "other", namespace)

	for content, want := range map[string]string{
		"":                                     "kubeconfig content: current-context: it is empty; the contexts are none",
		"current-context: a":                   `kubeconfig content: there is no context "a"; the contexts are none`,
		"a: &a [*a]":                           "kubeconfig content: ",
		strings.Repeat(" ", 4<<20+1):           "kubeconfig content: it is larger than 4 MiB",
		"users: [{name: u, user: {token: 1}}]": "kubeconfig content: users[u].token: ",
	} {
		_, _, err := kubeconfig.Parse([]byte(content), kubeconfig.Options{})
		require.ErrorContains(t, err, want)
	}
	_, _, err = kubeconfig.Parse([]byte(overridden), kubeconfig.Options{Path: "config"})
	require.EqualError(t, err, "kubeconfig: Options.Path: Parse reads no file; use Load")
}

// TestLoadEndsWithItsContext has a file system that does not answer.
func TestLoadEndsWithItsContext(t *testing.T) {
	answers := make(chan struct{})
	defer close(answers)
	ctx, cancel := context.WithCancel(t.Context())
	hung := make(chan struct{})
	go func() {
		<-hung
		cancel()
	}()
	_, _, err := kubeconfig.Until(ctx, func() (apiclient.Config, string, error) {
		close(hung)
		<-answers
		return apiclient.Config{}, "late", nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "kubeconfig: read the files: context canceled")
}
