package trie

import "iter"

const (
	fanBits = 4
	width   = 1 << fanBits // number of children of an inner node
	hashLen = 64
	maxPath = hashLen/fanBits + 1 // inner nodes on the longest path, and the leaf
)

// Entry is an item and its hash.
type Entry[E any] struct {
	Item E // first: a field without size at the end of a struct is padded, and the items of sets have no size
	Hash uint64
}

// Tree is one version of the trie: entries in ascending order of hash. The zero value is empty. A Tree is small, should
// be copied, and is safe for concurrent use.
type Tree[E any] struct {
	root  *node[E]
	count int
}

// node is an inner node with children, or a leaf with entries.
//
// An inner node chooses the child by the next four bits of the hash. A leaf is split by one bit at a time, and is in
// all slots of its parent that it still covers: 8 of 16 after the first split, then 4, 2 and 1. So a new leaf is at
// least half full for any number of entries; a split into sixteen leaves would leave two entries in each. And a path
// has a quarter of the length of a binary trie's.
type node[E any] struct {
	owner    uint64 // the edit that made the node and may write to it
	depth    uint8  // number of leading bits of the hash that lead to the node
	children *[width]*node[E]
	entries  []Entry[E]
}

// inner is an inner node and its children in one allocation.
type inner[E any] struct {
	node[E]
	slots [width]*node[E]
}

func newInner[E any](owner uint64, depth uint8) *node[E] {
	n := &inner[E]{node: node[E]{owner: owner, depth: depth}}
	n.children = &n.slots
	return &n.node
}

// Len returns the number of entries.
func (t Tree[E]) Len() int { return t.count }

// Find returns the entries with the given hash: usually at most one, more if hashes collide. It does not allocate. The
// slice is part of the tree and must not be changed.
func (t Tree[E]) Find(hash uint64) []Entry[E] {
	n := t.root
	if n == nil {
		return nil
	}
	for n.children != nil {
		n = n.children[n.slot(hash)]
	}
	from := lowerBound(n.entries, hash)
	to := from
	for to < len(n.entries) && n.entries[to].Hash == hash {
		to++
	}
	return n.entries[from:to]
}

// Leaves yields all entries in ascending order of hash, one leaf at a time. The slices are part of the tree and must
// not be changed.
func (t Tree[E]) Leaves() iter.Seq[[]Entry[E]] {
	return func(yield func([]Entry[E]) bool) {
		if t.root != nil {
			t.root.walk(yield)
		}
	}
}

func (n *node[E]) walk(yield func([]Entry[E]) bool) bool {
	if n.children == nil {
		return len(n.entries) == 0 || yield(n.entries)
	}
	for i := 0; i < width; {
		child := n.children[i]
		if !child.walk(yield) {
			return false
		}
		i += n.span(child)
	}
	return true
}

// slot returns the index of the child that covers hash.
func (n *node[E]) slot(hash uint64) int {
	return int(hash>>(hashLen-fanBits-n.depth)) & (width - 1)
}

// span returns the number of slots of an inner node that a child fills.
func (n *node[E]) span(child *node[E]) int {
	return 1 << (n.depth + fanBits - child.depth)
}

// lowerBound returns the position of the first entry whose hash is not less than hash.
func lowerBound[E any](entries []Entry[E], hash uint64) int {
	from, to := 0, len(entries)
	for from < to {
		middle := int(uint(from+to) >> 1)
		if entries[middle].Hash < hash {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}
