package informer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

func TestStatusString(t *testing.T) {
	failed := errors.New("connection refused")
	for _, tc := range []struct {
		want   string
		status informer.Status
	}{
		{"widgets.leat.test: not running; was it, or its factory, added to the manager?", informer.Status{
			Reflector: reflector.Status{Phase: reflector.Idle, Remaining: -1},
		}},
		{"widgets.leat.test: not synced, WatchList, 1 object received", informer.Status{
			Reflector: reflector.Status{Phase: reflector.WatchList, Objects: 1},
		}},
		{"widgets.leat.test: not synced, listing, 500 objects received of 1700", informer.Status{
			Reflector: reflector.Status{Phase: reflector.Listing, Objects: 500, Remaining: 1200},
		}},
		{"widgets.leat.test: not synced, waiting, 0 objects received, after a failure: connection refused (the server asked for a pause of 7s)", informer.Status{
			Reflector: reflector.Status{Phase: reflector.Waiting, Err: failed, Attempt: 1, RetryAfter: 7 * time.Second},
		}},
		{"widgets.leat.test: synced, 1 object at version 42, watching, 3 queued", informer.Status{
			Synced: true, Objects: 1, ResourceVersion: "42", Depth: 3, Reflector: reflector.Status{Phase: reflector.Watching},
		}},
		{"widgets.leat.test: synced, 1 object at version 42, watching", informer.Status{
			Synced: true, Objects: 1, ResourceVersion: "42",
			Reflector: reflector.Status{Phase: reflector.Watching, Objects: 500, Remaining: 1200, LastError: failed},
		}},
		{"widgets.leat.test: synced, 1 object at version 42, watching, unconfirmed since 12:00:00: connection refused", informer.Status{
			Synced: true, Objects: 1, ResourceVersion: "42", Reflector: reflector.Status{
				Phase: reflector.Watching, ProbeErr: failed, UnconfirmedSince: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
			},
		}},
		{
			"widgets.leat.test: synced, 2 objects at version 42, waiting, 1 undecodable, 3 malformed, objects change without a new version, after 2 failures: connection refused",
			informer.Status{
				Synced: true, Objects: 2, ResourceVersion: "42", Undecodable: 1,
				Reflector: reflector.Status{
					Phase: reflector.Waiting, Unversioned: true, Counters: reflector.Counters{Malformed: 3}, Err: failed, Attempt: 2,
				},
			},
		},
	} {
		tc.status.Name = widgets.String()
		require.Equal(t, tc.want, tc.status.String())
	}
}

// TestDepth holds a batch back, and counts the objects that change meanwhile.
func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, held := newSource(), make(chan struct{})
		src.set("a", 1)
		i := informer.New(src, informer.Options[*widget]{})
		i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) { <-held }})
		defer running(t, i)()
		synctest.Wait()
		require.Zero(t, i.Status().Depth, "an object in a batch is not queued")
		src.set("b", 1)
		src.set("b", 2)
		src.set("c", 1)
		synctest.Wait()
		require.Equal(t, 2, i.Status().Depth)
		close(held)
		synctest.Wait()
		require.Zero(t, i.Status().Depth)
	})
}
