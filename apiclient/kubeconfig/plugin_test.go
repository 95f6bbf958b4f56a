package kubeconfig_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestMain lets this binary be a plugin. Its token has the request that it got.
func TestMain(m *testing.M) {
	if os.Getenv("LEAT_TEST_PLUGIN") == "" {
		os.Exit(m.Run())
	}
	seen, err := json.Marshal([]any{os.Args[1:], json.RawMessage(os.Getenv("KUBERNETES_EXEC_INFO"))})
	if err != nil {
		panic(err)
	}
	quoted, err := json.Marshal(string(seen))
	if err != nil {
		panic(err)
	}
	fmt.Printf(`{"kind":"ExecCredential","apiVersion":%q,"status":{"token":%s}}`, exec.V1, quoted)
}

// withPlugin returns a kubeconfig. The plugin of its users is this binary, in the folder of the file.
func withPlugin(t *testing.T, server, fields string) string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "bin", "plugin")))
	return write(t, filepath.Join(dir, "config"), `
current-context: c
clusters:
- name: c
  cluster:
    server: `+server+`
    certificate-authority-data: Y2E=
    tls-server-name: tls
    proxy-url: http://proxy.example
    disable-compression: true
    extensions:
    - {name: other, extension: {no: 1}}
    - {name: client.authentication.k8s.io/exec, extension: {audience: a, more: [1, null]}}
users:
- name: u
  user:
    as: jane
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [one, "2"]
      env: [{name: LEAT_TEST_PLUGIN, value: yes it is}, {name: GORACE, value: atexit_sleep_ms=0}]
      interactiveMode: Never
`+fields+`
contexts: [{name: c, context: {cluster: c, user: u}}]
`)
}

func TestPluginsAreCalled(t *testing.T) {
	authorities := write(t, filepath.Join(alone(t), "ca"), "file")
	const plain = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`
	cluster := func(more string) string {
		return `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{` +
			more + `"disable-compression":true,"config":{"audience":"a","more":[1,null]}}}}`
	}
	for _, c := range []struct {
		fields string
		o      kubeconfig.Options
		want   string
	}{
		{"", kubeconfig.Options{}, plain},
		{"      provideClusterInfo: false", kubeconfig.Options{}, plain},
		{
			"      provideClusterInfo: true",
			kubeconfig.Options{},
			cluster(`"server":"https://s","tls-server-name":"tls","certificate-authority-data":"Y2E=","proxy-url":"http://proxy.example",`),
		},
		{
			"      provideClusterInfo: true",
			kubeconfig.Options{CAFile: authorities},
			cluster(`"server":"https://s","tls-server-name":"tls","certificate-authority-data":"ZmlsZQ==","proxy-url":"http://proxy.example",`),
		},
		{
			"      provideClusterInfo: true",
			kubeconfig.Options{Server: "https://else", Insecure: true, ProxyURL: apiclient.NewSecret("socks5://p:1")},
			cluster(`"server":"https://else","insecure-skip-tls-verify":true,"proxy-url":"socks5://p:1",`),
		},
	} {
		c.o.Path = withPlugin(t, "https://s", c.fields)
		cfg, _, err := kubeconfig.Load(t.Context(), c.o)
		require.NoError(t, err)
		require.Equal(t, "jane", cfg.Impersonate.UserName)
		require.JSONEq(t, `[["one","2"],`+c.want+`]`, must.Get(cfg.Credentials.Credentials(t.Context()))(t).Token.Reveal())
	}
}

func TestAUserWithAPlugin(t *testing.T) {
	alone(t)
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"n","namespace":"default"}}`)
	}))
	defer server.Close()
	path := write(t, filepath.Join(t.TempDir(), "config"), strings.NewReplacer(
		"    certificate-authority-data: Y2E=\n", "", "    tls-server-name: tls\n", "", "    proxy-url: http://proxy.example\n", "",
	).Replace(read(t, withPlugin(t, server.URL, ""))))
	self := must.Get(os.Executable())(t)
	require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(path), "bin"), 0o700))
	require.NoError(t, os.Symlink(self, filepath.Join(filepath.Dir(path), "bin", "plugin")))

	cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	client := must.Get(apiclient.New(cfg))(t)
	defer client.CloseIdleConnections()
	maps := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}, namespace)
	must.Get(maps.Get(t.Context(), api.Key{Namespace: namespace, Name: "n"}, metav1.GetOptions{}))(t)
	require.Contains(t, <-asked, `Bearer [["one","2"],{"kind":"ExecCredential"`)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

