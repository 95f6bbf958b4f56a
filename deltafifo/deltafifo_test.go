package deltafifo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/deltafifo"
)

// drain pops one batch, which must exist, and copies its slices.
func drain(t testing.TB, q *queue) batch {
	t.Helper()
	var got batch
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, q.Pop(ctx, func(b batch) { got = cloned(b) }))
	return got
}

func cloned(b batch) batch {
	objects := make([]deltafifo.ObjectChanges[*thing], len(b.Objects))
	for i, o := range b.Objects {
		objects[i] = deltafifo.ObjectChanges[*thing]{Key: o.Key, Changes: append([]change(nil), o.Changes...)}
	}
	b.Objects = objects
	return b
}

// empty asserts that there is nothing to pop. It must run in a bubble.
func empty(t *testing.T, q *queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err := q.Pop(ctx, func(b batch) { t.Errorf("unexpected batch: %v", lines(b)) })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestLargeListAfterTheLastDeletion has a pending deletion when a list arrives for which the buffer grows.
func TestLargeListAfterTheLastDeletion(t *testing.T) {
	q := deltafifo.New[*thing]()
	q.Put(at("a", "1"), "1")
	drain(t, q)
	q.Delete(at("a", "2"), "2")
	var list []*thing
	for i := range 2000 {
		list = append(list, at(fmt.Sprint("b", i), "1"))
	}
	q.Replace(list, "3")
	got := lines(drain(t, q))
	require.Len(t, got, 1+len(list))
	require.Equal(t, "Deleted ns/a#uid-a@2", got[0])
}

func TestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		q.Replace([]*thing{at("a", "1")}, "3")
		require.Equal(t, "3", drain(t, q).ResourceVersion)
		q.Put(at("a", "4"), "4")
		q.Bookmark("9")
		require.Equal(t, "9", drain(t, q).ResourceVersion)
		q.Bookmark("12")
		b := drain(t, q)
		require.Empty(t, b.Objects)
		require.Equal(t, "12", b.ResourceVersion)
		q.Bookmark("12")
		q.Bookmark("")
		empty(t, q)
		q.Put(at("a", "13"), "")
		require.Equal(t, "12", drain(t, q).ResourceVersion, "an object without a version does not change the version")
		q.Replace([]*thing{at("a", "13")}, "12")
		require.Equal(t, "12", drain(t, q).ResourceVersion, "every list makes a batch, even without changes")
	})
}

func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		q.Replace([]*thing{at("a", "1")}, "1")
		require.False(t, drain(t, q).Resync)
		q.Resync()
		q.Resync()
		b := drain(t, q)
		require.True(t, b.Resync)
		require.Empty(t, b.Objects)
		require.Equal(t, "1", b.ResourceVersion)
		empty(t, q)
		q.Put(at("a", "2"), "2")
		q.Resync()
		b = drain(t, q)
		require.True(t, b.Resync)
		require.Len(t, b.Objects, 1)
	})
}

func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := deltafifo.New[*thing]()
		<-time.After(time.Second)
		q.Put(at("a", "1"), "1")
		<-time.After(time.Second)
		q.Put(at("a", "2"), "2")
		<-time.After(time.Second)
		require.Equal(t, start.Add(time.Second), drain(t, q).Since, "the first change counts")
		<-time.After(time.Second)
		q.Bookmark("9")
		require.Equal(t, start.Add(4*time.Second), drain(t, q).Since)
	})
}

func TestPopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Pop(ctx, func(batch) { t.Error("called") }) }()
		synctest.Wait()
		start := time.Now()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Zero(t, time.Since(start))

		q.Put(at("a", "1"), "1")
		require.ErrorIs(t, q.Pop(ctx, func(batch) { t.Error("called") }), context.Canceled,
			"an ended context takes nothing, even where there is something")
		require.Len(t, drain(t, q).Objects, 1)
	})
}

func TestPutWakesPop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		got := make(chan []string)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for q.Pop(ctx, func(b batch) { got <- lines(b) }) == nil {
			}
		}()
		for i := range 5 {
			synctest.Wait()
			q.Put(at("a", fmt.Sprint(i)), "")
			require.Len(t, <-got, 1)
		}
		cancel()
	})
}

// TestProducerContinuesDuringProcessing puts a change in while a batch is processed. The producer must not wait, and
// the batch must not contain the change.
func TestProducerContinuesDuringProcessing(t *testing.T) {
	q := deltafifo.New[*thing]()
	for round := range 4 {
		first, second := fmt.Sprint(2*round+1), fmt.Sprint(2*round+2)
		q.Put(at("a", first), first)
		q.Put(at("b", first), first)
		require.NoError(t, q.Pop(t.Context(), func(b batch) {
			before := cloned(b)
			for i := range 100 {
				q.Put(at(fmt.Sprint("other-", i), second), second)
			}
			q.Put(at("a", second), second)
			q.Resync()
			require.Equal(t, before, b)
			require.Equal(t, first, b.ResourceVersion)
		}))
		next := drain(t, q)
		require.Len(t, next.Objects, 101)
		require.Equal(t, "Updated ns/a#uid-a@"+second+" from @"+first, lines(next)[100])
		require.True(t, next.Resync)
	}
}
