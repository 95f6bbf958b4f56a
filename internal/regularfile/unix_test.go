//go:build unix

package regularfile_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
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
		require.EqualError(t, must.Err(regularfile.Read(path)), "read "+path+": it is a pipe (FIFO), not a regular file"+hint)
		_, err := regularfile.ReadOpened(path) // as if the FIFO had replaced a regular file after the first look
		require.EqualError(t, err, "read "+path+": it is a pipe (FIFO), not a regular file"+hint)
	}

	socket := filepath.Join(dir, "s")
	l := must.Get(net.Listen("unix", socket))(t)
	defer l.Close()
	require.EqualError(t, must.Err(regularfile.Read(socket)), "read "+socket+": it is a socket, not a regular file"+hint)

	require.EqualError(t, must.Err(regularfile.Read("/dev/zero")), "read /dev/zero: it is a character device, not a regular file"+hint)
}

// TestCreateFollowsNothing creates a file in place of a link, of a FIFO and of a file that others can use. A process
// that has the old file open gets nothing of the new one.
func TestCreateFollowsNothing(t *testing.T) {
	for name, plant := range map[string]func(path, victim string) error{
		"nothing":           func(string, string) error { return nil },
		"a symbolic link":   func(path, victim string) error { return os.Symlink(victim, path) },
		"a dangling link":   func(path, victim string) error { return os.Symlink(victim+".none", path) },
		"a hard link":       func(path, victim string) error { return os.Link(victim, path) },
		"a FIFO":            func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
		"a file of anybody": func(path, _ string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, victim := filepath.Join(dir, "file"), filepath.Join(dir, "victim")
			require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o644))
			require.NoError(t, plant(path, victim))
			var before os.FileInfo
			if old, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
				defer old.Close()
				before = must.Get(old.Stat())(t)
			}
			f := must.Get(regularfile.Create(path))(t)
			defer f.Close()
			must.Get(f.WriteAt([]byte("secret"), 0))(t)
			after := must.Get(os.Lstat(path))(t)
			require.Equal(t, os.FileMode(0o600), after.Mode(), "a new regular file")
			require.False(t, before != nil && os.SameFile(before, after))
			content := must.Get(os.ReadFile(victim))(t)
			require.Equal(t, "precious", string(content))
			require.NoFileExists(t, victim+".none")
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "folder", "file"), nil, 0o600))
	_, err := regularfile.Create(filepath.Join(dir, "folder"))
	require.EqualError(t, err, "create "+filepath.Join(dir, "folder")+": directory not empty")
	require.FileExists(t, filepath.Join(dir, "folder", "file"))
}

// TestOnlyPrivateFilesAreOpened would block forever if a FIFO were opened without O_NONBLOCK.
func TestOnlyPrivateFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	f := must.Get(regularfile.Create(at("own")))(t)
	require.NoError(t, f.Close())
	require.NoError(t, os.Symlink("own", at("link")))
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	for name, mode := range map[string]os.FileMode{"group": 0o660, "read": 0o604, "written": 0o602} {
		require.NoError(t, os.WriteFile(at(name), nil, 0o600))
		require.NoError(t, os.Chmod(at(name), mode))
	}
	for name, says := range map[string]string{
		"own": "", "group": "",
		"link":    "it is a symbolic link, not a regular file",
		"fifo":    "it is a pipe (FIFO), not a regular file",
		"read":    "others can use it, because its mode is -rw----r--",
		"written": "others can use it, because its mode is -rw-----w-",
		"none":    "no such file or directory",
		"":        "it is a directory, not a regular file",
	} {
		f, err := regularfile.OpenPrivate(at(name))
		if says == "" {
			require.NoError(t, err)
			must.Get(f.WriteAt([]byte("x"), 0))(t)
			require.NoError(t, f.Close())
			continue
		}
		require.EqualError(t, err, "open "+at(name)+": "+says)
	}
	// As if each had replaced the file of this user after the first look.
	for name, says := range map[string]string{
		"link": "too many levels of symbolic links",
		"fifo": "it is a pipe (FIFO), not a regular file",
		"read": "others can use it, because its mode is -rw----r--",
	} {
		require.EqualError(t, must.Err(regularfile.OpenPrivateNow(at(name))), "open "+at(name)+": "+says)
	}
	if os.Chown(at("own"), 65534, 65534) != nil {
		return // only root may give a file away
	}
	require.EqualError(t, must.Err(regularfile.OpenPrivate(at("own"))), "open "+at("own")+": another user owns it")
}
