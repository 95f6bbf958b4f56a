package reflector_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/reflector"
)

// An outage lasts longer than the server keeps its history. The client lists right after the 410, because it has
// already waited during the outage. All clients come back together, so they spread their lists over five seconds.
func TestExpiredAfterAnOutage(t *testing.T) {
	outage := func(end error) script {
		return script{list("5"), watch(added(at("a", "6")), end), watch(end), watch(end)}
	}
	for name, c := range map[string]struct {
		random        float64
		script        script
		listed, again string
	}{
		"refused":             {0, outage(errRefused), "5.6s", "12s"},
		"429":                 {0, outage(errTooMany(0)), "5.6s", "12s"},
		"refused, and spread": {0.5, outage(errRefused), "10.9s", "20.5s"},
		"resets are no outage": {
			0, script{list("5"), watch(errReset), watch(errReset), watch(added(at("a", "6")), errReset)}, "8.8s", "15.2s",
		},
	} {
		bubble(t, name, func(t *testing.T) {
			o := paged()
			o.Rand = func() float64 { return c.random }
			b := run(t, o, append(c.script, watch(errExpired), list("9"), watch(errExpired), list("10"), watch(stay))...)
			b.pass(time.Minute)
			requests := b.lw.asked().requests
			require.Equal(t, []string{
				c.listed + " list rv=6 NotOlderThan", c.listed + " watch rv=9",
				c.again + " list rv=9 NotOlderThan", c.again + " watch rv=10",
			}, requests[len(requests)-4:], requests)
		})
	}
}

// kube-apiserver sends nothing in a watch from a version that it has not reached. Beside the watch, the reflector
// requests the server's version: after a connection that broke, after an outage, and in silence.
func TestProbe(t *testing.T) {
	const listed, watched = "0s list rv=0 limit=500", "0s watch rv=9"
	filled := list("9", at("a", "3"), at("b", "9")) // after the restore, version 3 of a is another state
	restored := script{list("4", at("a", "3")), watch(stay)}
	// then are the requests after the first list and watch. The last probe shows that the server was restored.
	for name, c := range map[string]struct {
		script script
		then   []string
	}{
		"a reset: one second after the next watch": {
			script{watch(errReset), watch(stay), probed("4")},
			[]string{"800ms watch rv=9", "1.8s probe", "2.6s list rv= limit=500", "2.6s watch rv=4"},
		},
		"a reset after a bookmark": {
			script{watch(bookmark("9"), errReset), watch(stay), probed("4")},
			[]string{"800ms watch rv=9", "1.8s probe", "2.6s list rv= limit=500", "2.6s watch rv=4"},
		},
		"an outage": {
			script{watch(time.Minute, errRefused), watch(errRefused), watch(errRefused), watch(stay), probed("4")},
			[]string{"1m0.8s watch rv=9", "1m2.4s watch rv=9", "1m5.6s watch rv=9", "1m6.6s probe", "1m6.6s list rv= limit=500", "1m6.6s watch rv=4"},
		},
		"probes that fail: again, with backoff": {
			script{watch(errReset), watch(stay), failedProbe(errInternal), failedProbe(errTooMany(3)), failedProbe(errReset), probed("4")},
			[]string{
				"800ms watch rv=9", "1.8s probe", "2.6s probe", "5.6s probe", "8.8s probe", "9.6s list rv= limit=500", "9.6s watch rv=4",
			},
		},
		"a watch that breaks, too: the next one has its own probe": {
			script{watch(errReset), watch(1500*time.Millisecond, errReset), failedProbe(stay), watch(stay), probed("4")},
			[]string{"800ms watch rv=9", "1.8s probe", "3.9s watch rv=9", "4.9s probe", "6.5s list rv= limit=500", "6.5s watch rv=4"},
		},
		"silence": {
			script{watch(time.Minute, bookmark("9"), stay), probed("4")},
			[]string{"2m30s probe", "2m30s list rv= limit=500", "2m30s watch rv=4"},
		},
		"silence again after a probe": {
			script{watch(stay), probed("9"), probed("4")},
			[]string{"1m15s probe", "2m30s probe", "2m30s list rv= limit=500", "2m30s watch rv=4"},
		},
		"silence in several watches": {
			script{watch(40 * time.Second), watch(stay), probed("4")},
			[]string{"40s watch rv=9", "1m15s probe", "1m15s list rv= limit=500", "1m15s watch rv=4"},
		},
		"an answer after its deadline": {
			script{watch(stay), failedProbe(afterDeadline(time.Minute), metav1.ListMeta{ResourceVersion: "4"})},
			[]string{"1m15s probe", "2m15s list rv= limit=500", "2m15s watch rv=4"},
		},
		"a server that answers 403 while it starts": {
			script{watch(errReset), watch(stay), failedProbe(errForbid), failedProbe(errForbid), probed("4")},
			[]string{"800ms watch rv=9", "1.8s probe", "2.6s probe", "4.2s probe", "5s list rv= limit=500", "5s watch rv=4"},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			b := run(t, paged(), slices.Concat(script{filled}, c.script, restored)...)
			b.pass(5 * time.Minute)
			b.expectRequests(append([]string{listed, watched}, c.then...)...)
			require.Equal(t, "overwrite [a@3] at 4", b.store.log()[len(b.store.log())-1])
			require.Equal(t, 1, b.Status().Counters.Backwards)
			require.ErrorIs(t, b.Status().LastError, reflector.ErrBackwards)
			require.NoError(t, b.Status().Err)
			require.NoError(t, b.Status().ProbeErr)
			require.Zero(t, b.Status().UnconfirmedSince)
		})
	}
	bubble(t, "in a WatchList", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "3")), initialEnd("9"), stay), probed("4"),
			watchList(added(at("a", "3")), initialEnd("4"), stay))
		b.pass(2 * time.Minute)
		b.expectRequests(firstWatchList, "1m15s probe", "1m15s watchlist rv= NotOlderThan")
		require.Equal(t, "overwrite [a@3] at 4", last(b.store.log()))
	})
	for _, version := range []string{"9", "12", "", "opaque"} {
		bubble(t, "a server that was not restored: version "+version, func(t *testing.T) {
			b := run(t, paged(), filled, watch(2*time.Minute), probed(version), watch(stay))
			b.pass(140 * time.Second)
			b.expectRequests(listed, watched, "1m15s probe", "2m0s watch rv=9")
			require.NoError(t, b.Status().LastError)
			require.Zero(t, b.Status().UnconfirmedSince)
			require.Equal(t, 1, b.Status().Counters.Probes)
		})
	}
	bubble(t, "versions without an order: no probe", func(t *testing.T) {
		b := run(t, paged(), list("opaque"), watch(5*time.Minute), watch(errRefused), watch(5*time.Minute), watch(stay))
		b.pass(12 * time.Minute)
		require.Zero(t, b.Status().Counters.Probes)
		require.Zero(t, b.Status().UnconfirmedSince)
	})
	bubble(t, "objects of the answer are ignored", func(t *testing.T) {
		o := paged()
		o.Transform = func(*thing) (*thing, error) { panic("transformed") }
		b := run(t, o, list("9"), watch(stay), answer{"probe", append([]any{at("c", "3"), bad("", at("d", "4"))}, probed("12").steps...)})
		b.pass(100 * time.Second)
		b.expectRequests(listed, watched, "1m15s probe")
		b.expectStore("replace [] at 9")
		require.Zero(t, b.Status().Counters.Undecodable)
	})
}

