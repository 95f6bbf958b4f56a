package warmstart

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

// FuzzReadLog reads any bytes as a file. Whatever it accepts can be read, continued and rewritten.
func FuzzReadLog(f *testing.F) {
	want := header{Format: format, Boot: "boot", Cluster: "test"}
	path := filepath.Join(f.TempDir(), "seed")
	seed := must.Get(createLog(path, nil))(f)
	key := api.Key{Namespace: "default", Name: "a"}
	for _, payload := range [][]byte{
		want.encode(),
		record{kind: put, version: "7", key: key, data: []byte("{}")}.encode(),
		record{kind: whole, version: "9"}.encode(),
		record{kind: put, version: "12", key: key, data: []byte("{1}")}.encode(),
		record{kind: reached, version: "14"}.encode(),
		record{kind: deleted, version: "15", key: key}.encode(),
	} {
		require.NoError(f, seed.append(payload))
	}
	require.NoError(f, seed.close())
	text := must.Get(os.ReadFile(path))(f)
	f.Add(text)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		state, err := openLog(path, nil, want)
		if err != nil {
			return
		}
		require.LessOrEqual(t, state.file.size, int64(len(data)))
		read := func(r *replayed) (out []string) {
			for all := r.file.newest(r.index); ; {
				_, object, err := all.next()
				if errors.Is(err, io.EOF) {
					return out
				}
				require.NoError(t, err)
				out = append(out, string(object))
			}
		}
		objects := read(state)
		require.Len(t, objects, len(state.index))
		rewritten := must.Get(compacted(state.file, path+".new", func(int64) error { return nil }))(t)
		require.NoError(t, rewritten.close())
		require.NoError(t, state.file.close())
		again := must.Get(openLog(path+".new", nil, want))(t)
		require.Equal(t, objects, read(again))
		require.Equal(t, state.version, again.version)
		require.NoError(t, again.file.close())
	})
}
