package deltafifo_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/deltafifo"
)

func many(n int, version string) []*thing {
	list := make([]*thing, n)
	for i := range list {
		list[i] = at("object-with-a-name-of-some-length-"+strconv.Itoa(i), version)
	}
	return list
}

func TestReplaceOfKnownAllocatesNothing(t *testing.T) {
	q := deltafifo.New[*thing]()
	list := many(10_000, "1")
	q.Replace(list, "1")
	drain(t, q)
	ctx := t.Context()
	version := 1
	allocations := testing.AllocsPerRun(10, func() {
		version++
		q.Replace(list, strconv.Itoa(version))
		_ = q.Pop(ctx, func(b batch) {
			if len(b.Objects) > 0 {
				t.Errorf("%d objects changed", len(b.Objects))
			}
		})
	})
	require.LessOrEqual(t, allocations, 4.0, "for 10,000 objects")
}

func TestLookupDoesNotAllocate(t *testing.T) {
	q := deltafifo.New[*thing]()
	long := strings.Repeat("n", 100) // longer than a buffer on the stack for a conversion
	want := &thing{namespace: long, name: long, uid: "1", version: "1"}
	q.Put(want, "1")
	namespace, name := []byte(long), []byte(long)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if got, ok := q.Lookup(namespace, name); !ok || got != want {
			t.Error("not found")
		}
		if _, ok := q.Lookup(namespace, name[1:]); ok {
			t.Error("found what is not there")
		}
	}))
}

// TestPutAndPopDoNotAllocate puts watch events through the queue, which is the usual case. After the first ones, they
// must not allocate.
func TestPutAndPopDoNotAllocate(t *testing.T) {
	q := deltafifo.New[*thing]()
	states := []*thing{at("a", "1"), at("a", "2")}
	ctx := t.Context()
	i := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		i++
		q.Put(states[i%2], states[i%2].version)
		_ = q.Pop(ctx, func(batch) {})
	}))
}

func TestObjectsAreReleased(t *testing.T) {
	q := deltafifo.New[*thing]()
	var gone []weak.Pointer[thing]
	forget := func(o *thing) *thing {
		gone = append(gone, weak.Make(o))
		return o
	}
	ctx := t.Context()
	pop := func() { require.NoError(t, q.Pop(ctx, func(batch) {})) }
	for _, n := range []int{1, 10, 3000, 10} { // small, larger than a buffer that is used again, and small again
		var list []*thing
		for i := range n {
			list = append(list, forget(at(fmt.Sprint("o", i), "1")))
		}
		q.Replace(list, "1")
		list = nil
		pop()
		for i := range n {
			q.Put(forget(at(fmt.Sprint("o", i), "2")), "2")
		}
		for i := range n {
			q.Put(forget(at(fmt.Sprint("o", i), "3")), "3") // a second delta of each object
		}
		pop()
		for i := range n {
			q.Delete(forget(at(fmt.Sprint("o", i), "4")), "4")
		}
		pop()
	}
	kept := at("kept", "1")
	q.Put(kept, "5")
	pop()
	runtime.GC()
	for i, w := range gone {
		require.Nil(t, w.Value(), "state %d of %d is still held", i, len(gone))
	}
	got, _ := q.Get(keyOf("kept"))
	require.Same(t, kept, got)
	runtime.KeepAlive(q)
}

// A program with hundreds of informers would otherwise keep the room of each first list.
func TestBufferOfTheFirstListIsReleased(t *testing.T) {
	q := deltafifo.New[*thing]()
	q.Replace(many(10, "1"), "1")
	var first weak.Pointer[deltafifo.ObjectChanges[*thing]]
	require.NoError(t, q.Pop(t.Context(), func(b batch) {
		require.True(t, b.InitialList)
		first = weak.Make(&b.Objects[0])
	}))
	runtime.GC()
	require.Nil(t, first.Value())
	runtime.KeepAlive(q)
}

func TestHugeBatchDoesNotSlowLaterOnes(t *testing.T) {
	const n = 50_000
	ctx := t.Context()
	pop := func(q *queue) { _ = q.Pop(ctx, func(batch) {}) }
	list := many(n, "1")
	atOnce := func(q *queue) {
		q.Replace(list, "1")
		pop(q)
		q.Put(at("a", "2"), "2")
		pop(q)
	}
	oneByOne := func(q *queue) {
		for _, o := range list {
			q.Put(o, "1")
			pop(q)
		}
	}
	held := map[string]uint64{}
	fill := func(how string, f func(*queue)) *queue {
		q := deltafifo.New[*thing]()
		before := heap()
		f(q)
		held[how] = heap() - min(heap(), before)
		return q
	}
	small, large := fill("one by one", oneByOne), fill("at once", atOnce)
	require.Less(t, held["at once"], held["one by one"]+2<<20, "the buffers of the list are gone: %v", held)
	require.Less(t, thousandEvents(ctx, large), 20*thousandEvents(ctx, small)+time.Millisecond)
	runtime.KeepAlive(list)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// thousandEvents returns the time that a thousand batches of one event take. It is the shortest of several rounds,
// because the machine may be busy.
func thousandEvents(ctx context.Context, q *queue) time.Duration {
	best := time.Hour
	for range 5 {
		start := time.Now()
		for i := range 1000 {
			version := strconv.Itoa(i + 1)
			q.Put(at("a", version), version)
			_ = q.Pop(ctx, func(batch) {})
		}
		best = min(best, time.Since(start))
	}
	return best
}

// TestNamesAreReleased adds and deletes objects. Their names must be released too.
func TestNamesAreReleased(t *testing.T) {
	q := deltafifo.New[*thing]()
	var gone []weak.Pointer[byte]
	for range 10 {
		name := strings.Repeat("n", 100)
		gone = append(gone, weak.Make(unsafe.StringData(name)))
		q.Put(at(name, "1"), "1")
		q.Delete(at(name, "2"), "2")
		drain(t, q)
	}
	runtime.GC()
	for i, name := range gone {
		require.Nil(t, name.Value(), "the %d-th of %d", i, len(gone))
	}
	runtime.KeepAlive(q)
}
