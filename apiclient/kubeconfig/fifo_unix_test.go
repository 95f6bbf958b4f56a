//go:build unix

package kubeconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// TestAFIFOIsNotRead has a FIFO without a writer. To open it would block.
func TestAFIFOIsNotRead(t *testing.T) {
	home := alone(t)
	fifo, missing := filepath.Join(home, "fifo"), filepath.Join(home, "missing")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	want := ": it is a pipe (FIFO), not a regular file; write the content to a file, and name that file"
	_, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: fifo})
	require.EqualError(t, err, "kubeconfig "+fifo+want)
	t.Setenv("KUBECONFIG", missing+":"+fifo)
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{})
	require.EqualError(t, err, "kubeconfig "+fifo+want)

	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: "/dev/zero"})
	require.ErrorContains(t, err, "kubeconfig /dev/zero: it is a character device, not a regular file")
}

// TestALinkToAFileIsRead has a kubeconfig as kubelet mounts it, and one as a shell redirects it to a descriptor.
func TestALinkToAFileIsRead(t *testing.T) {
	home := alone(t)
	path := write(t, filepath.Join(home, "..data", "config"), overridden)
	require.NoError(t, os.Symlink(filepath.Join("..data", "config"), filepath.Join(home, "config")))
	_, namespace, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: filepath.Join(home, "config")})
	require.NoError(t, err)
	require.Equal(t, "shop", namespace)

	if runtime.GOOS != "linux" {
		return // /dev/fd of other systems shows devices
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, namespace, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: fmt.Sprint("/dev/fd/", f.Fd())})
	require.NoError(t, err)
	require.Equal(t, "shop", namespace)

	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	_, _, err = kubeconfig.Load(t.Context(), kubeconfig.Options{Path: fmt.Sprint("/dev/fd/", r.Fd())})
	require.ErrorContains(t, err, ": it is a pipe (FIFO), not a regular file")
}
