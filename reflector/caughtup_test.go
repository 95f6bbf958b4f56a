package reflector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only the end of a list and a bookmark confirm that nothing is missing.
func TestCaughtUpAt(t *testing.T) {
	bubble(t, "pages", func(t *testing.T) {
		began := time.Now()
		b := run(t, paged(), list("5"), watch(time.Minute, bookmark("5"), time.Minute, added(at("a", "6")), stay))
		b.pass(time.Second)
		require.Equal(t, began, b.Status().CaughtUpAt)
		b.pass(5 * time.Minute)
		require.Equal(t, began.Add(time.Minute), b.Status().CaughtUpAt)
	})
	bubble(t, "WatchList", func(t *testing.T) {
		began := time.Now()
		b := run(t, options{}, watchList(added(at("a", "3")), bookmark("4"), 10*time.Second, initialEnd("5"), stay))
		b.pass(5 * time.Second)
		require.Zero(t, b.Status().CaughtUpAt, "a bookmark before the end of the list confirms nothing")
		b.pass(10 * time.Second)
		require.Equal(t, began.Add(10*time.Second), b.Status().CaughtUpAt)
	})
}
