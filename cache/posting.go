package cache

import (
	"iter"

	"github.com/leatproject/leat/internal/trie"
)

// posting is a value and its members, the objects that have it: at least one. It holds the hashes of their keys instead
// of the keys, which takes a quarter of the memory, keeps no old strings alive, and spares a look-up the hashing. Where
// keys collide, the hash is a member once for each object that has the value, and the reader has to ask the index
// function which ones those are.
type posting[V comparable] struct {
	value V
	one   uint64              // the only member, if more is empty: many indexes never have two
	more  trie.Tree[struct{}] // all members, if there are two or more
}

// len returns the number of members; a nil posting has none.
func (p *posting[V]) len() int {
	if p == nil {
		return 0
	}
	return max(1, p.more.Len())
}

// ids yields the members in ascending order, each once.
func (p *posting[V]) ids() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if p.more.Len() == 0 {
			yield(p.one)
			return
		}
		first, last := true, uint64(0)
		for leaf := range p.more.Leaves() {
			for i := range leaf {
				if id := leaf[i].Hash; first || id != last {
					if !yield(id) {
						return
					}
					first, last = false, id
				}
			}
		}
	}
}

// with returns the posting with one member more.
func (p posting[V]) with(id, edit uint64) posting[V] {
	members := p.more.Edit(edit)
	if members.Len() == 0 {
		members.Insert(p.one, 0, struct{}{})
	}
	members.Insert(id, 0, struct{}{})
	p.one, p.more = 0, members.Tree()
	return p
}

// without returns the posting with one member less, and whether any is left.
func (p posting[V]) without(id, edit uint64) (posting[V], bool) {
	if p.more.Len() == 0 {
		return p, p.one != id
	}
	if len(p.more.Find(id)) == 0 {
		return p, true
	}
	members := p.more.Edit(edit)
	members.Remove(id, 0)
	p.more = members.Tree()
	if p.more.Len() == 1 {
		for leaf := range p.more.Leaves() {
			p.one, p.more = leaf[0].Hash, trie.Tree[struct{}]{}
			break
		}
	}
	return p, true
}
