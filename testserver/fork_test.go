package testserver_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// cell is a server of TestForksAreIndependent, with the contents that it should have.
type cell struct {
	*testserver.Server
	random   *rand.Rand
	contents map[string]string            // by resource and name
	at       map[string]map[string]string // contents, by version
	parent   *cell
	began    string // the version of the fork
}

var cellResources = []api.Resource{configMaps, mills}

// write makes random changes.
func (c *cell) write(t *testing.T, n int) {
	for range n {
		r, name := cellResources[c.random.IntN(2)], fmt.Sprint("m", c.random.IntN(12))
		id, value := r.Plural+"/"+name, strconv.Itoa(c.random.IntN(1e6))
		object := doc{"metadata": doc{"name": name, "namespace": "default"}, "data": doc{"v": value}}
		var err error
		switch _, exists := c.contents[id]; {
		case !exists:
			_, err = c.Create(r, object)
			c.contents[id] = value
		case c.random.IntN(3) == 0:
			err = c.Delete(r, api.Key{Namespace: "default", Name: name})
			delete(c.contents, id)
		default:
			_, err = c.Update(r, object)
			c.contents[id] = value
		}
		require.NoError(t, err)
		c.at[c.ResourceVersion()] = maps.Clone(c.contents)
	}
}

// found returns the contents of a server.
func found(t *testing.T, s *testserver.Server) map[string]string {
	out := map[string]string{}
	for _, r := range cellResources {
		all := must.Get(s.List(r, ""))(t)
		for _, u := range all {
			out[r.Plural+"/"+u.GetName()], _, _ = unstructured.NestedString(u.Object, "data", "v")
		}
	}
	return out
}

// TestForksAreIndependent writes to servers, forks and drops them at random, and compares each with a model. A fork
// is made while its parent is written to, and has the state that the parent had at the version of the fork.
func TestForksAreIndependent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	newCell := func(s *testserver.Server) *cell {
		return &cell{
			Server: s, random: rand.New(rand.NewPCG(random.Uint64(), 1)), contents: map[string]string{},
			at: map[string]map[string]string{s.ResourceVersion(): {}}, began: s.ResourceVersion(),
		}
	}
	first := testserver.New(testserver.Options{History: 20})
	first.Register(mills)
	cells := []*cell{newCell(first)}
	for range 40 {
		var writing sync.WaitGroup
		for _, c := range cells {
			writing.Go(func() { c.write(t, 10) })
		}
		var forks []*cell
		for range 1 + random.IntN(2) {
			parent := cells[random.IntN(len(cells))]
			fork := newCell(parent.Fork())
			fork.parent = parent
			forks = append(forks, fork)
		}
		writing.Wait()
		for _, f := range forks {
			want, known := f.parent.at[f.began]
			require.True(t, known, "the version of a fork is one that its parent had")
			f.contents = maps.Clone(want)
			f.at[f.began] = want
			require.Equal(t, want, found(t, f.Server))
		}
		cells = append(cells, forks...)
		for _, c := range cells {
			require.Equal(t, c.contents, found(t, c.Server))
		}
		for len(cells) > 8 {
			i := random.IntN(len(cells))
			cells = append(cells[:i], cells[i+1:]...)
		}
	}
}

// TestFork compares what clients of a server and of its fork see.
func TestFork(t *testing.T) {
	parent := testserver.New(testserver.Options{}) // outside of the bubble
	parent.Register(mills)
	for _, name := range []string{"a", "b", "c"} {
		must.Get(parent.Create(configMaps, configMap(name)))(t)
	}
	parent.Inject(faults.Fault{Effect: faults.Fail{Code: 500}})
	synctest.Test(t, func(t *testing.T) {
		p, f := serveFork(t, parent), serveFork(t, parent)
		require.Empty(t, f.Requests())
		page := p.list(mapsPath, "limit=1")
		require.Equal(t, "103", page.Metadata.ResourceVersion)
		require.Equal(t, page, f.list(mapsPath, "limit=1"))
		stream := p.watch(mapsPath, "resourceVersion=103")
		defer stream.close()
		future := f.watch(mapsPath, "resourceVersion=103")
		defer future.close()

		require.Equal(t, p.ok(http.MethodPost, mapsPath, configMap("d")), f.ok(http.MethodPost, mapsPath, configMap("d")), "UID and version too")
		f.ok(http.MethodDelete, mapsPath+"/a", nil)
		stream.expect("ADDED d@104")
		future.expect("ADDED d@104", "DELETED a@105")
		require.Equal(t, []string{"a", "b", "c", "d"}, p.list(mapsPath).names())
		require.Equal(t, []string{"b", "c"}, f.list(mapsPath, "continue="+page.Metadata.Continue).names(), "a token of the version of the fork")

		// A fork has no history: a version before it is expired, although the parent has it.
		late := serveFork(t, f.Server)
		for _, b := range []*bench{f, late} {
			code := 200
			if b == late {
				code = 410
			}
			a := b.do(http.MethodGet, mapsPath+queryOf("limit=1", "continue="+page.Metadata.Continue), nil)
			require.Equal(t, code, a.code)
			a = b.do(http.MethodGet, mapsPath+queryOf("resourceVersion=104", "resourceVersionMatch=Exact"), nil)
			require.Equal(t, code, a.code)
		}
		expired := late.watch(mapsPath, "resourceVersion=104")
		expired.expect("ERROR 410 Expired")
		expired.expectEnd()
		require.Equal(t, f.list(mapsPath), late.list(mapsPath))
		late.ok(http.MethodPost, "/apis/leat.example/v1/namespaces/default/mills", custom("Mill", "m"))
		require.Empty(t, f.list("/apis/leat.example/v1/mills").Items)
	})
}

// serveFork runs a fork until the bubble ends.
func serveFork(t *testing.T, of *testserver.Server) *bench {
	f := of.Fork()
	b := &bench{T: t, Server: f, client: f.Client()}
	served := make(chan error, 1)
	ctx := t.Context()
	go func() { served <- f.Run(ctx) }()
	t.Cleanup(func() {
		b.release()
		require.NoError(t, <-served)
	})
	return b
}

// TestForkDuringAWrite forks a server while one of its objects is being changed, and compares the logs of containers.
func TestForkDuringAWrite(t *testing.T) {
	parent := testserver.New(testserver.Options{})
	must.Get(parent.Create(pods, pod("p")))(t)
	require.NoError(t, parent.AppendLog(api.Key{Namespace: "default", Name: "p"}, "c", "before"))
	var fork *testserver.Server
	must.Get(parent.Edit(pods, api.Key{Namespace: "default", Name: "p"}, func(u *unstructured.Unstructured) {
		fork = parent.Fork()
		u.SetLabels(map[string]string{"late": "yes"})
	}))(t)
	u := must.Get(fork.Get(pods, api.Key{Namespace: "default", Name: "p"}))(t)
	require.Empty(t, u.GetLabels())
	require.NoError(t, parent.AppendLog(api.Key{Namespace: "default", Name: "p"}, "c", "after"))
	require.NoError(t, fork.AppendLog(api.Key{Namespace: "default", Name: "p"}, "c", "fork"))
	synctest.Test(t, func(t *testing.T) {
		p, f := serveFork(t, parent), serveFork(t, fork)
		require.Equal(t, "before\nafter\n", string(p.do(http.MethodGet, podsPath+"/p/log", nil).body))
		require.Equal(t, "before\nfork\n", string(f.do(http.MethodGet, podsPath+"/p/log", nil).body))
	})
}
