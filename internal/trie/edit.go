package trie

import (
	"slices"
	"unsafe"
)

// leafBytes limits the size of a leaf. Larger leaves would take less memory per entry, but an edit of one entry would
// copy more. 320 bytes are 20 pointers, or 40 members of a set.
const leafBytes = 320

// Edit is a new version in progress. It writes in place to nodes that have its id, and copies all other nodes first. So
// a batch of edits copies each node at most once, and the original tree does not change.
type Edit[E any] struct {
	tree Tree[E]
	id   uint64
}

// Edit begins an edit of the tree. The id must not be zero, and no earlier edit of this tree, or of a tree that shares
// nodes with it, may have used it: the id tells which nodes the edit may write to.
func (t Tree[E]) Edit(id uint64) Edit[E] { return Edit[E]{tree: t, id: id} }

// Tree returns the current tree. Further changes need an edit with a new id.
func (e *Edit[E]) Tree() Tree[E] { return e.tree }

// Find is Tree.Find on the version in progress. The slice is valid until the next change.
func (e *Edit[E]) Find(hash uint64) []Entry[E] { return e.tree.Find(hash) }

// Len returns the number of entries of the version in progress.
func (e *Edit[E]) Len() int { return e.tree.count }

// Replace replaces the item of the i-th entry that Find returns for hash.
func (e *Edit[E]) Replace(hash uint64, i int, item E) {
	var path [maxPath]*node[E]
	leaf := path[e.open(hash, &path, 0)]
	leaf.entries[lowerBound(leaf.entries, hash)+i].Item = item
}

// Insert inserts an item with the given hash before the i-th entry that Find returns for it.
func (e *Edit[E]) Insert(hash uint64, i int, item E) {
	var path [maxPath]*node[E]
	last := e.open(hash, &path, 1)
	leaf := path[last]
	at := lowerBound(leaf.entries, hash) + i
	if len(leaf.entries) == cap(leaf.entries) {
		leaf.entries = withRoom(leaf.entries, 1+len(leaf.entries)/3) // a leaf that grows in an edit will probably grow more
	}
	leaf.entries = append(leaf.entries, Entry[E]{}) // slices.Insert adds 1.5 KB to a program
	copy(leaf.entries[at+1:], leaf.entries[at:])
	leaf.entries[at] = Entry[E]{Item: item, Hash: hash}
	e.tree.count++
	if leaf.isTooLarge() {
		var parent *node[E]
		if last > 0 {
			parent = path[last-1]
		}
		e.split(leaf, parent)
	}
}

// Fill inserts entries into an empty tree. It is cheaper than calling Insert for each. The entries must be in their
// final order. Fill copies them. It panics if the tree is not empty.
func (e *Edit[E]) Fill(entries []Entry[E]) {
	if e.tree.root != nil {
		panic("trie: only an empty tree can be filled")
	}
	if len(entries) == 0 {
		return
	}
	leaf := &node[E]{owner: e.id, entries: entries}
	e.tree = Tree[E]{root: leaf, count: len(entries)}
	if leaf.isTooLarge() {
		e.split(leaf, nil)
	} else {
		leaf.entries = withRoom(entries, 0)
	}
}

// Remove removes the i-th entry that Find returns for hash.
func (e *Edit[E]) Remove(hash uint64, i int) {
	var path [maxPath]*node[E]
	last := e.open(hash, &path, 0)
	leaf := path[last]
	at := lowerBound(leaf.entries, hash) + i
	leaf.entries = slices.Delete(leaf.entries, at, at+1)
	e.tree.count--
	if cap(leaf.entries) > 2*len(leaf.entries)+8 {
		leaf.entries = withRoom(leaf.entries, 1+len(leaf.entries)/3)
	}
	e.merge(&path, last)
}

// open makes the path to the leaf of hash writable, and returns the position of the leaf in it. If it must copy the
// leaf, the copy has room for more entries.
func (e *Edit[E]) open(hash uint64, path *[maxPath]*node[E], room int) int {
	if e.tree.root == nil {
		e.tree.root = &node[E]{owner: e.id}
	}
	n := e.own(e.tree.root, room)
	e.tree.root = n
	path[0] = n
	last := 0
	for n.children != nil {
		at := n.slot(hash)
		child := n.children[at]
		if child.owner != e.id {
			child = e.own(child, room)
			n.place(child, at)
		}
		n = child
		last++
		path[last] = n
	}
	return last
}

