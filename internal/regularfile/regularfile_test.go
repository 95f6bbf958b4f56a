package regularfile_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/regularfile"
)

func TestRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	path, link, other := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	content := must.Get(regularfile.Read(path))(t)
	require.Equal(t, "content", string(content))

	if err := errors.Join(os.Symlink("file", link), os.Symlink("link", other)); err == nil { // not everybody may on Windows
		content = must.Get(regularfile.Read(other))(t)
		require.Equal(t, "content", string(content))
	}

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	content = must.Get(regularfile.Read(path))(t)
	require.Empty(t, content)
}

func TestSizeIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, regularfile.MaxBytes))
	content := must.Get(regularfile.Read(path))(t)
	require.Len(t, content, regularfile.MaxBytes)

	require.NoError(t, os.Truncate(path, regularfile.MaxBytes+1))
	require.EqualError(t, must.Err(regularfile.Read(path)), "read "+path+": it is larger than 4 MiB")
	require.NoError(t, os.Truncate(path, 1<<40))
	require.EqualError(t, must.Err(regularfile.Read(path)), "read "+path+": it is larger than 4 MiB")
}

// endless is a file that grows as fast as it is read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func TestAFileThatGrowsIsNotReadToItsEnd(t *testing.T) {
	var e endless
	require.EqualError(t, must.Err(regularfile.ReadAll(&e)), "it is larger than 4 MiB")
	require.EqualValues(t, regularfile.MaxBytes+1, e.read)

	require.EqualError(t, must.Err(regularfile.ReadAll(io.MultiReader(bytes.NewReader([]byte("secret")), broken{}))), "broken")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestErrorsNameThePathOnce(t *testing.T) {
	dir := t.TempDir()
	_, err := regularfile.Read(dir)
	require.EqualError(t, err, "read "+dir+": it is a directory, not a regular file")

	missing := filepath.Join(dir, "missing")
	for _, read := range []func(string) ([]byte, error){regularfile.Read, regularfile.ReadOpened} {
		_, err = read(missing)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Equal(t, 1, strings.Count(err.Error(), missing), err)
		var typed *fs.PathError
		require.ErrorAs(t, err, &typed)
		require.Equal(t, missing, typed.Path)
	}

	_, err = regularfile.Read(strings.Repeat("long/", 1<<20))
	require.Error(t, err)
	require.Less(t, len(err.Error()), 1024)
}
