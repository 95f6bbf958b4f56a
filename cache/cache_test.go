package cache_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// pod is an object of the tests' own: what a projection looks like.
type pod struct {
	namespace, name string
	uid             types.UID
	version         string
	node            string
	tags            []string
	labels          map[string]string
}

func (p *pod) GetNamespace() string         { return p.namespace }
func (p *pod) GetName() string              { return p.name }
func (p *pod) GetUID() types.UID            { return p.uid }
func (p *pod) GetResourceVersion() string   { return p.version }
func (p *pod) GetLabels() map[string]string { return p.labels }

func newPod(i int) *pod {
	return &pod{
		namespace: fmt.Sprintf("ns-%d", i%7), name: fmt.Sprintf("pod-%06d", i), uid: types.UID(fmt.Sprint("u", i)),
		version: fmt.Sprint(i), node: fmt.Sprintf("node-%d", i%10),
	}
}

func byNode(p *pod) []string { return []string{p.node} }

func TestNothingShowsBeforeCommit(t *testing.T) {
	ix := cache.New[*pod](cache.Options{})
	nodes := cache.AddIndex(ix, byNode)
	p := newPod(1)

	txn := ix.Begin()
	txn.Set(p)
	require.Zero(t, ix.Len())
	require.Empty(t, nodes.ByIndex("node-1"))
	got, ok := txn.Get(api.KeyOf(p))
	require.True(t, ok)
	require.Same(t, p, got)

	s := txn.Commit("7")
	require.Same(t, s, ix.Snapshot())
	require.Equal(t, "7", ix.ResourceVersion())
	require.Equal(t, []*pod{p}, ix.List())
	require.Equal(t, []*pod{p}, nodes.ByIndex("node-1"))
}