// own returns the node if the edit made it. Otherwise it returns a copy that the edit may write to.
func (e *Edit[E]) own(n *node[E], room int) *node[E] {
	if n.owner == e.id {
		return n
	}
	if n.children == nil {
		return &node[E]{owner: e.id, depth: n.depth, entries: withRoom(n.entries, room)}
	}
	c := newInner[E](e.id, n.depth)
	*c.children = *n.children
	return c
}

// place stores a child in every slot that it covers; at is any of these slots.
func (n *node[E]) place(child *node[E], at int) {
	span := n.span(child)
	from := at &^ (span - 1)
	for i := range n.children[from : from+span] {
		n.children[from+i] = child
	}
}

// split splits a leaf until no part is too large. The edit owns the leaf and its parent, which is nil for a root.
func (e *Edit[E]) split(leaf, parent *node[E]) {
	if parent == nil || parent.span(leaf) == 1 {
		parent = e.deepen(leaf, parent)
	}
	slot := parent.slot(leaf.entries[0].Hash) // any slot of the leaf
	half := uint64(1) << (hashLen - 1 - leaf.depth)
	middle := leaf.entries[0].Hash&^(half-1) | half
	at := lowerBound(leaf.entries, middle)
	left := &node[E]{owner: e.id, depth: leaf.depth + 1, entries: leaf.entries[:at]}
	right := &node[E]{owner: e.id, depth: leaf.depth + 1, entries: leaf.entries[at:]}
	span := parent.span(left)
	parent.place(left, slot&^span)
	parent.place(right, slot|span)
	for _, half := range [...]*node[E]{left, right} {
		if half.isTooLarge() {
			e.split(half, parent)
		} else {
			half.entries = withRoom(half.entries, 0)
		}
	}
}

// isTooLarge reports whether a leaf must be split. A leaf whose hashes are all equal cannot be split.
func (n *node[E]) isTooLarge() bool {
	return len(n.entries) > leafCap[E]() && n.entries[0].Hash != n.entries[len(n.entries)-1].Hash
}

// deepen replaces a leaf by an inner node that has the leaf in all its slots.
func (e *Edit[E]) deepen(leaf, parent *node[E]) *node[E] {
	inner := newInner[E](e.id, leaf.depth)
	for i := range inner.children {
		inner.children[i] = leaf
	}
	if parent == nil {
		e.tree.root = inner
	} else {
		parent.place(inner, parent.slot(leaf.entries[0].Hash))
	}
	return inner
}

// merge undoes splits that cost more memory than they are worth. If a leaf and its other half together fill at most
// half a leaf, they become one leaf. An inner node with a single leaf becomes that leaf. The limit is half a leaf, so
// that a leaf near the limit is not split and merged in turn. The edit owns the path.
func (e *Edit[E]) merge(path *[maxPath]*node[E], last int) {
	leaf := path[last]
	for last > 0 {
		parent := path[last-1]
		if leaf.depth == parent.depth {
			e.replace(path, last-1, leaf)
			last--
			continue
		}
		at := slices.Index(parent.children[:], leaf)
		span := parent.span(leaf)
		other := parent.children[at^span]
		if other.depth != leaf.depth || other.children != nil || len(leaf.entries)+len(other.entries) > leafCap[E]()/2 {
			return
		}
		left, right := leaf, other
		if at&span != 0 {
			left, right = other, leaf
		}
		entries := append(withRoom(left.entries, len(right.entries)), right.entries...)
		leaf = &node[E]{owner: e.id, depth: leaf.depth - 1, entries: entries}
		parent.place(leaf, at)
	}
	if len(leaf.entries) == 0 {
		e.tree.root = nil
	}
}

// replace replaces the i-th node of a path.
func (e *Edit[E]) replace(path *[maxPath]*node[E], i int, n *node[E]) {
	if i == 0 {
		e.tree.root = n
		return
	}
	parent := path[i-1]
	parent.place(n, slices.Index(parent.children[:], path[i]))
}

// withRoom copies entries into a slice that has room for exactly the given number of further entries.
func withRoom[E any](entries []Entry[E], room int) []Entry[E] {
	return append(make([]Entry[E], 0, len(entries)+room), entries...)
}

// leafCap returns the number of entries above which a leaf is split.
func leafCap[E any]() int {
	return max(4, int(leafBytes/unsafe.Sizeof(Entry[E]{})))
}
