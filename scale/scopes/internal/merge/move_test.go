package merge_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/scale/scopes/internal/merge"
)

// twoScopes returns two scopes of all namespaces that have listed at version 9. The first has the object a.
func twoScopes(t *testing.T) (first, second *merge.Stream[*thing], pop func() []string) {
	q := deltafifo.New[*thing]()
	set := merge.New(q)
	t.Cleanup(set.Stop)
	first, second = set.Add("", api.Selector{}), set.Add("", api.Selector{})
	first.Replace([]*thing{at("a", "5")}, "9")
	second.Replace(nil, "9")
	pop = func() (all []string) {
		q.Resync()
		require.NoError(t, q.Pop(t.Context(), func(b batch) { all = lines(b) }))
		return all
	}
	require.Equal(t, []string{"Added ns/a#uid-a@5 initial"}, pop())
	return first, second, pop
}

// TestADeletionWaitsForOtherScopes deletes an object in one scope while the other has not reached the version.
func TestADeletionWaitsForOtherScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, pop := twoScopes(t)
		first.Delete(at("a", "10"), "10")
		<-time.After(900 * time.Millisecond)
		require.Empty(t, pop())
		require.Equal(t, "9", first.Version(), "the version waits too")
		second.Put(at("a", "10"), "10")
		require.Equal(t, []string{"Updated ns/a#uid-a@10 from @5"}, pop(), "it has moved")
		require.Equal(t, "10", first.Version())

		second.Delete(at("a", "11"), "11")
		require.Empty(t, pop())
		first.Bookmark("11")
		require.Equal(t, []string{"Deleted ns/a#uid-a@11"}, pop(), "the other scope has reached the version")

		first.Put(at("a", "12"), "12")
		first.Delete(at("a", "13"), "13")
		require.Equal(t, []string{"Added ns/a#uid-a@12"}, pop())
		<-time.After(1100 * time.Millisecond)
		require.Equal(t, []string{"Deleted ns/a#uid-a@13"}, pop(), "the wait is over")
		require.Equal(t, "13", first.Version())
	})
}

// TestAScopeBehindAndARestore has two scopes with one object. A scope that is behind does not make it older, and a
// restore from a backup does.
func TestAScopeBehindAndARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, pop := twoScopes(t)
		second.Put(at("a", "5"), "9")
		require.Empty(t, pop(), "the same state is no update")
		first.Put(at("a", "20"), "20")
		require.Equal(t, []string{"Updated ns/a#uid-a@20 from @5"}, pop())
		first.Delete(at("a", "21"), "21")
		require.Empty(t, pop(), "the other scope has it, and is behind")
		first.Bookmark("30")
		second.Replace([]*thing{at("a", "3")}, "4")
		require.Equal(t, []string{"Updated ns/a#uid-a@3 from @20"}, pop(), "the server was restored")
	})
}

// TestASilentRemovalBesideAStreamThatIsBehind removes a stream whose object has replaced one of a stream that is
// behind. The object exists, so its end is silent too.
func TestASilentRemovalBesideAStreamThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, pop := twoScopes(t)
		again := &thing{namespace: "ns", name: "a", uid: "another", version: "11"}
		second.Put(again, "11")
		require.Equal(t, []string{"Deleted ns/a#uid-a@5", "Added ns/a#another@11"}, pop())
		second.Remove(true, make(chan struct{}))
		require.Equal(t, []string{"Forgotten ns/a"}, pop())
		first.Delete(at("a", "10"), "10")
		require.Empty(t, pop())
	})
}
