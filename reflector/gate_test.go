package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// countingGate is open, and notes when lists enter and leave.
type countingGate struct {
	start time.Time
	notes []string
}

func (g *countingGate) note(what string) {
	g.notes = append(g.notes, fmt.Sprint(time.Since(g.start), " ", what))
}

func (g *countingGate) Enter(context.Context) (leave func()) {
	g.note("enter")
	return func() { g.note("leave") }
}

// TestGate has a list or a WatchList that ends in each way. All requests of a list share one turn, and a pause after a
// failure is no part of it.
func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		options options
		script  script
		want    []string
	}{
		"pages": {
			paged(),
			script{pageOf("5", "t", time.Second, at("a", "3")), list("5", time.Second, at("b", "4")), watch(stay)},
			[]string{"0s enter", "2s leave"},
		},
		"a page that fails": {
			paged(),
			script{pageOf("5", "t", at("a", "3")), failedList(time.Second, errInternal), list("5", time.Second), watch(stay)},
			[]string{"0s enter", "1s leave", "1.8s enter", "2.8s leave"},
		},
		"the end of the reflector": {
			paged(),
			script{pageOf("5", "t", at("a", "3")), failedList(stay)},
			[]string{"0s enter", "1m20s leave"},
		},
		"the initial state of a WatchList": {
			options{},
			script{watchList(time.Second, added(at("a", "3")), time.Second, initialEnd("5"), time.Minute, added(at("b", "6")), stay)},
			[]string{"0s enter", "2s leave"},
		},
		"a WatchList that fails": {
			options{},
			script{watchList(time.Second, added(at("a", "3")), errReset), watchList(initialEnd("5"), stay)},
			[]string{"0s enter", "1s leave", "1.8s enter", "1.8s leave"},
		},
		"a source without WatchLists": {
			options{},
			script{watchList(time.Second, api.ErrNoWatchList), list("5", time.Second), watch(stay)},
			[]string{"0s enter", "2s leave"},
		},
		"a list after an expired watch": {
			paged(),
			script{list("5"), watch(time.Minute, errExpired), list("9", time.Second), watch(stay)},
			[]string{"0s enter", "0s leave", "1m0s enter", "1m1s leave"},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			gate := &countingGate{start: time.Now()}
			c.options.Gate = gate
			b := run(t, c.options, c.script...)
			b.pass(80 * time.Second)
			b.stop()
			require.Equal(t, c.want, gate.notes)
		})
	}
}

// slowGate lets the first list begin at once, and each other one after five minutes.
type slowGate struct{ entered int }

func (g *slowGate) Enter(ctx context.Context) (leave func()) {
	if g.entered++; g.entered > 1 {
		select {
		case <-time.After(5 * time.Minute):
		case <-ctx.Done():
		}
	}
	return func() {}
}

// TestARestoreDuringTheWait has a server that is restored while a list waits, and counts up to a version that another
// state of b had before. Nothing of before may be used again.
func TestARestoreDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := paged()
		o.Gate = &slowGate{}
		restored := &thing{name: "b", uid: "b", version: "4", content: "after the restore"}
		b := run(t, o, list("9", at("a", "3"), at("b", "4")), watch(time.Minute, errExpired), list("20", at("a", "3"), restored), watch(stay))
		b.pass(2 * time.Minute)
		require.Equal(t, reflector.Queued, b.Status().Phase)
		b.pass(5 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "6m0s list rv= limit=500", "6m0s watch rv=20")
		require.Equal(t, "after the restore", b.known("b").content)
	})
}

// TestTheEndDuringTheWait ends a reflector that waits. No request follows.
func TestTheEndDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := paged()
		o.Gate = &slowGate{entered: 1}
		b := run(t, o)
		b.pass(time.Minute)
		require.Equal(t, reflector.Queued, b.Status().Phase)
		b.stop()
		b.expectRequests()
	})
}

// TestMaxLists has three lists of which two may be in progress.
func TestMaxLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := reflector.MaxLists(2)
		first := gate.Enter(t.Context())
		second := gate.Enter(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		gate.Enter(ctx)()
		require.Equal(t, time.Second, time.Since(start), "a list that gives up frees no place of another one")
		time.AfterFunc(time.Minute, first)
		third := gate.Enter(t.Context())
		require.Equal(t, time.Second+time.Minute, time.Since(start))
		second()
		third()
	})
	require.PanicsWithValue(t, "reflector: MaxLists(0) would let no list begin", func() { reflector.MaxLists(0) })
}
