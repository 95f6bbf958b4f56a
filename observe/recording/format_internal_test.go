package recording

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// written is a record as a test expects it.
type written struct {
	kind   RecordKind
	stream uint64
	at     time.Time
	data   string
}

// sample writes a recording with blocks of a few records each. It returns the file and its records.
func sample(blocks int, end bool) ([]byte, []written) {
	var file bytes.Buffer
	var all []written
	w := newWriter(&file, start)
	at := start
	open := func(s *Stream) {
		s.At, s.Version, s.Code = at, "v1", 200
		w.opened(s)
		all = append(all, written{Opened, s.ID, at, ""})
	}
	open(&Stream{ID: 1, Plural: "pods", Watch: true, ContentType: "application/json"})
	open(&Stream{ID: 2, Plural: "nodes", Options: map[string]string{"limit": "500"}})
	for i := range blocks {
		for j := range 3 {
			at = at.Add(time.Millisecond)
			id := uint64(1 + (i+j)%2)
			data := fmt.Sprintf(`{"n":%d,"text":"some text that repeats, some text that repeats"}`, i*3+j)
			w.data(id, at, []byte(data))
			all = append(all, written{Data, id, at, data})
		}
		_ = w.flush()
	}
	w.ended(Ended, 2, at)
	all = append(all, written{Ended, 2, at, ""})
	_ = w.flush()
	if end {
		_ = w.close()
	}
	return file.Bytes(), all
}

// contents returns the records that a reader yields, without gaps.
func contents(t *testing.T, r *Reader, want func(*Stream) bool) (all []written, gaps int) {
	t.Helper()
	for rec := range r.Records(want) {
		all = append(all, written{rec.Kind, rec.Stream.ID, rec.Time.UTC(), string(rec.Data)})
		if rec.Gap {
			gaps++
		}
	}
	return all, gaps
}

// requireRecords requires equal records. The common case costs no reflection, which the race detector makes slow.
func requireRecords(t *testing.T, want, got []written) {
	t.Helper()
	if !slices.Equal(want, got) {
		require.Equal(t, want, got)
	}
}

func reader(t *testing.T, file []byte) *Reader {
	t.Helper()
	return must.Get(NewReader(bytes.NewReader(file), int64(len(file))))(t)
}

// TestRoundTrip reads what was written: with and without an index, and with several indexes and descriptions of
// streams.
func TestRoundTrip(t *testing.T) {
	for _, blocks := range []int{0, 1, 5, 3 * reopenEvery, indexEvery*2 + 7} {
		for _, end := range []bool{true, false} {
			file, want := sample(blocks, end)
			r := reader(t, file)
			require.Equal(t, end, r.Complete())
			require.Empty(t, r.Problems())
			require.True(t, r.Created().Equal(start))
			got, gaps := contents(t, r, nil)
			requireRecords(t, want, got)
			require.Zero(t, gaps)
			first, last := r.Span()
			require.True(t, first.Equal(start) && last.Equal(want[len(want)-1].at))
			require.Len(t, r.Streams(), 2)
			require.Equal(t, "500", r.Streams()[1].Options["limit"])

			pods, _ := contents(t, r, func(s *Stream) bool { return s.Plural == "pods" })
			require.False(t, slices.ContainsFunc(pods, func(p written) bool { return p.stream != 1 }))
		}
	}
	file, _ := sample(0, true)
	require.Empty(t, reader(t, file[:headerSize]).Streams())
}

