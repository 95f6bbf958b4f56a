package languages_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/leatproject/leat/e2e/conformance/harness"
)

var server *harness.Server

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m, harness.Options{}, func(s *harness.Server) { server = s }))
}

// program runs the programs of one language, with what they need to find the server.
type program struct {
	t           *testing.T
	folder      string // the working directory
	environment []string
}

// newProgram writes what programs need to find the server: a kubeconfig with a plugin that prints the token, and the
// settings of curl. If a command fails, it skips the test and names the packages to install.
func newProgram(t *testing.T, install string, commands ...string) program {
	t.Helper()
	for _, c := range commands {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", c).CombinedOutput(); err != nil {
			t.Skipf("%s fails (apt-get install %s): %s", c, install, out)
		}
	}
	folder := t.TempDir()
	write := func(name, content string) string {
		name = filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		return name
	}
	credential := write("credential.json", fmt.Sprintf(
		`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": %q}}`, server.Config.BearerToken))
	config, err := clientcmd.LoadFromFile(server.Kubeconfig)
	require.NoError(t, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{credential},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	ca := write("ca.crt", string(server.Config.CAData))
	write(".curlrc", fmt.Sprintf("cacert = %q\nheader = \"Authorization: Bearer %s\"\n", ca, server.Config.BearerToken))
	return program{t, folder, append(os.Environ(),
		"KUBECONFIG="+kubeconfig, "SERVER="+server.Config.Host, "CURL_HOME="+folder, "NAMESPACE="+server.Namespace(t))}
}

// run returns what the command prints.
func (p program) run(name string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute) // a watch may wait for what never comes
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = p.folder, p.environment
	output, err := command.CombinedOutput()
	require.NoError(p.t, err, "%s %s\n%s", name, args, output)
	return string(output)
}

// example stores the program of docs/serve.md in a language under a name, and returns its path.
func (p program) example(language, name string) string {
	p.t.Helper()
	page, err := os.ReadFile("../../../docs/serve.md")
	require.NoError(p.t, err)
	_, example, found := strings.Cut(string(page), "```"+language+"\n")
	require.True(p.t, found, "docs/serve.md has no example in %s", language)
	example, _, _ = strings.Cut(example, "```\n")
	path := filepath.Join(p.folder, name)
	require.NoError(p.t, os.WriteFile(path, []byte(example), 0o600))
	return path
}

// file returns the absolute path of a file in testdata.
func (p program) file(name string) string {
	p.t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	require.NoError(p.t, err)
	return path
}

// TestJavaScript installs the client in a temporary folder, at the versions of the lock file.
func TestJavaScript(t *testing.T) {
	p := newProgram(t, "nodejs npm", "node --version", "npm --version")
	require.NoError(t, os.CopyFS(p.folder, os.DirFS("testdata/node")))
	p.run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	t.Log(p.run("node", "--test", filepath.Join(p.folder, "client.test.mjs")))
	require.Equal(t, "Always\n", p.run("node", p.example("js", "example.mjs")))
}

func TestPython(t *testing.T) {
	const python = "/usr/bin/python3" // the one that sees Debian's packages
	p := newProgram(t, "python3-kubernetes", python+" -c 'import kubernetes'")
	t.Log(p.run(python, p.file("client.py"), "-v"))
	require.Equal(t, "ADDED Always\n", p.run(python, p.example("python", "example.py")))
}

func TestRuby(t *testing.T) {
	p := newProgram(t, "ruby-kubeclient", "ruby -e 'require \"kubeclient\"'")
	t.Log(p.run("ruby", p.file("client.rb"), "-v"))
	require.Equal(t, "ADDED Always\n", p.run("ruby", p.example("ruby", "example.rb")))
}

func TestCurl(t *testing.T) {
	p := newProgram(t, "curl", "curl --version")
	t.Log(p.run("sh", "-e", p.file("client.sh")))
	require.Equal(t, "blue\nADDED\n", p.run("sh", "-e", p.example("bash", "example.sh")))
}
