package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// segments returns the names of the files in a folder that begin so.
func segments(t *testing.T, dir, begin string) (found []string) {
	paths := must.Get(files(dir, begin, ""))(t)
	for _, path := range paths {
		found = append(found, filepath.Base(path))
	}
	return found
}

// kill writes two segments of a process that was killed, in a format, and the file of its state. The second one has a
// change of a node.
func kill(t *testing.T, dir, node string, format byte) {
	for n := 1; n <= 2; n++ {
		file := must.Get(os.Create(segmentName(dir, n)))(t)
		w := newWriter(file, time.Now())
		s := &Stream{ID: 1, At: time.Now(), Version: "v1", Plural: "nodes", Watch: true, Code: 200, ContentType: typeJSON}
		w.opened(s)
		w.data(1, time.Now(), []byte(`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"`+node+`","resourceVersion":"7"}}}`+"\n"))
		if n == 1 {
			require.NoError(t, w.close())
		} else {
			require.NoError(t, w.flush())
		}
		require.NoError(t, file.Close())
		written := must.Get(os.ReadFile(file.Name()))(t)
		require.NoError(t, os.WriteFile(file.Name(), withFormat(written, format), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, baseName), []byte("state"), 0o600))
	require.NoError(t, os.WriteFile(segmentName(dir, 3), nil, 0o600)) // without its header
}

// TestAFolderThatIsAPattern has a folder whose name is a pattern that matches no file.
func TestAFolderThatIsAPattern(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent[1")
	require.NoError(t, os.Mkdir(dir, 0o700))
	kill(t, dir, "busy", version)
	ring := must.Get(NewRing(RingOptions{Dir: dir, MaxDumps: 2}))(t)
	dumps := segments(t, dir, "dump-")
	require.Len(t, dumps, 1)
	require.Contains(t, dumps[0], "-killed-")
	require.Equal(t, []string{"segment-00000001", "segment-base"}, segments(t, dir, "segment-"))
	for range 3 {
		must.Get(ring.Dump())(t)
	}
	require.Len(t, segments(t, dir, "dump-"), 2)
	require.NoError(t, ring.ring.close())
}

// starts starts a ring, and returns the errors that it reports.
func starts(t *testing.T, o RingOptions, told bool) (reported []error) {
	if told {
		o.OnError = func(err error) { reported = append(reported, err) }
	}
	ring := must.Get(NewRing(o))(t)
	f := &feeder{T: t, ring: ring, sink: ring.ring, version: 10}
	f.nodes()
	path, err := ring.Dump()
	require.NoError(t, err, "the ring records")
	require.NoError(t, os.Remove(path))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err = ring.Run(ctx); err != nil {
		require.False(t, told)
		reported = append(reported, err)
	}
	require.Equal(t, ErrStarted, ring.Run(ctx))
	return reported
}

// TestSegmentsOfAKilledProcessAreKept has segments that cannot be copied. The ring starts, reports the error once, and
// keeps the segments of the last two processes. When they can be copied, a later start writes their dumps.
func TestSegmentsOfAKilledProcessAreKept(t *testing.T) {
	for _, told := range []bool{true, false} {
		dir := t.TempDir()
		o := RingOptions{Dir: dir, MaxDumps: 2}
		foreign := filepath.Join(dir, "killed-00000000-00000001.rec")
		require.NoError(t, os.WriteFile(foreign, nil, 0o600))
		set := func(n int) (names []string) {
			for i := range 3 {
				names = append(names, filepath.Base(setName(dir, n, i+1)))
			}
			return names
		}
		kept := []string{filepath.Base(foreign)}
		for n := range 4 {
			kill(t, dir, fmt.Sprint("node-", n), version+1)
			reported := starts(t, o, told)
			require.Len(t, reported, 1)
			require.ErrorContains(t, reported[0], "recording: dump of a killed process (its segments are kept as killed-*.rec): recording: ")
			require.ErrorContains(t, reported[0], "the recording has format 4, and this leat reads format 3")
			require.Empty(t, segments(t, dir, "dump-"))
			if kept = append(kept, set(n+1)...); n >= 2 {
				kept = append(kept[:1], kept[4:]...)
			}
			require.Equal(t, kept, segments(t, dir, "killed-"))
		}
		require.Len(t, starts(t, o, told), 1, "the segments cannot be copied yet")
		for n := range 2 {
			require.NoError(t, os.Remove(setName(dir, 3, n+1)))
		}
		require.Len(t, starts(t, o, told), 1)
		require.Equal(t, append(kept[:1:1], set(4)...), segments(t, dir, "killed-"), "the third set has no records")
		kill(t, dir, "node", version)
		for n := range 2 {
			require.NoError(t, os.Rename(segmentName(dir, n+1), setName(dir, 4, n+1)))
		}
		require.Empty(t, starts(t, o, told))
		require.Equal(t, kept[:1], segments(t, dir, "killed-"))
		require.Len(t, segments(t, dir, "dump-"), 1)
	}
}

// TestSegmentsOfANewerFormatAreKept does not lose the segments of a newer leat.
func TestSegmentsOfANewerFormatAreKept(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(segmentName(dir, 1), withFormat(appendHeader(nil, time.Now()), version+1), 0o600))
	reported := starts(t, RingOptions{Dir: dir}, true)
	require.Len(t, reported, 1)
	var format *VersionError
	require.ErrorAs(t, reported[0], &format)
	require.Len(t, segments(t, dir, "killed-"), 1)
}