// TestEveryCut cuts a recording at every byte. The reader returns the records of the complete blocks, in order, and
// reports the cut unless it is between two blocks.
func TestEveryCut(t *testing.T) {
	file, all := sample(6, true)
	before := 0
	for n := headerSize; n < len(file); n++ {
		r := reader(t, file[:n])
		require.False(t, r.Complete(), n)
		got, gaps := contents(t, r, nil)
		requireRecords(t, all[:len(got)], got)
		require.Zero(t, gaps)
		require.GreaterOrEqual(t, len(got), before, "a longer file has no fewer records")
		before = len(got)
		for _, p := range r.Problems() {
			require.EqualValues(t, n, p.Offset+p.Size)
			require.ErrorContains(t, p, "cut off")
		}
	}
	require.Equal(t, len(all), before)
	for n := range headerSize {
		_, err := NewReader(bytes.NewReader(file[:n]), int64(n))
		if n < len(headerMagic) {
			require.ErrorIs(t, err, ErrNotRecording)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestDamage changes every byte of a recording, one at a time. The reader loses at most one block, reports it, and
// marks the streams that lost records.
func TestDamage(t *testing.T) {
	file, all := sample(6, true)
	for at := range file {
		damaged := bytes.Clone(file)
		damaged[at] ^= 0x55
		r, err := NewReader(bytes.NewReader(damaged), int64(len(damaged)))
		if at < len(headerMagic) {
			require.ErrorIs(t, err, ErrNotRecording)
			continue
		}
		require.NoError(t, err)
		got, gaps := contents(t, r, nil)
		for _, w := range got {
			if w.kind != Opened && !slices.Contains(all, w) { // a stream whose head is lost begins with its first record
				require.Contains(t, all, w)
			}
		}
		require.GreaterOrEqual(t, len(got), len(all)-5, "byte %d", at)
		if len(got) < len(all) {
			require.NotEmpty(t, r.Problems(), "byte %d", at)
			require.True(t, gaps > 0 || len(got) == 0 || got[len(got)-1] != all[len(all)-1], "byte %d", at)
		}
	}
}

// TestDamagedMiddle damages a block of a long recording without an index. The rest is read, also the stream whose
// first description was lost.
func TestDamagedMiddle(t *testing.T) {
	file, all := sample(3*reopenEvery, false)
	for i := range 40 {
		file[headerSize+i] = 'x'
	}
	r := reader(t, file)
	require.Len(t, r.Problems(), 1)
	require.ErrorContains(t, r.Problems()[0], "bytes 24 to ")
	got, gaps := contents(t, r, nil)
	require.Equal(t, Opened, got[0].kind)
	require.Equal(t, all[len(all)-1], got[len(got)-1])
	require.Equal(t, 2, gaps, "one for each stream")
}

// TestOtherFiles opens what is not a recording, or one of another version.
func TestOtherFiles(t *testing.T) {
	file, _ := sample(1, true)
	for text, b := range map[string][]byte{
		"the file is not a recording of leat":                      []byte("PK\x03\x04 a zip file, and nothing else"),
		"the recording has format 9, and this leat reads format 3": withFormat(file, 9),
		"the recording has format 2, and this leat reads format 3": withFormat(file, 2),
	} {
		path := filepath.Join(t.TempDir(), "f.rec")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		require.ErrorContains(t, must.Err(Open(path)), text)
	}
	require.ErrorContains(t, must.Err(Open(t.TempDir())), "it is not a regular file")
	require.ErrorIs(t, must.Err(Open(filepath.Join(t.TempDir(), "none"))), os.ErrNotExist)
}

func appendCRC(b []byte) []byte {
	c := checksum(b)
	return []byte{byte(c), byte(c >> 8), byte(c >> 16), byte(c >> 24)}
}

// withFormat changes the format in the header of a file.
func withFormat(file []byte, format byte) []byte {
	b := bytes.Clone(file)
	b[8] = format
	copy(b[20:], appendCRC(b[:20]))
	return b
}

// TestLargeRecords writes data that fills several blocks, and a record that is too large for any.
func TestLargeRecords(t *testing.T) {
	var file bytes.Buffer
	w := newWriter(&file, start)
	w.opened(&Stream{ID: 1, At: start, Plural: "pods", Version: "v1"})
	noise := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise)
	for range 4 {
		w.data(1, start, noise)
	}
	w.data(1, start, make([]byte, maxRecord+1))
	w.data(1, start, noise) // after the stream was lost
	require.NoError(t, w.close())
	got, gaps := contents(t, reader(t, file.Bytes()), nil)
	require.Len(t, got, 6)
	require.Equal(t, Lost, got[5].kind)
	require.Zero(t, gaps)
}

// failing is a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrors(t *testing.T) {
	w := newWriter(failing{}, start)
	w.opened(&Stream{ID: 1, At: start, Plural: "pods", Version: "v1"})
	require.EqualError(t, w.flush(), "recording: write: no space left")
	require.EqualError(t, w.close(), "recording: write: no space left")
}

// FuzzReader reads arbitrary bytes. It must not panic, must not read for longer than the input is, and must yield only
// records of known streams.
func FuzzReader(f *testing.F) {
	file, _ := sample(4, true)
	f.Add(file)
	f.Add(file[:len(file)-trailerSize])
	f.Add(file[:len(file)/2])
	damaged := bytes.Clone(file)
	damaged[headerSize+60] ^= 1
	f.Add(damaged)
	f.Add([]byte(headerMagic))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		for rec := range r.Records(nil) {
			require.NotNil(t, rec.Stream)
			require.GreaterOrEqual(t, rec.Kind, Opened)
		}
		for _, p := range r.Problems() {
			require.NotEmpty(t, p.Error())
		}
	})
}
