package events

import (
	"container/list"
	"iter"
)

// lru is a map of bounded size. It drops the entry that was not used for the longest time.
type lru[K comparable, V any] struct {
	capacity int
	items    map[K]*list.Element
	order    *list.List // of lruEntry[K, V], the last used entry first
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) lru[K, V] {
	return lru[K, V]{capacity: most, items: map[K]*list.Element{}, order: list.New()}
}

func (m *lru[K, V]) get(key K) (value V, known bool) {
	e, known := m.items[key]
	if !known {
		return value, false
	}
	m.order.MoveToFront(e)
	return e.Value.(lruEntry[K, V]).value, true
}

func (m *lru[K, V]) put(key K, value V) {
	if e, known := m.items[key]; known {
		e.Value = lruEntry[K, V]{key, value}
		m.order.MoveToFront(e)
		return
	}
	m.items[key] = m.order.PushFront(lruEntry[K, V]{key, value})
	if m.order.Len() > m.capacity {
		last := m.order.Remove(m.order.Back()).(lruEntry[K, V])
		delete(m.items, last.key)
	}
}

// all yields every value. It does not count as use.
func (m *lru[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		for e := m.order.Back(); e != nil; e = e.Prev() {
			if !yield(e.Value.(lruEntry[K, V]).value) {
				return
			}
		}
	}
}
