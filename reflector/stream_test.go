package reflector_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

const streamFirst = "0s stream rv= NotOlderThan"

func TestStreamingList(t *testing.T) {
	bubble(t, "complete with the bookmark, and a watch from there on the same stream", func(t *testing.T) {
		b := run(t, options{}, stream(
			added(at("a", "3")), added(at("b", "5")), time.Second,
			ask(func(b *bench) {
				require.Empty(t, b.store.log(), "nothing before the end")
				require.Equal(t, reflector.StreamingList, b.Status().Phase)
				require.Equal(t, 2, b.Status().Objects)
			}),
			initialEnd("5"), time.Second, modified(at("a", "6")), deleted(at("b", "7")), bookmark("9"), stay,
		))
		b.pass(3 * time.Second)
		b.expectRequests(streamFirst)
		b.expectStore("replace [a@3 b@5] at 5", "put a@6 at 6", "delete b@7 at 7", "bookmark 9")
		require.Equal(t, reflector.Watching, b.Status().Phase)
		require.Equal(t, "9", b.Status().ResourceVersion)
		require.Equal(t, 1, b.Status().Counters.Lists)
		b.stop()
	})
	bubble(t, "changes under way are folded in", func(t *testing.T) {
		b := run(t, options{}, stream(
			added(at("a", "3")), added(at("b", "5")), added(at("c", "2")), added(at("d", "1")),
			modified(at("a", "6")), deleted(at("b", "7")), added(at("e", "8")), modified(at("e", "9")), deleted(at("d", "10")), added(at("d", "11").as("new")),
			initialEnd("12"), stay,
		))
		b.expectStore("replace [a@6 c@2 d@11 e@9] at 12")
		b.stop()
	})
	bubble(t, "a bookmark without the annotation is not the end", func(t *testing.T) {
		b := run(t, options{}, stream(added(at("a", "3")), bookmark("5"), time.Second, stay))
		b.pass(2 * time.Second)
		b.expectStore()
		b.stop()
	})
	bubble(t, "an empty collection", func(t *testing.T) {
		b := run(t, options{}, stream(initialEnd("5"), stay))
		b.expectStore("replace [] at 5")
		b.stop()
	})
	bubble(t, "the server does not stream: pages", func(t *testing.T) {
		for _, refusal := range []error{errInvalid, errForbid} {
			b := run(t, options{}, stream(refusal), list("5", at("a", "1")), watch(stay))
			b.expectRequests(streamFirst, "0s list rv=0 limit=500", "0s watch rv=5")
			require.ErrorIs(t, b.Status().LastError, refusal)
			b.stop()
		}
	})
	bubble(t, "the source cannot stream, and says so: pages, and no failure", func(t *testing.T) {
		cannot := fmt.Errorf("fake: %w", api.ErrCannotStream)
		o := options{
			OnError: func(err error) { require.NoError(t, err) },
			OnRequest: func(r reflector.Request) {
				if r.Verb == "stream" {
					require.Equal(t, "cannot stream", r.Outcome)
					require.Equal(t, cannot, r.Err)
				}
			},
		}
		b := run(t, o, stream(cannot), list("5", at("a", "1")), watch(stay))
		b.expectRequests(streamFirst, "0s list rv=0 limit=500", "0s watch rv=5")
		b.expectStore("replace [a@1] at 5")
		require.NoError(t, b.Status().LastError)
		require.Zero(t, b.Status().Attempt)
		b.stop()
	})
	bubble(t, "the source says so where it was not asked to stream: a failure", func(t *testing.T) {
		b := run(t, paged(), failedList(api.ErrCannotStream), list("5"), watch(api.ErrCannotStream), watch(stay))
		b.pass(time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "800ms list rv=0 limit=500", "800ms watch rv=5", "2.4s watch rv=5")
		b.stop()
	})
	bubble(t, "a failure before is not overcome by that", func(t *testing.T) {
		b := run(t, options{}, stream(errReset), stream(api.ErrCannotStream), list("5", time.Second), watch(stay))
		b.pass(time.Second)
		require.Equal(t, errReset, b.Status().Err)
		b.pass(time.Second)
		require.NoError(t, b.Status().Err)
		b.stop()
	})
	bubble(t, "disabled", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(stay))
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5")
		b.stop()
	})
	bubble(t, "no judgement: again, with backoff, and never pages", func(t *testing.T) {
		b := run(t, options{}, stream(errTooMany(0)), stream(errRefused), stream(errTooMany(5)), stream(errTooMany(0)), stream(initialEnd("5"), stay))
		b.pass(time.Minute)
		b.expectRequests(streamFirst, "800ms stream rv= NotOlderThan", "2.4s stream rv= NotOlderThan", "7.4s stream rv= NotOlderThan", "13.8s stream rv= NotOlderThan")
		b.stop()
	})
	bubble(t, "closed before its end: again, three times, then pages; nothing of it is kept", func(t *testing.T) {
		b := run(t, options{},
			stream(added(at("x", "1"))), stream(added(at("y", "1")), errReset), stream(added(at("z", "1")), errInternal),
			list("5", at("a", "1")), watch(stay))
		b.pass(time.Minute)
		b.expectRequests(streamFirst, "800ms stream rv= NotOlderThan", "2.4s stream rv= NotOlderThan", "5.6s list rv=0 limit=500", "5.6s watch rv=5")
		b.expectStore("replace [a@1] at 5")
		b.stop()
	})
	bubble(t, "closed in good order before its end is an error all the same", func(t *testing.T) {
		var errs []error
		b := run(t, options{OnError: func(err error) { errs = append(errs, err) }}, stream(added(at("x", "1"))), stream(stay))
		require.Equal(t, []error{reflector.ErrNothing}, errs)
		require.Equal(t, 1, b.Status().Attempt)
		b.stop()
	})
	bubble(t, "closed after its end: a watch from the version reached", func(t *testing.T) {
		b := run(t, options{}, stream(added(at("a", "1")), initialEnd("5"), added(at("b", "6")), time.Minute), watch(stay))
		b.pass(2 * time.Minute)
		b.expectRequests(streamFirst, "1m0s watch rv=6")
		b.stop()
	})
	bubble(t, "expired after its end: a new list", func(t *testing.T) {
		b := run(t, options{}, stream(added(at("a", "1")), initialEnd("5"), time.Minute, errExpired), stream(initialEnd("9"), stay))
		b.pass(2 * time.Minute)
		b.expectRequests(streamFirst, "1m0s stream rv=5 NotOlderThan")
		b.expectStore("replace [a@1] at 5", "replace [] at 9")
		b.stop()
	})
	for name, refusal := range map[string]error{"expired": errExpired, "too large": errTooLarge()} {
		bubble(t, name+": the truth at once, then with backoff", func(t *testing.T) {
			b := run(t, options{},
				stream(initialEnd("5"), time.Second, errExpired),
				stream(refusal), stream(refusal), stream(initialEnd("9"), stay))
			b.pass(time.Minute)
			b.expectRequests(streamFirst, "1s stream rv=5 NotOlderThan", "1s stream rv= NotOlderThan", "2.6s stream rv= NotOlderThan")
			b.stop()
		})
	}
}

