package recording

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/internal/fixture/must"
)

// hostile is a writer of files that no recorder writes.
type hostile struct {
	*writer
	file bytes.Buffer
}

func newHostile() *hostile {
	h := &hostile{}
	h.writer = newWriter(&h.file, start)
	h.opened(&Stream{ID: 1, At: start, Plural: "pods", Version: "v1", Watch: true})
	return h
}

// TestEffortIsBounded reads and scans a small file whose blocks decompress to much.
func TestEffortIsBounded(t *testing.T) {
	h := newHostile()
	for range 100 {
		h.data(1, start, make([]byte, 1<<20))
		require.NoError(t, h.flush())
	}
	require.NoError(t, h.close())
	r := reader(t, h.file.Bytes())
	r.free = 50<<20 - 4096*r.size
	n := 0
	for rec := range r.Records(nil) {
		if rec.Kind == Data {
			n++
		}
	}
	require.Greater(t, n, 40)
	require.Less(t, n, 50)
	require.Len(t, r.Problems(), 1)
	require.ErrorIs(t, r.Problems()[0], errEffort)

	r.problems = nil
	s := scanner{Reader: r, effort: effort(2 << 20), seen: map[uint64]struct{}{}}
	s.scan()
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
	h := newHostile()
	require.NoError(t, h.flush())
	bad := blockHeader{stored: 4, raw: 4, crc: 1}
	file := h.file.Bytes()
	for range 2000 {
		file = bad.append(file)
	}
	from := &counting{Reader: *bytes.NewReader(file)}
	r := must.Get(NewReader(from, int64(len(file))))(t)
	require.NotEmpty(t, r.Problems())
	require.Less(t, from.n, 5*len(file))
}

// TestAnIndexHasItsOwnBlocks reads a file with two indexes that name the same block.
func TestAnIndexHasItsOwnBlocks(t *testing.T) {
	h := newHostile()
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
		h := newHostile()
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
		timeline := must.Get(Load[*unstructured.Unstructured](t.Context(), reader(t, h.file.Bytes()), nil))(t)
		require.Len(t, timeline.Notes(), 1, name)
		require.Contains(t, timeline.Notes()[0], "left out")
	}
}

// TestScopesAreAddedOnce opens requests of a scope while too many are open.
func TestScopesAreAddedOnce(t *testing.T) {
	l := newLoader[*unstructured.Unstructured]()
	l.running = maxRunning
	for id := range uint64(3) {
		s := &Stream{ID: id, Plural: "pods", Version: "v1", Code: 200, Watch: true}
		l.record(Record{Kind: Opened, Stream: s})
		require.Empty(t, l.kinds[s.Resource()].scopes)
	}
}

// TestLoadMayBeEnded ends Load before the first record.
func TestLoadMayBeEnded(t *testing.T) {
	h := newHostile()
	require.NoError(t, h.close())
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, must.Err(Load[*unstructured.Unstructured](ended, reader(t, h.file.Bytes()), nil)), context.Canceled)
}
