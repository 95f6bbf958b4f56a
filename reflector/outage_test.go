package reflector_test

import (
	"errors"
	"strings"
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
		return script{list("5"), watch(added(at("a", "6")), end), failedProbe(end), failedProbe(end)}
	}
	for name, c := range map[string]struct {
		random        float64
		script        script
		listed, again string
	}{
		"refused":             {0, append(outage(errRefused), probed("7")), "5.6s", "12s"},
		"429":                 {0, outage(errTooMany(0)), "5.6s", "12s"},
		"refused, and spread": {0.5, append(outage(errRefused), probed("7")), "10.9s", "20.5s"},
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
			b.stop()
		})
	}
}

// kube-apiserver sends nothing in a watch from a version that it has not reached. The reflector requests the server's
// version after silence and after an outage.
func TestProbe(t *testing.T) {
	restored := script{list("4", at("a", "3")), watch(stay)}
	overwritten := []string{"overwrite [a@3] at 4"}
	filled := list("9", at("a", "3"), at("b", "9")) // after the restore, version 3 of a is another state
	bubble(t, "after a silent watch", func(t *testing.T) {
		b := run(t, paged(), append(script{filled, watch(open, 5*time.Minute), probed("4")}, restored...)...)
		b.pass(6 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "5m0s probe", "5m0s list rv= limit=500", "5m0s watch rv=4")
		require.Equal(t, overwritten, b.store.log()[1:])
		require.Equal(t, 1, b.Status().Counters.Probes)
		require.Equal(t, 1, b.Status().Counters.Backwards)
		require.ErrorIs(t, b.Status().LastError, reflector.ErrBackwards)
		require.NoError(t, b.Status().Err)
		b.stop()
	})
	bubble(t, "after an outage, with the first connection", func(t *testing.T) {
		b := run(t, paged(), append(script{
			filled, watch(bookmark("9"), errReset), watch(errRefused), failedProbe(errRefused), failedProbe(errRefused), probed("4"),
		}, restored...)...)
		b.pass(time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "800ms watch rv=9", "2.4s probe", "5.6s probe", "12s probe",
			"12s list rv= limit=500", "12s watch rv=4")
		require.Equal(t, "overwrite [a@3] at 4", last(b.store.log()))
		b.stop()
	})
	bubble(t, "in a WatchList", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "3")), initialEnd("9"), time.Minute, errRefused), probed("4"),
			watchList(added(at("a", "3")), initialEnd("4"), stay))
		b.pass(2 * time.Minute)
		b.expectRequests(firstWatchList, "1m0.8s probe", "1m0.8s watchlist rv= NotOlderThan")
		require.Equal(t, "overwrite [a@3] at 4", last(b.store.log()))
		b.stop()
	})
	for _, version := range []string{"9", "12", "", "opaque"} {
		bubble(t, "a server that was not restored: version "+version, func(t *testing.T) {
			b := run(t, paged(), filled, watch(5*time.Minute), probed(version), watch(5*time.Minute, bookmark("9")), watch(stay))
			b.pass(11 * time.Minute)
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "5m0s probe", "5m0s watch rv=9", "10m0s watch rv=9")
			require.NoError(t, b.Status().LastError)
			b.stop()
		})
	}
	bubble(t, "an answer that breaks after its metadata does not count", func(t *testing.T) {
		b := run(t, paged(), filled, watch(5*time.Minute), failedProbe(cutOff{metav1.ListMeta{ResourceVersion: "4"}, errReset}), watch(stay))
		b.pass(6 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "5m0s probe", "5m0.8s watch rv=9")
		require.Equal(t, errReset, b.Status().LastError)
		b.stop()
	})
	bubble(t, "an answer counts, even after its deadline", func(t *testing.T) {
		late := failedProbe(afterDeadline(time.Minute), metav1.ListMeta{ResourceVersion: "4"})
		b := run(t, paged(), append(script{filled, watch(5 * time.Minute), late}, restored...)...)
		b.pass(7 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "5m0s probe", "6m0s list rv= limit=500", "6m0s watch rv=4")
		b.stop()
	})
	bubble(t, "no answer", func(t *testing.T) {
		b := run(t, paged(), filled, watch(5*time.Minute), failedProbe(stay), watch(stay))
		b.pass(6 * time.Minute)
		require.Equal(t, reflector.ErrStalled, b.Status().LastError)
		b.stop()
	})
	bubble(t, "versions without an order: no probe", func(t *testing.T) {
		b := run(t, paged(), list("opaque"), watch(5*time.Minute), watch(errRefused), watch(stay))
		b.pass(10 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=opaque", "5m0s watch rv=opaque", "5m0.8s watch rv=opaque")
		b.stop()
	})
	bubble(t, "short silences add up", func(t *testing.T) {
		b := run(t, paged(), filled, watch(40*time.Second), watch(40*time.Second), probed("9"), watch(stay))
		b.pass(2 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "40s watch rv=9", "1m20s probe", "1m20s watch rv=9")
		b.stop()
	})
	bubble(t, "objects of the answer are ignored", func(t *testing.T) {
		o := paged()
		o.Transform = func(*thing) (*thing, error) { panic("transformed") }
		b := run(t, o, list("9"), watch(5*time.Minute),
			answer{"probe", append([]any{at("c", "3"), bad("", at("d", "4"))}, probed("12").steps...)}, watch(stay))
		b.pass(6 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=9", "5m0s probe", "5m0s watch rv=9")
		b.expectStore("replace [] at 9")
		require.Zero(t, b.Status().Counters.Undecodable)
		b.stop()
	})
}

// The watch follows a failed probe. It follows at once if the server refuses the probe.
func TestFailedProbe(t *testing.T) {
	for name, c := range map[string]struct {
		probes  script
		watched string
	}{
		"403":          {script{failedProbe(errForbid)}, "5m0s"},
		"404":          {script{failedProbe(apierrors.NewNotFound(things.GroupResource(), ""))}, "5m0s"},
		"400":          {script{failedProbe(apierrors.NewBadRequest("field label not supported"))}, "5m0s"},
		"429":          {script{failedProbe(errTooMany(3)), failedProbe(errTooMany(3))}, "5m6s"},
		"503":          {script{failedProbe(apierrors.NewServiceUnavailable("")), failedProbe(apierrors.NewServiceUnavailable(""))}, "5m2.4s"},
		"503, once":    {script{failedProbe(apierrors.NewServiceUnavailable("")), probed("9")}, "5m0.8s"},
		"500":          {script{failedProbe(errInternal)}, "5m0.8s"},
		"410":          {script{failedProbe(errExpired)}, "5m0.8s"},
		"cut":          {script{failedProbe(errReset)}, "5m0.8s"},
		"anything":     {script{failedProbe(errors.New("unknown"))}, "5m0.8s"},
		"never ending": {script{failedProbe(stay)}, "5m45.8s"},
	} {
		bubble(t, name, func(t *testing.T) {
			b := run(t, paged(), append(append(script{list("9"), watch(5 * time.Minute)}, c.probes...), watch(open, stay))...)
			b.pass(7 * time.Minute)
			requests := b.lw.asked().requests
			require.Equal(t, c.watched+" watch rv=9", last(requests), strings.Join(requests, ", "))
			require.Empty(t, b.lw.asked().script)
			require.NoError(t, b.Status().Err, "the watch is open")
			require.Equal(t, reflector.Watching, b.Status().Phase)
			b.stop()
		})
	}
}
