//go:build unix

package warmstart_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/warmstart"
)

// TestStrangeFiles has something else at the place of a file before the agent starts. The agent lists and makes a file
// that others cannot read, the next one starts from it, and the file behind a link stays as it is.
func TestStrangeFiles(t *testing.T) {
	link := func(path, victim string) error { return os.Symlink(victim, path) }
	fifo := func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }
	open := func(path, _ string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) }
	for name, tc := range map[string]struct {
		at    string
		plant func(path, victim string) error
		cold  string
	}{
		"a link at the file":                   {"", link, "it is a symbolic link, not a regular file"},
		"a FIFO at the file":                   {"", fifo, "it is a pipe (FIFO), not a regular file"},
		"a file of anybody at the file":        {"", open, "others can use it, because its mode is -rw-rw-rw-"},
		"a link at the new file":               {".new", link, "there is no file"},
		"a FIFO at the new file":               {".new", fifo, "there is no file"},
		"a file of anybody at the new file":    {".new", open, "there is no file"},
		"a folder with a file at the new file": {".new", func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "file"), 0o700) }, "there is no file"},
	} {
		t.Run(name, func(t *testing.T) {
			onMachine(t, func(m *machine) {
				m.set("a", "1")
				victim := filepath.Join(m.TempDir(), "victim")
				require.NoError(m, os.WriteFile(victim, []byte("precious"), 0o644))
				require.NoError(m, tc.plant(m.o.Path+tc.at, victim))
				p := m.start(informer.Options[*configMap]{})
				require.Equal(m, map[string]string{"a": "1"}, p.values())
				require.ErrorContains(m, p.warm.Status().Cold, tc.cold)
				p.end()
				content := must.Get(os.ReadFile(victim))(m)
				require.Equal(m, "precious", string(content))
				if info, err := os.Lstat(m.o.Path + tc.at); err == nil && info.IsDir() {
					require.ErrorContains(m, p.warm.Status().Stopped, "directory not empty")
					return
				}
				info := must.Get(os.Lstat(m.o.Path))(m)
				require.Equal(m, os.FileMode(0o600), info.Mode())
				p = m.start(informer.Options[*configMap]{})
				require.True(m, p.warm.Status().Warm)
				require.Equal(m, map[string]string{"a": "1"}, p.values())
			})
		})
	}
}

// TestAFileThatWasOpened has a file that can be used, except that others could have changed it, or that it is behind a
// link. The agent lists, and does not write to it.
func TestAFileThatWasOpened(t *testing.T) {
	for says, change := range map[string]func(path, moved string) error{
		"others can use it, because its mode is -rw-r--r--": func(path, _ string) error { return os.Chmod(path, 0o644) },
		"it is a symbolic link, not a regular file": func(path, moved string) error {
			return errors.Join(os.Rename(path, moved), os.Symlink(moved, path))
		},
	} {
		t.Run(says, func(t *testing.T) {
			onMachine(t, func(m *machine) {
				m.set("a", "1")
				m.start(informer.Options[*configMap]{}).end()
				require.NoError(m, change(m.o.Path, filepath.Join(m.TempDir(), "moved")))
				before := must.Get(os.ReadFile(m.o.Path))(m)
				opened := must.Get(os.Open(m.o.Path))(m)
				defer opened.Close()
				m.set("a", "2")
				p := m.start(informer.Options[*configMap]{})
				require.ErrorContains(m, p.warm.Status().Cold, says)
				require.Len(m, m.logs.All(), 1, "one line")
				p.end()
				after := make([]byte, len(before)+1)
				n, _ := opened.Read(after)
				require.Equal(m, before, after[:n])
				info := must.Get(os.Lstat(m.o.Path))(m)
				require.Equal(m, os.FileMode(0o600), info.Mode())
			})
		})
	}
}

// TestALinkAtTheLock refuses to create or lock a file of somebody else.
func TestALinkAtTheLock(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	require.NoError(t, os.Symlink(other, path+".lock"))
	_, err := warmstart.New(apiclient.NewPartial[*configMap](unreachable(t), configMaps, ""), warmstart.Options{Path: path, Cluster: "test"})
	require.ErrorIs(t, err, syscall.ELOOP)
	require.NoFileExists(t, other)
}
