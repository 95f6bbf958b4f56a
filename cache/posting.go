package cache

import (
	"iter"

	"github.com/leatproject/leat/internal/trie"
)

// posting is one value of an index and its members: the objects that have the value, at least one. It stores the hashes
// of their keys instead of the keys. Hashes take a quarter of the memory, keep no old strings alive, and spare a
// look-up the hashing. When keys collide, the posting contains their hash once for each object that has the value, and
// the reader calls the index function to find out which objects those are.
type posting[V comparable] struct {
	value V
	one   uint64              // the only member if more is empty; in many indexes every value has one object
	more  trie.Tree[struct{}] // all members, if there are at least two
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

// with returns the posting with one more member.
func (p posting[V]) with(id, edit uint64) posting[V] {
	members := p.more.Edit(edit)
	if members.Len() == 0 {
		members.Insert(p.one, 0, struct{}{})
	}
	members.Insert(id, 0, struct{}{})
	p.one, p.more = 0, members.Tree()
	return p
}

// without returns the posting with one member less, and reports whether any member is left.
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
