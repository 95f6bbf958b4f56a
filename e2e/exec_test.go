package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/exec"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/internal/fixture/must"
)

// plugin is an exec credential plugin: a script that prints a file and counts its runs.
type plugin struct {
	dir        string
	kubeconfig string
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	p := &plugin{dir: t.TempDir()}
	const script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nprintf '%s\\n' \"$KUBERNETES_EXEC_INFO\" >>runs\nexec cat answer\n"
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "plugin"), []byte(script), 0o700))
	p.kubeconfig = filepath.Join(p.dir, "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"exec": {
			"apiVersion": %q, "command": "./plugin", "interactiveMode": "Never", "provideClusterInfo": true}}}]}`,
		server.URL(), base64.StdEncoding.EncodeToString(server.CA()), exec.V1)
	require.NoError(t, os.WriteFile(p.kubeconfig, []byte(text), 0o600))
	return p
}

// answer makes the plugin print a status.
func (p *plugin) answer(t *testing.T, status map[string]any) {
	t.Helper()
	credential := must.Get(json.Marshal(map[string]any{"apiVersion": exec.V1, "kind": "ExecCredential", "status": status}))(t)
	replaceFile(t, filepath.Join(p.dir, "answer"), credential)
}

// runs returns the input of each run of the plugin.
func (p *plugin) runs(t *testing.T) []string {
	t.Helper()
	lines := must.Get(os.ReadFile(filepath.Join(p.dir, "runs")))(t)
	return strings.Split(strings.TrimSpace(string(lines)), "\n")
}

// TestExecPlugin gets tokens and certificates from a plugin. The plugin runs again only when the server rejects the
// credential.
func TestExecPlugin(t *testing.T) {
	admin := newClient(t, adminConfig())
	p := newPlugin(t)
	p.answer(t, map[string]any{"token": cluster.AdminToken})
	config, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: p.kubeconfig})
	require.NoError(t, err)
	client := newClient(t, config)
	requireUser(t, client, "admin")
	f := followConfigMaps(t, client)
	require.Len(t, p.runs(t), 1)
	require.Contains(t, p.runs(t)[0], server.URL())

	// The server rejects the token; the plugin returns a newer one.
	account := serviceAccount(t, admin, newCollection(t, configMaps, configMapBody).namespace)
	p.answer(t, map[string]any{"token": boundToken(t, admin, account, "first")})
	config, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: p.kubeconfig})
	require.NoError(t, err)
	second := newClient(t, config)
	requireUser(t, second, "system:serviceaccount:"+account.Namespace+":"+account.Name)
	p.answer(t, map[string]any{"token": boundToken(t, admin, account, "second")})
	deleteSecret(t, admin, account.Namespace, "first")
	require.NoError(t, eventually(t.Context(), func() error {
		if _, err := whoami(t.Context(), second); err != nil {
			require.NoError(t, err, "the plugin did not run again")
		}
		if len(p.runs(t)) < 3 {
			return fmt.Errorf("the server accepts the first token still")
		}
		return nil
	}))

	// The plugin returns a certificate instead of a token.
	cert, key, err := server.ClientCertificate("by-certificate", "system:masters")
	require.NoError(t, err)
	p.answer(t, map[string]any{"clientCertificateData": string(cert), "clientKeyData": string(key)})
	config, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: p.kubeconfig})
	require.NoError(t, err)
	third := newClient(t, config)
	requireUser(t, third, "by-certificate")

	p.answer(t, map[string]any{"token": "nobody"})
	config, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: p.kubeconfig})
	require.NoError(t, err)
	_, err = whoami(t.Context(), newClient(t, config))
	require.ErrorContains(t, err, "nauthorized")
	require.NotContains(t, err.Error(), "nobody")

	f.agree(t)
	require.Empty(t, f.tellErrors(1), "the first client's watch broke off")
	status, _, err := server.Do(t.Context(), "nobody", http.MethodGet, "/api", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status)
}
