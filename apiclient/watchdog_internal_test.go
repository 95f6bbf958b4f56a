package apiclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestAStoppedWatchdogHasNoTimer stops a watchdog before its limit, and while its timer fires.
func TestAStoppedWatchdogHasNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, d := newWatchdog(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
		for range bookmarksToTrust {
			d.saw(watch.Bookmark, false)
		}
		<-time.After(10 * shortestSilence)
		synctest.Wait() // the timer fires at this moment too
		require.NoError(t, ctx.Err(), "no Read is in progress")
		d.stop()
		require.Error(t, ctx.Err())
		require.False(t, d.timer.Stop())
		d.fire()
		require.False(t, d.timer.Stop())
	})
}
