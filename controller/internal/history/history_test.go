package history

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

func entry(err string) *Entry {
	return &Entry{Work: workqueue.Work[struct{}]{Causes: []workqueue.Cause{{Source: "pods"}}}, Failed: err != "", Err: err}
}

func TestRoomIsUsedAgain(t *testing.T) {
	h := New[int](2)
	long := entry("no luck")
	long.Work.Causes = make([]workqueue.Cause, 4)
	for i := range long.Work.Causes {
		long.Work.Causes[i].Source = "pods"
	}
	for range perKey {
		h.Note(1, long)
		h.Note(2, entry("no luck"))
	}
	for range perKey {
		h.Note(1, entry("no luck"))
		h.Note(2, entry("no luck"))
	}
	page := h.keys[1]
	h.Note(3, entry(""))
	require.Same(t, page, h.keys[3])
	for i := range page.entries {
		if i == page.count%perKey {
			continue // it is the entry of the new key
		}
		for _, cause := range page.entries[i].Work.Causes[:4] {
			require.Zero(t, cause, "the page keeps no string of the old key alive")
		}
		require.Empty(t, page.entries[i].Err)
	}

	e := entry("")
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Note(3, e) }))
	key := 3
	require.Zero(t, testing.AllocsPerRun(100, func() {
		key++
		h.Note(key, e)
	}), "no allocation for other keys either")
	require.Len(t, h.keys, 2)
	require.Len(t, h.Find(key), 1)
	require.Empty(t, h.Find(1))
}

func TestNoHistory(t *testing.T) {
	h := New[int](-1)
	require.Empty(t, h.Find(1))
	_, found := h.Match(func(int) bool { return true })
	require.Empty(t, found)
}

// TestFoundEntriesStay changes the causes that were noted, and notes others, after Find has returned.
func TestFoundEntriesStay(t *testing.T) {
	h, e := New[int](1), entry("")
	h.Note(1, e)
	e.Work.Causes[0].Source = "changed"
	found := h.Find(1)
	for range perKey {
		h.Note(1, e)
	}
	require.Equal(t, "pods", found[0].Work.Causes[0].Source)
}
