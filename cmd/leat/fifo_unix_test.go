//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
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
	for flags, want := range map[string]string{
		"--kubeconfig " + fifo:        "kubeconfig " + fifo + ": ",
		"--kubeconfig " + config:      "apiclient: Config.BearerTokenFile: read " + fifo + ": ",
		"--kubeconfig " + authorities: "apiclient: Config.TLS.CAFile: read " + fifo + ": ",
		"--server https://server.example --certificate-authority " + fifo: "apiclient: Config.TLS.CAFile: read " + fifo + ": ",
	} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), strings.Fields("watch pods "+flags), out, errs), errs)
		require.Empty(t, out.String())
		require.Equal(t, "leat: "+want+why, errs.String())
	}
}

// TestForceMakesAFilePrivate overwrites files that everybody may read, directly and through a symbolic link. Pipes and
// devices keep their modes.
func TestForceMakesAFilePrivate(t *testing.T) {
	dir := t.TempDir()
	open := func(path string) {
		t.Helper()
		var f lateFile
		must.Get(f.Write([]byte("new")))(t)
		require.NoError(t, f.create(path, true))
		require.NoError(t, f.Close())
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		for _, mode := range []os.FileMode{0o644, 0o660, 0o600, 0o200} {
			require.NoError(t, os.WriteFile(file, []byte("some older text"), 0o600))
			require.NoError(t, os.Chmod(file, mode))
			open(path)
			info := must.Get(os.Stat(file))(t)
			require.Equal(t, mode&0o600, info.Mode())
			require.NoError(t, os.Chmod(file, 0o600))
			b := must.Get(os.ReadFile(file))(t)
			require.Equal(t, "new", string(b))
		}
	}
	require.NoError(t, os.Remove(file))
	open(file)
	info := must.Get(os.Stat(file))(t)
	require.EqualValues(t, 0o600, info.Mode())

	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.Chmod(fifo, 0o644))
	read := background(func() ([]byte, error) { return os.ReadFile(fifo) })
	open(fifo)
	r := <-read
	require.NoError(t, r.err)
	require.Equal(t, "new", string(r.value))
	info = must.Get(os.Stat(fifo))(t)
	require.EqualValues(t, 0o644, info.Mode().Perm())
	before := must.Get(os.Stat(os.DevNull))(t)
	open(os.DevNull)
	info = must.Get(os.Stat(os.DevNull))(t)
	require.Equal(t, before.Mode(), info.Mode())
}
