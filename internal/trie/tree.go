package trie

import "iter"

const (
	fanBits = 4
	width   = 1 << fanBits // children of an inner node
	hashLen = 64
	maxPath = hashLen/fanBits + 1 // inner nodes on the longest path, and the leaf
)

// Entry is an item and the hash under which it was placed.
type Entry[E any] struct {
	Item E // first, because a field without size at the end of a struct is padded, and sets have items without size
	Hash uint64
}

// Tree is one version of the trie: entries in ascending order of hash. The zero value is empty. It is a small value,
// meant to be copied, and safe for concurrent use.
type Tree[E any] struct {
	root  *node[E]
	count int
}

// node is an inner node, which has children, or a leaf, which has entries.
//
// An inner node decides by the next four bits of the hash. A leaf is split by one bit at a time and stands in as many
// slots of its parent as it still covers: 8 of 16 after the first split, then 4, 2 and 1. So leaves are at least half
// full when they are made, whatever the number of entries (a split into sixteen would leave two in each), and a path is
// a quarter as long as that of a binary trie.
type node[E any] struct {
	owner    uint64 // the edit that made it, and may write to it
	depth    uint8  // how many leading bits of the hash its place stands for
	children *[width]*node[E]
	entries  []Entry[E]
}

// inner is an inner node and its children, which are one allocation.
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

// Find returns the entries that were placed under hash: most often none or one, more if hashes collide. It does not
// allocate. The slice is part of the tree and must not be written to.
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

// Leaves yields all entries in ascending order of hash, a leaf at a time. The slices are part of the tree and must not
// be written to.
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

// slot tells which child of an inner node stands for hash.
func (n *node[E]) slot(hash uint64) int {
	return int(hash>>(hashLen-fanBits-n.depth)) & (width - 1)
}

// span tells how many slots of an inner node a child stands in.
func (n *node[E]) span(child *node[E]) int {
	return 1 << (n.depth + fanBits - child.depth)
}

// lowerBound returns the position of the first entry whose hash is not below hash.
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
