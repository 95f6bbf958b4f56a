package testserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// collection is an answer to the deletion of a collection.
func (b *bench) collection(query string) (names []string, meta doc) {
	b.Helper()
	a := b.do(http.MethodDelete, mapsPath+query, nil)
	require.Equal(b, 200, a.code, "%s", a.body)
	l := a.json(b.T)
	for _, item := range l["items"].([]any) {
		names = append(names, item.(doc)["metadata"].(doc)["name"].(string))
	}
	return names, l["metadata"].(doc)
}

// TestDeleteCollectionOfAPage checks that a deletion with a limit deletes one page, and that its answer has the token
// of the next page.
func TestDeleteCollectionOfAPage(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		for _, name := range []string{"a", "b", "c", "d"} {
			b.ok(http.MethodPost, mapsPath, doc{"metadata": meta(name, "labels", doc{"x": "y"})})
		}
		for _, query := range []string{"continue=bad", "resourceVersion=abc", "limit=x"} {
			b.refused(400, http.MethodDelete, mapsPath+"?labelSelector=x=y&"+query, nil)
		}
		require.Equal(b, []string{"a", "b", "c", "d"}, b.list(mapsPath).names())

		// A fault of lists does not enlarge the page.
		b.Inject(faults.Fault{Effect: faults.IgnoreLimit{}, Match: faults.Match{Verbs: []string{"deletecollection"}}})
		names, first := b.collection("?limit=1")
		require.Equal(b, []string{"a"}, names)
		require.Equal(b, "104", first["resourceVersion"])
		require.EqualValues(b, 3, first["remainingItemCount"])
		require.Equal(b, []string{"b", "c", "d"}, b.list(mapsPath).names())

		// The next page is a page of the same state, also when its objects no longer exist.
		b.ok(http.MethodDelete, mapsPath+"/b", nil)
		names, second := b.collection("?limit=2&continue=" + first["continue"].(string))
		require.Equal(b, []string{"b", "c"}, names)
		require.Equal(b, "104", second["resourceVersion"])
		require.Equal(b, []string{"d"}, b.list(mapsPath).names())
		names, last := b.collection("?labelSelector=x=y&limit=9")
		require.Equal(b, []string{"d"}, names)
		require.Equal(b, doc{"resourceVersion": "107"}, last)
	})
}

// TestDeleteCollectionIsNotStale checks that a Stale fault does not choose what a server deletes.
func TestDeleteCollectionIsNotStale(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a"))
		past := b.Snapshot()
		b.ok(http.MethodPost, mapsPath, configMap("b"))
		stale := b.Inject(faults.Fault{Effect: faults.Stale{At: past}})
		names, meta := b.collection("")
		require.Equal(b, []string{"a", "b"}, names)
		require.Equal(b, "102", meta["resourceVersion"])
		stale.Remove()
		require.Empty(b, b.list(mapsPath).names())
	})
}
