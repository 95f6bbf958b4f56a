package clientnode_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/conformance/harness"
)

var server *harness.Server

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m, harness.Options{}, func(s *harness.Server) { server = s }))
}

// TestClient installs the client in a temporary folder, at the versions of the lock file, and runs the tests in
// testdata/client.test.mjs. Then it runs the example in docs/serve.md.
func TestClient(t *testing.T) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (apt-get install nodejs npm)", program)
		}
	}
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS("testdata")))
	namespace := server.Namespace(t)
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "KUBECONFIG="+server.Kubeconfig, "NAMESPACE="+namespace)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s %s\n%s", name, args, output)
		return string(output)
	}
	run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	t.Log(run("node", "--test", filepath.Join(folder, "client.test.mjs")))

	page, err := os.ReadFile("../../../docs/serve.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(page), "```js\n")
	require.True(t, found, "docs/serve.md has no example")
	example, _, _ = strings.Cut(example, "```\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "example.mjs"), []byte(example), 0o600))
	require.Equal(t, "Always\n", run("node", filepath.Join(folder, "example.mjs")))
}
