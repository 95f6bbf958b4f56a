package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestBodiesByType sends bodies with the content types of web forms, and without a type, to kube-apiserver and leat
// serve. Both read them as JSON. leat serve refuses bodies without a type only from a browser, because kubectl create
// --raw sends them.
func TestBodiesByType(t *testing.T) {
	namespace := newCollection(t, configMaps, configMapBody).namespace
	served, path := serveInBackground(t)
	for name, at := range map[string]struct {
		client *http.Client
		url    string
	}{
		"kube-apiserver": {server.HTTPClient(cluster.AdminToken), server.URL() + "/api/v1/namespaces/" + namespace + "/configmaps"},
		"leat serve":     {http.DefaultClient, served + "/api/v1/namespaces/default/configmaps"},
	} {
		for i, want := range []struct {
			kind string
			code int
		}{
			{"", 201},
			{"application/json", 201},
			{"text/plain", 415},
			{"multipart/form-data; boundary=x", 415},
			{"application/x-www-form-urlencoded", 415},
		} {
			body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typed-%d"}}`, i)
			r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, at.url, strings.NewReader(body)))(t)
			if want.kind != "" {
				r.Header.Set("Content-Type", want.kind)
			}
			answer := must.Get(at.client.Do(r))(t)
			text := must.Get(io.ReadAll(answer.Body))(t)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, want.code, answer.StatusCode, "%s reads %q: %s", name, want.kind, text)
		}
	}
	file := filepath.Join(t.TempDir(), "raw.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}`), 0o600))
	raw := exec.CommandContext(t.Context(), filepath.Join("bin", "kubectl"), "--kubeconfig", path,
		"create", "--raw", "/api/v1/namespaces/default/configmaps", "-f", file)
	out, err := raw.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// serveInBackground runs leat serve until the test ends. It returns its URL, and a kubeconfig for it.
func serveInBackground(t *testing.T) (url, path string) {
	t.Helper()
	l := newCommandLine(t, "default")
	path = filepath.Join(t.TempDir(), "kubeconfig")
	serve := l.command(context.WithoutCancel(t.Context()), "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", path)
	out := must.Get(serve.StdoutPipe())(t)
	serve.Stderr = os.Stderr
	require.NoError(t, serve.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	t.Cleanup(func() {
		require.NoError(t, serve.Process.Signal(os.Interrupt))
		for lines.Scan() { // Wait closes the pipe, so read it to its end before
		}
		require.NoError(t, serve.Wait())
	})
	cfg, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	return cfg.Host, path
}