// An event or a bookmark confirms the version, so that no probe is needed.
func TestConfirmedWithoutAProbe(t *testing.T) {
	for name, sign := range map[string]any{"an event": added(at("a", "10")), "a bookmark": bookmark("9")} {
		bubble(t, name, func(t *testing.T) {
			b := run(t, paged(), list("9"), watch(errReset), watch(500*time.Millisecond, sign, stay))
			b.pass(time.Second)
			require.Equal(t, b.lw.start, b.Status().UnconfirmedSince)
			b.pass(time.Second)
			require.Zero(t, b.Status().UnconfirmedSince)
			require.Zero(t, b.Status().Counters.Probes)
		})
	}
	bubble(t, "a bookmark each minute, for ten minutes", func(t *testing.T) {
		var steps []any
		for range 9 {
			steps = append(steps, 61*time.Second, bookmark("9"))
		}
		o := paged()
		o.MinWatchTimeout = 20 * time.Minute
		b := run(t, o, list("9"), watch(append(steps, stay)...))
		b.pass(10 * time.Minute)
		require.Zero(t, b.Status().Counters.Probes)
	})
}

// If the server answers nothing that confirms the version for half a minute, it may have counted up to the version.
// When it answers a probe at last, the reflector lists, and reuses no known object. It does not list before.
func TestUnconfirmed(t *testing.T) {
	filled := list("9", at("a", "3"))
	passed := script{list("11", at("a", "3")), watch(stay)} // another version 3 of a
	failing := func(n int, step any) (s script) {
		for range n {
			s = append(s, failedProbe(step))
		}
		return s
	}
	reset := script{watch(errReset), watch(stay)}
	for name, c := range map[string]struct {
		script script
		listed string
	}{
		"probes fail":               {slices.Concat(reset, failing(7, errInternal), script{probed("11")}), "1m23s"},
		"probes are cut off":        {slices.Concat(reset, failing(7, cutOff{metav1.ListMeta{ResourceVersion: "4"}, errReset}), script{probed("11")}), "1m23s"},
		"probes are never answered": {slices.Concat(reset, failing(3, stay), script{probed("11")}), "38.2s"},
		"a probe is answered too late": {
			slices.Concat(reset, script{failedProbe(afterDeadline(31*time.Second), metav1.ListMeta{ResourceVersion: "11"})}), "33.6s",
		},
		"watches are refused with 429": {
			script{watch(errReset), watch(errTooMany(9)), watch(errTooMany(9)), watch(errTooMany(9)), watch(errTooMany(9)), watch(stay), probed("11")}, "41.6s",
		},
		"a probe is answered, but the server may have answered before": {
			script{watch(errReset), watch(errTooMany(9)), watch(errTooMany(9)), watch(errTooMany(11)), watch(errRefused), watch(stay), probed("11")}, "43.6s",
		},
		"an event comes, but the server may have answered before": {
			script{
				watch(errReset), watch(errTooMany(9)), watch(errTooMany(9)), watch(errTooMany(11)), watch(errRefused),
				watch(modified(at("b", "10")), stay), probed("11"),
			}, "43.6s",
		},
		"events come, but too late": {
			slices.Concat(script{watch(errReset), watch(32*time.Second, modified(at("b", "10")), stay)}, failing(6, errInternal), script{probed("11")}), "52.2s",
		},
	} {
		bubble(t, name, func(t *testing.T) {
			b := run(t, paged(), slices.Concat(script{filled}, c.script, passed)...)
			b.pass(2 * time.Minute)
			requests := b.lw.asked().requests
			require.Equal(t, []string{c.listed + " list rv= limit=500", c.listed + " watch rv=11"}, requests[len(requests)-2:], requests)
			require.Empty(t, b.lw.asked().script)
			require.Equal(t, "overwrite [a@3] at 11", last(b.store.log()))
			require.ErrorIs(t, b.Status().LastError, reflector.ErrUnconfirmed)
			require.NoError(t, b.Status().Err)
			require.Zero(t, b.Status().UnconfirmedSince)
		})
	}
}

