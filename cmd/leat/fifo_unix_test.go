//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// TestAFIFOIsOneClearError names a FIFO without a writer where a command reads a file. A read would never end.
func TestAFIFOIsOneClearError(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	const why = "it is a pipe (FIFO), not a regular file; write the content to a file, and name that file\n"
	config := filepath.Join(dir, "config")
	require.NoError(t, kubeconfig.Write(config, apiclient.Config{Host: "https://server.example", BearerTokenFile: fifo}, "shop"))
	authorities := filepath.Join(dir, "authorities")
	require.NoError(t, kubeconfig.Write(authorities, apiclient.Config{Host: "https://server.example", TLS: apiclient.TLS{CAFile: fifo}}, ""))
	for _, command := range []string{"watch pods", "wait pods/x --for create", "api-resources"} {
		for flags, want := range map[string]string{
			"--kubeconfig " + fifo:        "kubeconfig " + fifo + ": ",
			"--kubeconfig " + config:      "apiclient: Config.BearerTokenFile: read " + fifo + ": ",
			"--kubeconfig " + authorities: "apiclient: Config.TLS.CAFile: read " + fifo + ": ",
			"--server https://server.example --certificate-authority " + fifo: "apiclient: Config.TLS.CAFile: read " + fifo + ": ",
		} {
			out, errs := newOutput(), newOutput()
			require.Equal(t, 1, run(t.Context(), strings.Fields(command+" "+flags), out, errs), errs)
			require.Empty(t, out.String())
			require.Equal(t, "leat: "+want+why, errs.String())
		}
	}
}
