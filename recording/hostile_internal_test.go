package recording

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile is a writer of files that no recorder writes.
type hostile struct {
	*writer
	file bytes.Buffer
}

func newHostile(method Compression) *hostile {
	h := &hostile{}
	h.writer = newWriter(&h.file, method, version, start)
	h.opened(&Stream{ID: 1, At: start, Plural: "pods", Version: "v1", Watch: true})
	return h
}

// TestBlocksOutOfOrder reads a difference whose keyframe would be in a block of a file with unsorted numbers.
func TestBlocksOutOfOrder(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		h := newHostile(Plain())
		h.number = 10
		h.difference(1, start, origin{9, 0, 1}, appendCopy([]byte{0}, 1, 0))
		require.NoError(t, h.flush())
		h.number = 1
		h.data(1, start, []byte("x"))
		require.NoError(t, h.close())
		b := h.file.Bytes()
		if !indexed {
			b = b[:len(b)-trailerSize]
		}
		r := reader(t, b)
		var got []string
		for rec := range r.Records(nil) {
			if rec.Kind == Data {
				got = append(got, string(rec.Data))
			}
		}
		require.LessOrEqual(t, len(got), 1, "a keyframe of a later block")
		require.NotEmpty(t, r.Problems())
	}
}

// TestRecordsAreBounded reads a difference that describes more than a record may have, and one to a keyframe that is
// too large.
func TestRecordsAreBounded(t *testing.T) {
	for name, size := range map[string]int{"record": maxKeyframe, "keyframe": maxKeyframe + 1} {
		h := newHostile(Flate())
		h.data(1, start, make([]byte, maxKeyframe+1))
		require.NoError(t, h.flush())
		var d []byte
		if name == "record" {
			d = appendDifferent(d, make([]byte, maxRecord-maxKeyframe/2))
		} else {
			d = appendDifferent(d, nil)
		}
		require.True(t, h.difference(1, start, origin{0, 0, uint32(size)}, appendCopy(d, size, 0)))
		require.NoError(t, h.close())
		r := reader(t, h.file.Bytes())
		for rec := range r.Records(nil) {
			require.LessOrEqual(t, len(rec.Data), maxKeyframe+1, name)
		}
		require.NotEmpty(t, r.Problems(), name)
	}
}

// TestAReferenceNamesItsBlock writes a difference when a block is full and many watches are described again, which
// fills another block.
func TestAReferenceNamesItsBlock(t *testing.T) {
	h := newHostile(Plain())
	for id := range uint64(700) {
		size := 200
		if id == 699 {
			size = 60_000
		}
		h.opened(&Stream{ID: id + 2, At: start, Plural: "pods", Watch: true, Options: map[string]string{"labelSelector": strings.Repeat("x", size)}})
	}
	require.NoError(t, h.flush())
	keyframe := strings.Repeat("k", 2000)
	place := h.data(1, start, []byte(keyframe))
	require.NoError(t, h.flush())
	for h.sinceRe < reopenEvery-1 {
		h.data(2, start, bytes.Repeat([]byte("z"), 3000))
		require.NoError(t, h.flush())
	}
	h.data(2, start, make([]byte, fullBlock))
	require.True(t, h.difference(1, start, place, appendCopy([]byte{0}, len(keyframe), 0)))
	require.NoError(t, h.close())
	r := reader(t, h.file.Bytes())
	found := 0
	for rec, err := range r.Records(nil) {
		require.NoError(t, err)
		if rec.Stream.ID == 1 && rec.Kind == Data {
			require.Equal(t, keyframe, string(rec.Data))
			found++
		}
	}
	require.Empty(t, r.Problems())
	require.Equal(t, 2, found)
}
