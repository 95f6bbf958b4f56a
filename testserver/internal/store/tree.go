package store

import (
	"hash/fnv"
	"iter"
)

// node is a persistent treap of records, sorted by path. An insertion or a removal copies the nodes from the root to
// the changed one and shares the rest, so keeping every version costs only the changes. Continue tokens, exact reads
// and snapshots use this. The priority is a hash of the path, so the shape depends only on the content.
type node struct {
	record      *Record
	left, right *node
	priority    uint32
	size        int32
}

func priorityOf(path string) uint32 {
	h := fnv.New64a()
	h.Write([]byte(path))
	return uint32(h.Sum64() * 0x9e3779b97f4a7c15 >> 32)
}

// above reports whether n is nearer to the root than o.
func (n *node) above(o *node) bool {
	return n.priority > o.priority || n.priority == o.priority && n.record.Path < o.record.Path
}

// with returns a copy of n with other children.
func (n *node) with(left, right *node) *node {
	return &node{record: n.record, priority: n.priority, size: int32(left.len() + right.len() + 1), left: left, right: right}
}

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return int(n.size)
}

// get returns the record at path, or nil.
func (n *node) get(path string) *Record {
	for n != nil {
		switch {
		case path < n.record.Path:
			n = n.left
		case path > n.record.Path:
			n = n.right
		default:
			return n.record
		}
	}
	return nil
}

// split returns the records below path and the others.
func (n *node) split(path string) (below, rest *node) {
	if n == nil {
		return nil, nil
	}
	if n.record.Path < path {
		below, rest = n.right.split(path)
		return n.with(n.left, below), rest
	}
	below, rest = n.left.split(path)
	return below, n.with(rest, n.right)
}

// join is the inverse of split. Every path in n is below every path in o.
func (n *node) join(o *node) *node {
	switch {
	case n == nil:
		return o
	case o == nil:
		return n
	case n.above(o):
		return n.with(n.left, n.right.join(o))
	default:
		return o.with(n.join(o.left), o.right)
	}
}

// set returns the tree with r instead of the record at its path.
func (n *node) set(r *Record) *node {
	return n.insert(&node{record: r, priority: priorityOf(r.Path), size: 1})
}

func (n *node) insert(fresh *node) *node {
	switch {
	case n == nil:
		return fresh
	case n.record.Path == fresh.record.Path:
		replaced := *n
		replaced.record = fresh.record
		return &replaced
	case fresh.above(n):
		below, rest := n.split(fresh.record.Path)
		return fresh.with(below, rest)
	case fresh.record.Path < n.record.Path:
		return n.with(n.left.insert(fresh), n.right)
	default:
		return n.with(n.left, n.right.insert(fresh))
	}
}

// remove returns the tree without the record at path.
func (n *node) remove(path string) *node {
	switch {
	case n == nil:
		return nil
	case path == n.record.Path:
		return n.left.join(n.right)
	case path < n.record.Path:
		return n.with(n.left.remove(path), n.right)
	default:
		return n.with(n.left, n.right.remove(path))
	}
}

// rank returns the number of records below path.
func (n *node) rank(path string) int {
	count := 0
	for n != nil {
		if path <= n.record.Path {
			n = n.left
			continue
		}
		count += n.left.len() + 1
		n = n.right
	}
	return count
}

// scan yields the records from path from (inclusive) to path until (exclusive; empty means the end), in order.
func (n *node) scan(from, until string) iter.Seq[*Record] {
	return func(yield func(*Record) bool) { n.walk(from, until, yield) }
}

func (n *node) walk(from, until string, yield func(*Record) bool) bool {
	switch {
	case n == nil:
		return true
	case from != "" && n.record.Path < from:
		return n.right.walk(from, until, yield)
	case until != "" && n.record.Path >= until:
		n.left.walk(from, until, yield)
		return false
	}
	// All records on the left are below until, and all on the right are above from. Without these checks most records
	// are yielded without a look at their paths.
	return n.left.walk(from, "", yield) && yield(n.record) && n.right.walk("", until, yield)
}
