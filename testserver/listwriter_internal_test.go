package testserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/object"
)

var keptMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

const keptPath = "/api/v1/namespaces/default/configmaps"

// large returns a server with 1,000 objects of 1 KiB in three namespaces.
func large(t *testing.T) *Server {
	s := New(Options{})
	for i := range 1000 {
		createMap(t, s, []string{"aaa", "default", "zzz"}[i%3], fmt.Sprint("m", i))
	}
	return s
}

func createMap(t *testing.T, s *Server, namespace, name string) {
	must.Get(s.Create(keptMaps, object.Tree{
		"metadata": object.Tree{"name": name, "namespace": namespace}, "data": object.Tree{"text": strings.Repeat("x", 1<<10)},
	}))(t)
}

// keepAll stops the collector of garbage, which frees kept lists.
func keepAll(t *testing.T) {
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}

// get returns the body of an answer.
func get(t *testing.T, s *Server, path string, header ...string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	s.handle(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return w.Body.String()
}

// kept returns the number of kept lists.
func kept(s *Server) (n int) {
	for _, p := range s.lists.recent {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

func TestAKeptListHasTheSameBytes(t *testing.T) {
	keepAll(t)
	s := large(t)
	metadata := []string{"Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
	for _, c := range []struct {
		path   string
		header []string
		kept   int
	}{
		{path: keptPath, kept: 1},
		{path: "/api/v1/configmaps", kept: 1},
		{path: "/api/v1/configmaps", header: metadata, kept: 1},
		{path: keptPath + "?limit=300"},
		{path: "/api/v1/configmaps?labelSelector=!a"},
		{path: "/api/v1/configmaps?fieldSelector=metadata.namespace%3Ddefault"},
	} {
		s.lists = keptLists{}
		want := get(t, s, c.path, c.header...)
		require.Equal(t, c.kept, kept(s), c.path)
		require.True(t, want == get(t, s, c.path, c.header...), c.path)
		s.lists = keptLists{}
		_ = get(t, s, "/api/v1/configmaps") // another list is kept
		require.True(t, want == get(t, s, c.path, c.header...), c.path)
	}
}

func TestATableIsNotKept(t *testing.T) {
	s := large(t)
	_ = get(t, s, "/api/v1/configmaps", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	require.Zero(t, kept(s), "its rows may have another order")
}

func TestAListIsCollectedOnceForEachState(t *testing.T) {
	keepAll(t)
	s := large(t)
	first := get(t, s, keptPath)
	require.Equal(t, 1, kept(s))
	_ = get(t, s, keptPath)
	require.Equal(t, 1, kept(s))
	must.Get(s.Create(api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true},
		object.Tree{"metadata": object.Tree{"name": "s", "namespace": "default"}}))(t)
	version := fmt.Sprintf(`"resourceVersion":"%d"`, 1100)
	later := get(t, s, keptPath)
	require.Equal(t, 1, kept(s), "the objects are the same")
	require.Equal(t, strings.Replace(first, version, `"resourceVersion":"1101"`, 1), later)
	createMap(t, s, "default", "late")
	require.Contains(t, get(t, s, keptPath), `"name":"late"`)
	require.Equal(t, 2, kept(s))
}

func TestAKeptListHasFaults(t *testing.T) {
	keepAll(t)
	s := large(t)
	whole := get(t, s, keptPath)
	require.Equal(t, 1, kept(s))
	i := s.Inject(faults.Fault{Match: faults.Match{Name: "m1"}, Effect: faults.Malform{}})
	broken := get(t, s, keptPath)
	require.NotEqual(t, whole, broken)
	s.lists = keptLists{}
	require.Equal(t, broken, get(t, s, keptPath))
	require.Equal(t, 1, kept(s))
	i.Remove()
	require.Equal(t, whole, get(t, s, keptPath))
}

func TestACollectionOfGarbageFreesKeptLists(t *testing.T) {
	s := large(t)
	_ = get(t, s, keptPath)
	runtime.GC()
	require.Zero(t, kept(s))
	require.Contains(t, get(t, s, keptPath), `"name":"m1"`)
}

func TestSmallListsAreNotKept(t *testing.T) {
	s := large(t)
	_ = get(t, s, "/api/v1/namespaces")
	require.Zero(t, kept(s))
}

// discard is the answer of a client that reads nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// TestAListTakesLittleMemory lists 1.3 MB. New memory for as much would take more time than the list itself.
func TestAListTakesLittleMemory(t *testing.T) {
	s := large(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.handle(discard{http.Header{}}, httptest.NewRequest(http.MethodGet, "/api/v1/configmaps", nil))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400<<10))
}
