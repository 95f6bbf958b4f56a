package kubeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// FuzzLoad reads arbitrary files: an error is one line that names the file, and a success has a server and a namespace.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(whole), "dev")
	f.Add([]byte("clusters: [{name: c, cluster: {server: x}}]\ncontexts: [{name: a, context: {cluster: c}}]"), "a")
	f.Add([]byte("a: &a [*a]"), "")
	f.Add([]byte("users: [{name: u, user: {token: 1}}]"), "x")
	f.Add([]byte("? {a: b}\n: c"), "")
	f.Add([]byte("\ufeff"+overridden+"---\n# no more"), "one")
	f.Add([]byte("clusters: [{name: c, cluster: {server: 'https://s', extensions: [{name: client.authentication.k8s.io/exec, extension: {a: b}}]}}]\nusers: [{name: u, user: {exec: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, provideClusterInfo: true, env: [{name: a, value: b}]}}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]"), "a")
	path := filepath.Join(f.TempDir(), "config") // a worker has a process, and so a folder, of its own
	f.Fuzz(func(t *testing.T, content []byte, context string) {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		cfg, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path, Context: context})
		if err != nil {
			var typed *kubeconfig.Error
			require.ErrorAs(t, err, &typed)
			require.Contains(t, err.Error(), path)
			if !strings.Contains(string(content)+context, "\n") {
				require.NotContains(t, err.Error(), "\n")
			}
			return
		}
		require.NoError(t, cfg.Validate())
		require.NotEmpty(t, namespace)
	})
}
