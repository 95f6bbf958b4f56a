package recording

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// TestEffortIsBounded reads a small file whose many differences describe a large frame each. It also scans its large
// blocks.
func TestEffortIsBounded(t *testing.T) {
	h := newHostile(Flate())
	const keyframes = 3
	var places []origin
	for range keyframes {
		places = append(places, h.data(1, start, make([]byte, maxKeyframe)))
		require.NoError(t, h.flush())
	}
	d := appendCopy([]byte{0}, maxKeyframe, 0)
	for i := range 1000 {
		require.True(t, h.difference(1, start, places[i%keyframes], d))
	}
	require.NoError(t, h.close())
	r := reader(t, h.file.Bytes())
	r.free = 50 << 20
	n := 0
	for rec, err := range r.Records(nil) {
		require.NoError(t, err)
		if rec.Kind == Data {
			n++
		}
	}
	require.Greater(t, n, keyframes)
	require.Less(t, n, 200)
	require.Len(t, r.Problems(), 1)
	require.ErrorIs(t, r.Problems()[0], errEffort)

	r.problems = nil
	s := scanner{Reader: r, effort: effort(2 * maxKeyframe), seen: map[uint64]struct{}{}}
	require.NoError(t, s.scan())
	require.Len(t, r.Problems(), 1)
	require.ErrorIs(t, r.Problems()[0], errEffort)
}

// counting counts the bytes that it reads.
type counting struct {
	bytes.Reader
	n int
}

func (c *counting) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.Reader.ReadAt(p, offset)
	c.n += n
	return n, err
}

// TestDamagedPartsAreReadOnce scans headers that are good, in front of blocks that are not.
func TestDamagedPartsAreReadOnce(t *testing.T) {
	h := newHostile(Plain())
	require.NoError(t, h.flush())
	bad := blockHeader{stored: 4, raw: 4, crc: 1}
	file := h.file.Bytes()
	for range 2000 {
		file = bad.append(file)
	}
	from := &counting{Reader: *bytes.NewReader(file)}
	r, err := NewReader(from, int64(len(file)), ReadOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, r.Problems())
	require.Less(t, from.n, 5*len(file))
}

// TestAnIndexHasItsOwnBlocks reads a file with two indexes that name the same block.
func TestAnIndexHasItsOwnBlocks(t *testing.T) {
	h := newHostile(Plain())
	require.NoError(t, h.flush())
	blocks, streams := h.index.Blocks, h.index.Streams
	h.writeIndex(start.UnixNano())
	h.index.Blocks, h.index.Streams = blocks, streams
	require.NoError(t, h.close())
	n := 0
	for range reader(t, h.file.Bytes()).Records(nil) {
		n++
	}
	require.Equal(t, 1, n)
}

// TestManyRequests reads a file with more open requests, and then with more selectors, than a timeline follows.
func TestManyRequests(t *testing.T) {
	for name, n := range map[string]int{"open": maxRunning, "selectors": maxScopes} {
		h := newHostile(Plain())
		for id := uint64(2); id < uint64(n+10); id++ {
			s := &Stream{ID: id, At: start, Plural: "pods", Version: "v1", Code: 200, Watch: true}
			if name == "selectors" {
				s.option("labelSelector", strings.Repeat("x", int(id)))
			}
			h.opened(s)
			if name == "selectors" {
				h.ended(Ended, id, start)
			}
		}
		require.NoError(t, h.close())
		timeline, err := Load[*unstructured.Unstructured](t.Context(), reader(t, h.file.Bytes()), nil)
		require.NoError(t, err)
		require.Len(t, timeline.Notes(), 1, name)
		require.Contains(t, timeline.Notes()[0], "left out")
	}
}

// TestScopesAreAddedOnce opens requests of a scope while too many are open.
func TestScopesAreAddedOnce(t *testing.T) {
	l := newLoader[*identified](nil)
	l.running = maxRunning
	for id := range uint64(3) {
		s := &Stream{ID: id, Plural: "pods", Version: "v1", Code: 200, Watch: true}
		l.record(Record{Kind: Opened, Stream: s})
		require.Empty(t, l.kinds[s.Resource()].all())
	}
}

// TestLoadMayBeEnded ends Load before the first record.
func TestLoadMayBeEnded(t *testing.T) {
	h := newHostile(Plain())
	require.NoError(t, h.close())
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := Load[*unstructured.Unstructured](ended, reader(t, h.file.Bytes()), nil)
	require.ErrorIs(t, err, context.Canceled)
}
