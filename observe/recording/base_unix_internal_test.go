//go:build unix

package recording

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// TestTheStateFollowsNoLink has a link, or a file that others can read, where the state and its copy come. The file
// behind a link stays, and others cannot read the state.
func TestTheStateFollowsNoLink(t *testing.T) {
	for name, plant := range map[string]func(path, victim string) error{
		"a link":            func(path, victim string) error { return os.Symlink(victim, path) },
		"a file of anybody": func(path, _ string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			victim := filepath.Join(t.TempDir(), "victim")
			require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o644))
			check := func() {
				t.Helper()
				content := must.Get(os.ReadFile(victim))(t)
				require.True(t, string(content) == "precious", "%d bytes", len(content))
				info := must.Get(os.Lstat(filepath.Join(dir, baseName)))(t)
				require.Equal(t, os.FileMode(0o600), info.Mode())
			}
			require.NoError(t, plant(filepath.Join(dir, baseName), victim))
			b := must.Get(newBase(dir))(t)
			b.store(nil, make([]byte, minGarbage))
			b.write()
			require.NoError(t, b.err)
			check()
			require.NoError(t, plant(filepath.Join(dir, baseName+"-new"), victim))
			require.NoError(t, b.collect())
			require.Zero(t, b.size)
			check()
			require.NoError(t, b.close())
		})
	}
}