// client-go waits for the bookmark for ever (its row 40 and defect A1).
func TestStreamingListDeadlines(t *testing.T) {
	bubble(t, "thirty seconds without an event", func(t *testing.T) {
		b := run(t, options{}, stream(added(at("a", "1")), 29*time.Second, added(at("b", "1")), stay), list("5", at("a", "1")), watch(stay))
		b.pass(58 * time.Second)
		require.Len(t, b.lw.asked().requests, 1)
		b.pass(time.Second)
		b.expectRequests(streamFirst, "59s list rv=0 limit=500", "59s watch rv=5")
		b.expectStore("replace [a@1] at 5")
		require.ErrorIs(t, b.Status().LastError, reflector.ErrStalled)
		b.stop()
	})
	bubble(t, "a long list that goes on is let go on", func(t *testing.T) {
		var steps []any
		for version := range 20 {
			steps = append(steps, added(at("a"+strconv.Itoa(version), strconv.Itoa(version+1))), 20*time.Second)
		}
		b := run(t, options{MinWatchTimeout: time.Hour}, stream(append(steps, initialEnd("99"), stay)...))
		b.pass(7 * time.Minute)
		b.expectRequests(streamFirst)
		require.Equal(t, 20, b.Status().Objects)
		b.stop()
	})
	bubble(t, "silence from the beginning", func(t *testing.T) {
		b := run(t, options{}, stream(stay), list("5"), watch(stay))
		b.pass(31 * time.Second)
		b.expectRequests(streamFirst, "30s list rv=0 limit=500", "30s watch rv=5")
		b.stop()
	})
	// A server that does not know sendInitialEvents sends what there is, and then changes, for ever.
	for name, first := range map[string]any{
		"change": modified(at("a", "2")), "bookmark": bookmark("2"), "undecodable change": bad(apiwatch.Modified, at("a", "2")),
	} {
		bubble(t, "a minute after the first "+name, func(t *testing.T) {
			steps := []any{added(at("a", "1")), 20 * time.Second, added(at("b", "1")), 20 * time.Second, first}
			for version := range 20 {
				steps = append(steps, 10*time.Second, modified(at("b", string(rune('3'+version)))))
			}
			b := run(t, options{}, stream(steps...), list("99", at("b", "98")), watch(stay))
			b.pass(101 * time.Second)
			b.expectRequests(streamFirst, "1m40s list rv=0 limit=500", "1m40s watch rv=99")
			b.expectStore("replace [b@98] at 99")
			b.stop()
		})
	}
	bubble(t, "streaming is tried again after ten minutes, with the next list", func(t *testing.T) {
		b := run(t, options{},
			stream(stay), list("5"), watch(5*time.Minute, bookmark("6"), errExpired), list("7"),
			watch(4*time.Minute, bookmark("8")), watch(time.Minute, errExpired), stream(initialEnd("9"), stay))
		b.pass(11 * time.Minute)
		b.expectRequests(streamFirst, "30s list rv=0 limit=500", "30s watch rv=5", "5m30s list rv=6 NotOlderThan", "5m30s watch rv=7",
			"9m30s watch rv=8", "10m30s stream rv=8 NotOlderThan")
		b.stop()
	})
	bubble(t, "none of them holds once the list is complete", func(t *testing.T) {
		b := run(t, options{}, stream(added(at("a", "1")), bookmark("2"), initialEnd("5"), 4*time.Minute, added(at("b", "6")), stay))
		b.pass(5 * time.Minute)
		b.expectRequests(streamFirst)
		b.expectStore("replace [a@1] at 5", "put b@6 at 6")
		b.stop()
	})
}

// A relist of what is known keeps the old pointers, in a stream and in pages, unless there shall be no reuse.
func TestKnownIsReused(t *testing.T) {
	for _, noReuse := range []bool{false, true} {
		for _, paged := range []bool{false, true} {
			bubble(t, fmt.Sprintf("paged=%t noReuse=%t", paged, noReuse), func(t *testing.T) {
				var before *thing
				remember := ask(func(b *bench) { before = b.known("a") })
				script := script{
					stream(added(at("a", "1")), added(at("b", "1")), initialEnd("5"), time.Second, remember, errExpired),
					stream(added(at("a", "1")), added(at("b", "2")), initialEnd("9"), stay),
				}
				if paged {
					script = []answer{
						list("5", at("a", "1"), at("b", "1")), watch(time.Second, remember, errExpired),
						list("9", at("a", "1"), at("b", "2")), watch(stay),
					}
				}
				b := run(t, options{DisableStreaming: paged, NoListReuse: noReuse}, script...)
				b.pass(2 * time.Second)
				require.NotNil(t, before)
				require.Equal(t, !noReuse, before == b.known("a"))
				require.Equal(t, "2", b.known("b").version)
				b.stop()
			})
		}
	}
}
