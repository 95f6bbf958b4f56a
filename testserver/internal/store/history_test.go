package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// contentsOf returns the names in a view with the versions of their objects.
func contentsOf(v View) map[string]uint64 {
	out := map[string]uint64{}
	for r := range v.All() {
		out[r.Key.Name] = r.Version
	}
	return out
}

// TestOldStates writes at random and compares all old states in the history with those that were the present ones.
func TestOldStates(t *testing.T) {
	for _, history := range []int{1, 10, rootEvery, 200} {
		t.Run(fmt.Sprint(history), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(history)))
			d := must.Get(registry.Custom(registry.Settings{Resource: api.Resource{Version: "v1", Kind: "Thing", Plural: "things"}}))(t)
			s := New(0, history, 1)
			s.Define(d)
			c := s.Collection(d.GroupResource())
			want := map[uint64]map[string]uint64{0: {}}
			oldest := uint64(0)
			var saved *State
			for i := range 700 {
				key := api.Key{Name: fmt.Sprint(random.IntN(30))}
				switch before := c.Get(key); {
				case i == 300 && random.IntN(2) == 0, i == 500:
					s.Compact()
					oldest = s.version
				case i == 400:
					saved = s.State()
				case i == 600:
					s.Restore(saved)
					oldest = s.version
				case before != nil && random.IntN(2) == 0:
					s.Drop(c, before)
				default:
					must.Get(s.Put(c, before, object.Tree{"metadata": object.Tree{"name": key.Name}}))(t)
				}
				want[s.version] = contentsOf(s.View(c))
				if i%7 == 0 || i >= 500 && i < 503 || i >= 600 && i < 603 {
					first := max(oldest, s.version-min(s.version, uint64(history)))
					checkStates(t, s, c, want, first)
				}
			}
		})
	}
}

// checkStates compares the states from a version on.
func checkStates(t *testing.T, s *Store, c *Collection, want map[uint64]map[string]uint64, first uint64) {
	t.Helper()
	for version := first; version <= s.version; version++ {
		v, ok := s.ViewAt(c, version)
		require.True(t, ok, version)
		require.Equal(t, want[version], contentsOf(v), version)
	}
	if first > 0 {
		_, ok := s.ViewAt(c, first-1)
		require.False(t, ok)
	}
}

func TestFewStatesStayInMemory(t *testing.T) {
	d := must.Get(registry.Custom(registry.Settings{Resource: api.Resource{Version: "v1", Kind: "Thing", Plural: "things"}}))(t)
	s := New(0, 1_000, 1)
	s.Define(d)
	c := s.Collection(d.GroupResource())
	for i := range 2_000 {
		must.Get(s.Put(c, nil, object.Tree{"metadata": object.Tree{"name": fmt.Sprint(i)}}))(t)
	}
	rooted, changes := 0, 0
	for ch := c.anchor; ch != nil; ch = ch.next {
		changes++
		if ch.root != nil {
			rooted++
		}
	}
	require.Less(t, rooted, 20)
	require.Less(t, changes, 1_000+rootEvery+2)
}
