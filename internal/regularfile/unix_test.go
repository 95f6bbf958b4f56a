//go:build unix

package regularfile_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/regularfile"
)

const hint = "; write the content to a file, and name that file"

// TestNothingElseIsRead would block forever if a FIFO or a pipe were read: both have no writer, or one that is silent.
func TestNothingElseIsRead(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.Symlink("fifo", link))
	for _, path := range []string{fifo, link} {
		_, err := regularfile.Read(path)
		require.EqualError(t, err, "read "+path+": it is a pipe (FIFO), not a regular file"+hint)
		_, err = regularfile.ReadOpened(path) // as if the FIFO had replaced a regular file after the first look
		require.EqualError(t, err, "read "+path+": it is a pipe (FIFO), not a regular file"+hint)
	}

	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	_, err = regularfile.Read(socket)
	require.EqualError(t, err, "read "+socket+": it is a socket, not a regular file"+hint)

	_, err = regularfile.Read("/dev/zero")
	require.EqualError(t, err, "read /dev/zero: it is a character device, not a regular file"+hint)
}
