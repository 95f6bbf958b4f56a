package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// exclusive is a Compression that notices when two goroutines compress at once.
type exclusive struct {
	Compression
	busy, shared atomic.Bool
}

func (w *exclusive) Compress(dst, src []byte) []byte {
	if w.busy.Swap(true) {
		w.shared.Store(true)
	}
	for range 10 {
		runtime.Gosched()
	}
	dst = w.Compression.Compress(dst, src)
	w.busy.Store(false)
	return dst
}

// TestDumpsWaitForEachOther makes dumps on many goroutines, with a ring that keeps all of them, and one that keeps two.
// All dumps are good, and a dump is not deleted while it is written.
func TestDumpsWaitForEachOther(t *testing.T) {
	for _, kept := range []int{1000, 2} {
		method := &exclusive{Compression: Flate()}
		dir := t.TempDir()
		ring, err := NewRing(RingOptions{Dir: dir, MaxDumps: kept, Options: Options{Compression: method}})
		require.NoError(t, err)
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
		require.False(t, method.shared.Load())
		dumps, err := files(dir, "dump-", ".rec")
		require.NoError(t, err)
		require.Equal(t, kept == 2, len(dumps) == 2)
		for _, path := range dumps {
			file, err := Open(path, ReadOptions{})
			require.NoError(t, err)
			require.True(t, file.Complete())
			for _, err := range file.Records(nil) {
				require.NoError(t, err)
			}
			require.Empty(t, file.Problems())
			require.NoError(t, file.Close())
		}
		require.NoError(t, ring.ring.close())
	}
}

// panicking is a Compression that panics once.
type panicking struct {
	Compression
	failed bool
}

func (f *panicking) Compress(dst, src []byte) []byte {
	if !f.failed {
		f.failed = true
		panic("a bug")
	}
	return f.Compression.Compress(dst, src)
}

// TestADumpThatPanics panics while the state is copied. DumpOnPanic writes a dump then.
func TestADumpThatPanics(t *testing.T) {
	for _, nodes := range []int{0, 800} { // many are copied under the lock
		ring, err := NewRing(RingOptions{Dir: t.TempDir(), MaxBytes: 1000, Options: Options{Compression: &panicking{Compression: Flate()}}})
		require.NoError(t, err)
		f := &feeder{T: t, ring: ring, sink: ring.ring, version: 10}
		watch := f.nodes()
		for range nodes {
			f.event(watch, "Node", fmt.Sprint("node-", f.version))
		}
		require.PanicsWithValue(t, "a bug", func() {
			defer ring.DumpOnPanic()
			_, _ = ring.Dump()
		})
		dumps, err := files(ring.o.Dir, "dump-", ".rec")
		require.NoError(t, err)
		require.Len(t, dumps, 2, "the first one ends with the panic")
		require.NoError(t, ring.ring.close())
	}
}

// TestTheNewestDumpStays has dumps with later times in their names, because the clock was set back.
func TestTheNewestDumpStays(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dump-99990101T000000.000000000-001.rec"), nil, 0o600))
	ring, err := NewRing(RingOptions{Dir: dir, MaxDumps: 1})
	require.NoError(t, err)
	for range 2 {
		path, err := ring.Dump()
		require.NoError(t, err)
		dumps, err := files(dir, "dump-", ".rec")
		require.NoError(t, err)
		require.Equal(t, []string{path}, dumps)
	}
	require.NoError(t, remove(filepath.Join(dir, "deleted by another")))
	require.NoError(t, ring.ring.close())
}