// TestARestOfAListInADumpOfAKilledProcess has the rest of a list, which looks like a whole list.
func TestARestOfAListInADumpOfAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	file := must.Get(os.Create(segmentName(dir, 1)))(t)
	w := newWriter(file, time.Now())
	list := &openStream{Stream: &Stream{ID: 1, At: time.Now(), Version: "v1", Plural: "nodes", Code: 200, ContentType: typeJSON}, records: 1}
	w.open[1] = list
	w.index.Streams = append(w.index.Streams, list.Stream)
	w.describe(again, list, time.Now())
	w.data(1, time.Now(), []byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"kind":"Node","apiVersion":"v1","metadata":{"name":"no"}}]}`))
	w.ended(Ended, 1, time.Now())
	require.NoError(t, w.close())
	require.NoError(t, file.Close())
	ring := must.Get(NewRing(RingOptions{Dir: dir}))(t)
	require.NoError(t, ring.ring.close())
	dumps := must.Get(files(dir, "dump-", ""))(t)
	require.Len(t, dumps, 1)
	dump := must.Get(Open(dumps[0]))(t)
	defer dump.Close()
	var kinds []RecordKind
	for rec := range dump.Records(nil) {
		kinds = append(kinds, rec.Kind)
	}
	require.Equal(t, []RecordKind{Opened, Lost}, kinds)
}

// TestAFullDiskAtTheBeginning has a disk on which no file can be created. Requests go on, and OnError gets the error.
func TestAFullDiskAtTheBeginning(t *testing.T) {
	full := &os.PathError{Op: "open", Path: baseName, Err: syscall.ENOSPC}
	require.True(t, isFull(fmt.Errorf("recording: %w", full)))
	require.False(t, isFull(os.ErrPermission))
	require.False(t, isFull(nil))
	synctest.Test(t, func(t *testing.T) {
		var reported error
		ring := must.Get(NewRing(RingOptions{Dir: t.TempDir(), Options: Options{OnError: func(err error) { reported = err }}}))(t)
		require.NoError(t, ring.ring.close())
		ring.ring = &ringSink{err: full}
		ring.sink = ring.ring
		require.ErrorIs(t, must.Err(ring.Dump()), syscall.ENOSPC)
		stop := fixture.Start(t, ring.Run)
		rt := ring.Wrap(answers(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"items":[]}`))}, nil
		}))
		for range 3 {
			req := must.Get(http.NewRequest(http.MethodGet, "https://server/api/v1/pods", nil))(t)
			resp := must.Get(rt.RoundTrip(req))(t)
			text := must.Get(io.ReadAll(resp.Body))(t)
			require.NotEmpty(t, text)
			<-time.After(time.Second)
		}
		stop()
		require.ErrorIs(t, reported, syscall.ENOSPC)
	})
	_, err := NewRing(RingOptions{Dir: string([]byte{0})})
	require.Error(t, err, "the folder cannot be made")
	require.False(t, errors.Is(err, syscall.ENOSPC))
}
