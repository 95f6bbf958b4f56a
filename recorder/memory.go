package recorder

import (
	"container/list"
	"iter"
)

// memory is a map of bounded size, which forgets what was not asked for for longest.
type memory[K comparable, V any] struct {
	most  int
	items map[K]*list.Element
	order *list.List // of remembrance[K, V], the one asked for last in front
}

type remembrance[K comparable, V any] struct {
	key   K
	value V
}

func newMemory[K comparable, V any](most int) memory[K, V] {
	return memory[K, V]{most: most, items: map[K]*list.Element{}, order: list.New()}
}

func (m *memory[K, V]) get(key K) (value V, known bool) {
	e, known := m.items[key]
	if !known {
		return value, false
	}
	m.order.MoveToFront(e)
	return e.Value.(remembrance[K, V]).value, true
}

func (m *memory[K, V]) put(key K, value V) {
	if e, known := m.items[key]; known {
		e.Value = remembrance[K, V]{key, value}
		m.order.MoveToFront(e)
		return
	}
	m.items[key] = m.order.PushFront(remembrance[K, V]{key, value})
	if m.order.Len() > m.most {
		last := m.order.Remove(m.order.Back()).(remembrance[K, V])
		delete(m.items, last.key)
	}
}

// all yields every value, and leaves their order alone.
func (m *memory[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		for e := m.order.Back(); e != nil; e = e.Prev() {
			if !yield(e.Value.(remembrance[K, V]).value) {
				return
			}
		}
	}
}
