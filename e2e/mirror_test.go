package e2e_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// mirror keeps a copy of a collection from the notifications of a handler. It records notifications that contradict it:
// an Add of an existing object, an Update or a Delete of a missing one, and an Update from another state than the last
// one.
type mirror[T api.Object] struct {
	whole bool // there is no selector, so a deleted object never comes back

	mu      sync.Mutex // guards the fields below
	objects map[api.Key]T
	gone    map[types.UID]bool
	names   map[string]bool // of every object that ever existed
	counts  map[api.ChangeType]int
	unknown int // tombstones
	illegal []string
}

func newMirror[T api.Object](whole bool) *mirror[T] {
	return &mirror[T]{
		whole: whole, objects: map[api.Key]T{}, gone: map[types.UID]bool{},
		names: map[string]bool{}, counts: map[api.ChangeType]int{},
	}
}

func (m *mirror[T]) note(n api.Change[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := api.KeyOf(n.Object)
	last, known := m.objects[key]
	m.counts[n.Type]++
	switch n.Type {
	case api.Added:
		m.forbid(known, n, "an Add of an existing object")
		m.forbid(m.whole && m.gone[n.Object.GetUID()], n, "an Add of a deleted object")
		m.objects[key], m.names[key.Name] = n.Object, true
	case api.Updated:
		m.forbid(!known, n, "an Update of a missing object")
		m.forbid(known && !api.SameVersion(last, n.Old), n, "an Update from another state than the last one")
		m.forbid(n.Old.GetUID() != n.Object.GetUID(), n, "an Update to another UID")
		m.objects[key] = n.Object
	case api.Deleted:
		m.forbid(!known, n, "a Delete of a missing object")
		m.forbid(known && last.GetUID() != n.Object.GetUID(), n, "a Delete of another UID")
		delete(m.objects, key)
		m.gone[n.Object.GetUID()] = true
		if n.FinalStateUnknown {
			m.unknown++
		}
	}
}

func (m *mirror[T]) forbid(happened bool, n api.Change[T], what string) {
	if happened {
		m.illegal = append(m.illegal, fmt.Sprintf("%s: %s %s at %s", what, api.KeyOf(n.Object), n.Object.GetUID(),
			n.Object.GetResourceVersion()))
	}
}

// agree waits until the mirror, which is later than the cache, equals a plain list, and requires that no notification
// contradicted it.
func (m *mirror[T]) agree(t *testing.T, what string, want map[api.Key][]byte) {
	t.Helper()
	err := eventually(t.Context(), func() error {
		return difference(t, want, maps.All(m.copy()))
	})
	require.NoError(t, err, "%s and a plain list differ", what)
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(t, m.illegal, what)
}

func (m *mirror[T]) copy() map[api.Key]T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects)
}

// unseen returns the names for which there was no Add.
func (m *mirror[T]) unseen(names []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var unseen []string
	for _, name := range names {
		if !m.names[name] {
			unseen = append(unseen, name)
		}
	}
	return unseen
}

func (m *mirror[T]) count(e api.ChangeType) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[e]
}

func (m *mirror[T]) countUnknown() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unknown
}