// A bookmark that is older than the version reached contradicts it. So the list that follows more than half a minute
// after a connection broke reuses no known object: this version 3 of a may be another one.
func TestAnOldBookmarkConfirmsNothing(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		b := run(t, paged(), list("9", at("a", "3")), watch(errReset), watch(errTooMany(9)), watch(errTooMany(9)), watch(errTooMany(9)),
			watch(bookmark("8")), list("11", at("a", "3")), watch(stay))
		b.pass(time.Minute)
		require.Equal(t, "overwrite [a@3] at 11", last(b.store.log()), b.lw.asked().requests)
	})
}

// A probe without a connection says nothing about the minutes before it, in which the watch was confirmed.
func TestAProbeOfAnOldWatchWithoutAConnection(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		o := paged()
		o.MinWatchTimeout = 20 * time.Minute
		var minutes []any
		for range 5 {
			minutes = append(minutes, 61*time.Second, bookmark("9"))
		}
		b := run(t, o, list("9"), watch(append(minutes, stay)...), failedProbe(errRefused), probed("9"))
		b.pass(8 * time.Minute)
		require.Len(t, b.lw.asked().requests, 4, "no list follows: %v", b.lw.asked().requests)
		require.Zero(t, b.Status().UnconfirmedSince)
	})
}

// A server may refuse probes for good. The watch then goes on, no list follows, and Status shows why the version is
// unconfirmed.
func TestRefusedProbes(t *testing.T) {
	for name, err := range map[string]error{
		"403": errForbid,
		"404": apierrors.NewNotFound(things.GroupResource(), ""),
		"400": apierrors.NewBadRequest("field label not supported"),
	} {
		bubble(t, name, func(t *testing.T) {
			s := script{list("9"), watch(errReset), watch(open, stay)}
			for range 7 {
				s = append(s, failedProbe(err))
			}
			b := run(t, paged(), s...)
			b.pass(2 * time.Minute)
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "800ms watch rv=9",
				"1.8s probe", "2.6s probe", "4.2s probe", "7.4s probe", "13.8s probe", "26.6s probe", "52.2s probe")
			require.Equal(t, b.lw.start, b.Status().UnconfirmedSince)
			require.ErrorIs(t, b.Status().ProbeErr, err)
			require.NoError(t, b.Status().Err, "the watch is open")
			require.Equal(t, reflector.Watching, b.Status().Phase)
		})
	}
}

// Run waits for the callbacks of a probe, and two of them never overlap.
func TestCallbacksOfProbes(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var running, calls atomic.Int32
		o := paged()
		call := func() {
			require.EqualValues(t, 1, running.Add(1))
			<-time.After(time.Second)
			running.Add(-1)
			calls.Add(1)
		}
		o.OnError = func(error) { call() }
		o.OnRequest = func(reflector.Request) { call() }
		b := run(t, o, list("9"), watch(errReset), watch(stay), failedProbe(errInternal))
		b.pass(6500 * time.Millisecond)
		b.cancel()
		require.NoError(t, b.wait())
		require.Zero(t, running.Load())
		require.EqualValues(t, 5, calls.Load())
	})
}
