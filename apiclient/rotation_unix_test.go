//go:build unix

package apiclient_test

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

const notRegular = ": it is a pipe (FIFO), not a regular file; write the content to a file, and name that file"

// TestAFIFOIsNotRead names a FIFO without a writer in each field. Opening it would block.
func TestAFIFOIsNotRead(t *testing.T) {
	dir := t.TempDir()
	fifo, regular := filepath.Join(dir, "fifo"), filepath.Join(dir, "regular")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	cert, key := newAuthority(t).client(t, "jane")
	require.NoError(t, os.WriteFile(regular, cert, 0o600))
	for field, cfg := range map[string]apiclient.Config{
		"BearerTokenFile": {BearerTokenFile: fifo},
		"TLS.CAFile":      {TLS: apiclient.TLS{CAFile: fifo}},
		"TLS.CertFile":    {TLS: apiclient.TLS{CertFile: fifo, KeyData: apiclient.NewSecret(string(key))}},
		"TLS.KeyFile":     {TLS: apiclient.TLS{CertFile: regular, KeyFile: fifo}},
	} {
		cfg.Host = "https://server.example"
		require.EqualError(t, must.Err(apiclient.New(cfg)), "apiclient: Config."+field+": read "+fifo+notRegular)
	}
	require.NoError(t, os.Rename(fifo, filepath.Join(dir, "namespace")))
	require.Empty(t, apiclient.InClusterNamespaceAt(func(string) string { return "" }, dir))
}

// TestAFIFOThatReplacesAFileIsNotRead has a request that reads its token again. Opening the FIFO would block this
// request and all others.
func TestAFIFOThatReplacesAFileIsNotRead(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		path := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
		cfg := r.config()
		cfg.BearerTokenFile = path
		v := r.view(cfg)
		r.is(v, "nobody with Bearer one")

		require.NoError(t, os.Remove(path))
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		in(soon)
		r.is(v, "nobody with Bearer one")
		refuse := func(*http.Request) bool { return true }
		r.refuse.Store(&refuse)
		require.ErrorContains(t, must.Err(r.users(v)), "the newer version of the credentials cannot be used: BearerTokenFile: read "+path+notRegular)
	})
}
