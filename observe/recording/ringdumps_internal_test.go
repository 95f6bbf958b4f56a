package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// TestDumpsWaitForEachOther makes dumps on many goroutines, with a ring that keeps all of them, and one that keeps two.
// All dumps are good, and a dump is not deleted while it is written.
func TestDumpsWaitForEachOther(t *testing.T) {
	for _, kept := range []int{1000, 2} {
		dir := t.TempDir()
		ring := must.Get(NewRing(RingOptions{Dir: dir, MaxDumps: kept}))(t)
		f := &feeder{T: t, ring: ring, sink: ring.ring, version: 10}
		watch := f.nodes()
		for range 50 {
			f.event(watch, "Node", "busy")
		}
		errs := make(chan error, 100)
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				for range 5 {
					_, err := ring.Dump()
					errs <- err
				}
			})
			running.Go(func() {
				ring.report(func(_ string, err error) { errs <- err })
				defer func() { _ = recover() }()
				defer ring.DumpOnPanic()
				panic("a bug")
			})
		}
		running.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		dumps := must.Get(files(dir, "dump-", ".rec"))(t)
		require.Equal(t, kept == 2, len(dumps) == 2)
		for _, path := range dumps {
			file := must.Get(Open(path))(t)
			require.True(t, file.Complete())
			for range file.Records(nil) { // finds the problems
			}
			require.Empty(t, file.Problems())
			require.NoError(t, file.Close())
		}
		require.NoError(t, ring.ring.close())
	}
}

// panicking is a sink that panics at the end of a stream.
type panicking struct{ sink }

func (panicking) ended(RecordKind, uint64, time.Time) { panic("a bug") }

// TestADumpThatPanics panics while the state is copied. DumpOnPanic writes a dump then.
func TestADumpThatPanics(t *testing.T) {
	for _, nodes := range []int{0, 800} { // many are copied under the lock
		ring := must.Get(NewRing(RingOptions{Dir: t.TempDir(), MaxBytes: 1000}))(t)
		f := &feeder{T: t, ring: ring, sink: ring.ring, version: 10}
		watch := f.nodes()
		for range nodes {
			f.event(watch, "Node", fmt.Sprint("node-", f.version))
		}
		ring.backlog.entries = []tapped{{kind: Ended, stream: &tap{recorder: &Recorder{sink: panicking{}}, Stream: &Stream{}}}}
		require.PanicsWithValue(t, "a bug", func() {
			defer ring.DumpOnPanic()
			_, _ = ring.Dump()
		})
		dumps := must.Get(files(ring.o.Dir, "dump-", ".rec"))(t)
		require.Len(t, dumps, 2, "the first one ends with the panic")
		require.NoError(t, ring.ring.close())
	}
}

// TestTheNewestDumpStays has dumps with later times in their names, because the clock was set back.
func TestTheNewestDumpStays(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dump-99990101T000000.000000000-001.rec"), nil, 0o600))
	ring := must.Get(NewRing(RingOptions{Dir: dir, MaxDumps: 1}))(t)
	for range 2 {
		path := must.Get(ring.Dump())(t)
		dumps := must.Get(files(dir, "dump-", ".rec"))(t)
		require.Equal(t, []string{path}, dumps)
	}
	require.NoError(t, remove(filepath.Join(dir, "deleted by another")))
	require.NoError(t, ring.ring.close())
}
