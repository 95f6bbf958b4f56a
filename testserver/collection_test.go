package testserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// dryRun is the body of a deletion that changes nothing. A deletion with a body takes no preconditions from the query.
var dryRun = doc{"dryRun": []string{"All"}}

// collection is an answer to the deletion of a collection.
func (b *bench) collection(query string, body any) (names []string, meta doc) {
	b.Helper()
	a := b.do(http.MethodDelete, mapsPath+query, body)
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
		names, first := b.collection("?limit=1", nil)
		require.Equal(b, []string{"a"}, names)
		require.Equal(b, "104", first["resourceVersion"])
		require.EqualValues(b, 3, first["remainingItemCount"])
		require.Equal(b, []string{"b", "c", "d"}, b.list(mapsPath).names())

		// The next page is a page of the same state, also when its objects no longer exist.
		b.ok(http.MethodDelete, mapsPath+"/b", nil)
		names, second := b.collection("?limit=2&continue="+first["continue"].(string), nil)
		require.Equal(b, []string{"b", "c"}, names)
		require.Equal(b, "104", second["resourceVersion"])
		require.Equal(b, []string{"d"}, b.list(mapsPath).names())
		names, last := b.collection("?labelSelector=x=y&limit=9", nil)
		require.Equal(b, []string{"d"}, names)
		require.Equal(b, doc{"resourceVersion": "107"}, last)
	})
}

// TestDeleteCollectionOfAVersion checks that a version selects the objects of this version, and that it is a
// precondition of each deletion if it is in the query alone.
func TestDeleteCollectionOfAVersion(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		for _, name := range []string{"a", "b", "c"} {
			b.ok(http.MethodPost, mapsPath, configMap(name))
		}
		for query, want := range map[string][]string{
			"?resourceVersion=102":                                     {"a", "b"},
			"?resourceVersion=102&resourceVersionMatch=Exact":          {"a", "b"},
			"?resourceVersion=102&resourceVersionMatch=NotOlderThan":   {"a", "b", "c"},
			"?resourceVersion=0&limit=1":                               {"a", "b", "c"},
			"?resourceVersion=102&limit=1":                             {"a"},
			"?resourceVersion=102&fieldSelector=metadata.name!%3Da":    {"b"},
			"?resourceVersion=0&fieldSelector=metadata.name%3Dmissing": nil,
		} {
			names, _ := b.collection(query, dryRun)
			require.Equal(b, want, names, query)
		}
		b.refused(504, http.MethodDelete, mapsPath+"?resourceVersion=1000", dryRun)
		b.refused(409, http.MethodDelete, mapsPath+"?resourceVersion=102", nil)
		require.Equal(b, []string{"a", "b", "c"}, b.list(mapsPath).names())
		names, meta := b.collection("?resourceVersion=101", nil)
		require.Equal(b, []string{"a"}, names)
		require.Equal(b, doc{"resourceVersion": "101"}, meta)
		require.Equal(b, []string{"b", "c"}, b.list(mapsPath).names())
	})
}

// TestDeleteCollectionIsNotStale checks that a Stale fault does not choose what a server deletes.
func TestDeleteCollectionIsNotStale(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a"))
		past := b.Snapshot()
		b.ok(http.MethodPost, mapsPath, configMap("b"))
		stale := b.Inject(faults.Fault{Effect: faults.Stale{At: past}})
		names, meta := b.collection("", nil)
		require.Equal(b, []string{"a", "b"}, names)
		require.Equal(b, "102", meta["resourceVersion"])
		stale.Remove()
		require.Empty(b, b.list(mapsPath).names())
	})
}

// TestPreconditionsInTheQuery checks that a deletion without a body reads its preconditions from the query.
func TestPreconditionsInTheQuery(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		u := b.ok(http.MethodPost, mapsPath, configMap("a"))
		for _, query := range []string{"?uid=other", "?resourceVersion=1", "?resourceVersion=x", "?uid=" + string(u.GetUID()) + "&resourceVersion=1"} {
			b.refused(409, http.MethodDelete, mapsPath+"/a"+query, nil)
			b.ok(http.MethodDelete, mapsPath+"/a"+query, dryRun)
		}
		b.ok(http.MethodDelete, mapsPath+"/a?uid="+string(u.GetUID())+"&resourceVersion=101", nil)
		b.refused(404, http.MethodGet, mapsPath+"/a", nil)
	})
}