// TestOptionsThatWinOverAPlugin has other credentials in the entry, and in the options.
func TestOptionsThatWinOverAPlugin(t *testing.T) {
	alone(t)
	for name, c := range map[string]struct {
		fields string
		o      kubeconfig.Options
		want   apiclient.Config
	}{
		"token":           {"    token: t", kubeconfig.Options{}, apiclient.Config{BearerToken: apiclient.NewSecret("t")}},
		"token file":      {"    tokenFile: /t", kubeconfig.Options{}, apiclient.Config{BearerTokenFile: "/t"}},
		"basic":           {"    username: joe", kubeconfig.Options{}, apiclient.Config{Username: "joe"}},
		"certificate":     {"    {client-certificate: /c, client-key: /k}", kubeconfig.Options{}, apiclient.Config{TLS: apiclient.TLS{CertFile: "/c", KeyFile: "/k"}}},
		"token option":    {"", kubeconfig.Options{Token: apiclient.NewSecret("t")}, apiclient.Config{BearerToken: apiclient.NewSecret("t")}},
		"password option": {"", kubeconfig.Options{Username: "joe", Password: apiclient.NewSecret("p")}, apiclient.Config{Username: "joe", Password: apiclient.NewSecret("p")}},
		"file options":    {"", kubeconfig.Options{CertFile: "c", KeyFile: "k"}, apiclient.Config{TLS: apiclient.TLS{CertFile: "c", KeyFile: "k"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(c.fields, "{") {
				c.fields = "    client-certificate: /c\n    client-key: /k"
			}
			c.o.Path = withPlugin(t, "https://s", c.fields)
			cfg, _, err := kubeconfig.Load(t.Context(), c.o)
			require.NoError(t, err)
			require.Nil(t, cfg.Credentials)
			c.want.TLS.CAData, c.want.TLS.ServerName, c.want.Host = []byte("ca"), "tls", "https://s"
			c.want.ProxyURL, c.want.DisableCompression, c.want.Impersonate = cfg.ProxyURL, true, cfg.Impersonate
			require.Equal(t, c.want, cfg)
		})
	}
}

func TestPluginErrorsNameTheField(t *testing.T) {
	home := alone(t)
	path := filepath.Join(home, "config")
	load := func(fields string, o kubeconfig.Options) error {
		write(t, path, "current-context: c\nclusters: [{name: c, cluster: {server: 'https://s', extensions: [{name: client.authentication.k8s.io/exec, extension: 1}, {name: client.authentication.k8s.io/exec, extension: 2}]}}]\n"+
			"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {exec: {"+fields+"}}}]")
		o.Path = path
		_, _, err := kubeconfig.Load(t.Context(), o)
		return err
	}
	const good = "apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Never"
	require.NoError(t, load(good, kubeconfig.Options{}))
	for fields, want := range map[string]string{
		"":                           "users[u].exec.command: it is empty",
		"command: c":                 "users[u].exec.apiVersion: it is empty",
		"command: c, apiVersion: v1": `users[u].exec.apiVersion: "v1" is not known`,
		good + ", env: [{value: " + secret + "}]":                                             `users[u].exec.env: "" cannot be a variable`,
		good + ", env: [{name: a, value: 123}]":                                               "users[u].exec.env.value: a number stands where text belongs",
		good + ", args: " + secret:                                                            "users[u].exec.args: text stands where a list belongs",
		"command: c, apiVersion: client.authentication.k8s.io/v1":                             "users[u].exec.interactiveMode: it is empty",
		"command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: sometimes": `users[u].exec.interactiveMode: "sometimes" is not known`,
		good + ", provideClusterInfo: true":                                                   `clusters[c].extensions: two entries have the name "client.authentication.k8s.io/exec"`,
	} {
		err := load(fields, kubeconfig.Options{})
		require.ErrorContains(t, err, "kubeconfig "+path+": "+want)
		require.NotContains(t, err.Error(), secret)
	}
	err := load(good, kubeconfig.Options{Plugins: exec.Terms{Policy: exec.Policy{Type: exec.Allowlist}}})
	require.ErrorContains(t, err, "kubeconfig: Options.Plugins: exec: Options.Terms.Policy: the allow-list is empty")

	require.NoError(t, load("apiVersion: client.authentication.k8s.io/v1, command: ./c, interactiveMode: Never, installHint: make it", kubeconfig.Options{}))
	missing, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	_, err = missing.Credentials.Credentials(t.Context())
	require.ErrorContains(t, err, "there is no such command: "+filepath.Join(home, "c")+"; to install it: make it")

	require.NoError(t, load(good, kubeconfig.Options{Plugins: exec.Terms{Policy: exec.Policy{Type: exec.DenyAll}}}))
	cfg, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Plugins: exec.Terms{Policy: exec.Policy{Type: exec.DenyAll}}})
	require.NoError(t, err)
	require.ErrorIs(t, must.Err(cfg.Credentials.Credentials(t.Context())), exec.ErrNotAllowed)
}
