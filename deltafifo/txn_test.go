package deltafifo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// popped takes a batch: its changes, and the objects that it forgets.
func popped(t *testing.T, q *queue) (changes []string, forgotten []api.Key) {
	q.Resync()
	require.NoError(t, q.Pop(t.Context(), func(b batch) { changes, forgotten = lines(b), b.Forgotten }))
	return changes, forgotten
}

// TestTxn makes changes that belong together, with a note.
func TestTxn(t *testing.T) {
	q := deltafifo.New[*thing]()
	q.Annotate(func() (string, any) { return "7", "a note" })
	txn := q.Begin()
	txn.Put(at("a", "1"), true)
	txn.Put(at("b", "2"), false)
	txn.Delete(keyOf("b"), incarnation("b", "another", "3"), false)
	txn.Delete(keyOf("c"), at("c", "3"), false)
	txn.Complete()
	txn.Commit()
	require.NoError(t, q.Pop(t.Context(), func(b batch) {
		require.Equal(t, []string{"Added ns/a#uid-a@1 initial", "Added ns/b#uid-b@2", "Deleted ns/b#uid-b@2 final state unknown"}, lines(b))
		require.Equal(t, "7", b.ResourceVersion)
		require.Equal(t, "a note", b.Note)
		require.True(t, b.InitialList)
	}))
	txn = q.Begin()
	txn.Touch()
	txn.Commit()
	require.NoError(t, q.Pop(t.Context(), func(b batch) { require.Empty(t, b.Objects) }), "a batch without a change")
}

// TestForget forgets objects that come back at once, later, and as another object.
func TestForget(t *testing.T) {
	q := deltafifo.New[*thing]()
	for _, name := range []string{"a", "b", "c", "d"} {
		q.Put(at(name, "1"), "1")
	}
	popped(t, q)
	txn := q.Begin()
	for _, name := range []string{"a", "b", "c", "d", "unknown"} {
		txn.Forget(keyOf(name))
	}
	_, known := txn.Get(keyOf("a"))
	require.False(t, known)
	txn.Put(at("b", "2"), false)
	txn.Put(incarnation("c", "another", "3"), false)
	txn.Commit()
	changes, forgotten := popped(t, q)
	require.Equal(t, []string{
		"Updated ns/b#uid-b@2 from @1", "Deleted ns/c#uid-c@1 final state unknown", "Added ns/c#another@3",
	}, changes)
	require.ElementsMatch(t, []api.Key{keyOf("a"), keyOf("d")}, forgotten)

	q.Put(at("a", "4"), "4")
	changes, forgotten = popped(t, q)
	require.Equal(t, []string{"Added ns/a#uid-a@4"}, changes, "the batch has been taken")
	require.Empty(t, forgotten)
}
