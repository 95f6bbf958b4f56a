package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

func TestEveryOptionOfAKubeconfigHasAFlag(t *testing.T) {
	var o kubeconfig.Options
	cmd := &cobra.Command{}
	connectFlags(cmd, &o)
	require.NoError(t, cmd.ParseFlags(strings.Fields(`--kubeconfig path --context ctx --cluster cl --user us -n ns
		-s https://s --tls-server-name tls --certificate-authority ca --insecure-skip-tls-verify --proxy-url http://p --disable-compression
		--token t --username u --password p --client-certificate cert --client-key key
		--as jane --as-uid 7 --as-group a,b --as-group c --as-user-extra k=v=w --as-user-extra k=x`)))
	hidden := apiclient.NewSecret
	require.Equal(t, kubeconfig.Options{
		Path: "path", Context: "ctx", Cluster: "cl", User: "us", Namespace: "ns",
		Server: "https://s", TLSServerName: "tls", CAFile: "ca", Insecure: true, ProxyURL: hidden("http://p"), DisableCompression: true,
		Token: hidden("t"), Username: "u", Password: hidden("p"), CertFile: "cert", KeyFile: "key",
		Impersonate: apiclient.Impersonate{UserName: "jane", UID: "7", Groups: []string{"a,b", "c"}, Extra: map[string][]string{"k": {"v=w", "x"}}},
		Plugins:     o.Plugins,
	}, o)
	require.ErrorContains(t, cmd.ParseFlags([]string{"--as-user-extra", "v"}), "write it as key=value")
	require.NotContains(t, cmd.Flags().FlagUsages(), "http://p")
}

func TestWatchAsAUserWithAPlugin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a script for a shell")
	}
	path := serving(t, "--token", "secret")
	dir := t.TempDir()
	script := `#!/bin/sh
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"secret"}}'`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "login"), []byte(script), 0o700))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	withPlugin := strings.ReplaceAll(string(content), "    token: secret\n", `    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./login
      interactiveMode: IfAvailable
      provideClusterInfo: true
`)
	require.NotEqual(t, string(content), withPlugin)
	path = filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(path, []byte(withPlugin), 0o600))
	out, errs := newOutput(), newOutput()
	code := run(context.Background(), []string{"watch", "configmaps", "--kubeconfig", path, "--once"}, out, errs)
	require.Zero(t, code, errs)
	require.Contains(t, out.String(), "SYNCED    configmaps (0)")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "login"), []byte("#!/bin/sh\necho log in first >&2\nexit 4\n"), 0o700))
	errs = newOutput()
	require.NotZero(t, run(context.Background(), []string{"watch", "configmaps", "--kubeconfig", path, "--once"}, newOutput(), errs))
	require.Contains(t, errs.String(), "credential plugin ./login: it failed: exit status 4; its standard error may have the reason")
}
