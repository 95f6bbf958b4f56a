package plan

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const (
	// firstSlots is the number of strings that are kept at first. The table grows with the strings.
	firstSlots = 1 << 7
	// MaxStrings is the largest number of strings that the interner of one codec keeps. With a larger table, fewer
	// strings are copied, and a look-up misses the processor's cache more often.
	MaxStrings = 1 << 12
	// MaxShared is the largest number of strings that the interner of many codecs keeps.
	MaxShared = 1 << 14
	// maxInterned is the largest length of a kept string, in bytes.
	maxInterned = 256
)

// used is a bit of a mark. A look-up of the string sets it. Another string that tries to take the place clears it, and
// takes the place if it was clear.
const used = 1

// Interner shares repeated strings between the objects that a codec decodes: namespaces, names of labels, nodes and
// images, and constants. It keeps a string when it sees it for the second time. So names and UIDs of objects, which
// come once, replace nothing. A kept string is replaced by another repeated string with the same places, unless it was
// looked up in the meantime. So if there are more repeated strings than places, the most frequent ones stay. The
// interner never holds more than a fixed number of strings, and none of them aliases an answer.
//
// All answers of a codec share one interner, on any goroutine, and so may several codecs. A look-up costs a hash and
// two or three atomic loads.
type Interner struct {
	seed    maphash.Seed
	most    int // slots of the table, a power of two
	table   atomic.Pointer[table]
	growing sync.Mutex // one goroutine makes a larger table
}

// table is the content of an interner. Its slices have powers of two as lengths.
type table struct {
	// Each string has two possible places, side by side. The marks are stored apart from the strings, so that a look-up
	// of a missing string reads only a mark. A mark contains a part of the hash, and used.
	marks []atomic.Uint32
	kept  []atomic.Value  // a string, in the interface that Box returns
	seen  []atomic.Uint32 // strings that were seen once: a part of the hash, at a place that the rest of the hash gives
	taken atomic.Int32    // places with a string
}

// NewInterner returns an empty Interner for at most so many strings: MaxStrings or MaxShared. It takes 4 KB, and 112 or
// 460 KB when it has grown.
func NewInterner(most int) *Interner {
	n := &Interner{seed: maphash.MakeSeed(), most: most}
	n.table.Store(newTable(firstSlots))
	return n
}

func newTable(slots int) *table {
	return &table{marks: make([]atomic.Uint32, slots), kept: make([]atomic.Value, slots), seen: make([]atomic.Uint32, 2*slots)}
}

// find returns the kept string that is equal to b, or nil. found is false if this is the first time that it is kept.
func (n *Interner) find(b []byte) (kept any, found bool) {
	h, t := maphash.Bytes(n.seed, b), n.table.Load()
	at, mark := t.place(h)
	if kept := t.at(at, mark, b); kept != nil {
		return kept, true
	}
	if kept := t.at(at^1, mark, b); kept != nil {
		return kept, true
	}
	before := &t.seen[h>>16&uint64(len(t.seen)-1)]
	if before.Load() != mark {
		before.Store(mark)
		return nil, false
	}
	kept = t.keep(at, mark, b)
	for kept == nil && len(t.marks) < n.most { // three strings with the same two places
		n.grow(t)
		t = n.table.Load()
		at, mark = t.place(h)
		kept = t.keep(at, mark, b)
	}
	if size := len(t.marks); size < n.most && int(t.taken.Load()) > size/2 {
		n.grow(t)
	}
	return kept, false
}

// grow replaces t by a larger table with the same strings. A string that another goroutine stores in t meanwhile is
// lost, and kept again when it comes twice more. Two strings that have the same places in the larger table had the same
// places in t, so each string finds a place.
func (n *Interner) grow(t *table) {
	n.growing.Lock()
	defer n.growing.Unlock()
	if n.table.Load() != t {
		return // another goroutine has done it
	}
	larger := newTable(2 * len(t.marks))
	for i := range t.kept {
		text, ok := t.kept[i].Load().(string)
		if !ok {
			continue
		}
		at, mark := larger.place(maphash.String(n.seed, text))
		if larger.marks[at].Load() != 0 {
			at ^= 1
		}
		larger.put(at, mark&^used|t.marks[i].Load()&used, t.kept[i].Load())
	}
	n.table.Store(larger)
}

// place returns the first place of a string and its mark. The second place is beside the first.
func (t *table) place(hash uint64) (at uint64, mark uint32) {
	return hash & uint64(len(t.marks)-1), uint32(hash>>32) | used
}

// at returns the string at a place if it is equal to b.
func (t *table) at(place uint64, mark uint32, b []byte) any {
	is := t.marks[place].Load()
	if is|used != mark {
		return nil
	}
	kept := t.kept[place].Load()
	if text, ok := kept.(string); !ok || text != string(b) {
		return nil // another string with the same mark, or one that is being stored right now
	}
	if is != mark {
		t.marks[place].Store(mark)
	}
	return kept
}

// keep stores b in one of its places, if possible in a free one. It returns nil if both places are in use. If another
// goroutine overwrites the mark at the same time, a later look-up finds nothing; that is the only price.
func (t *table) keep(at uint64, mark uint32, b []byte) any {
	if t.marks[at].Load() != 0 && t.marks[at^1].Load() == 0 {
		at ^= 1
	}
	for _, place := range [...]uint64{at, at ^ 1} {
		is := t.marks[place].Load()
		if is&used == 0 {
			var kept any = string(b)
			t.put(place, mark&^used, kept)
			return kept
		}
		t.marks[place].Store(is &^ used)
	}
	return nil
}

// put stores a string, in an interface, at a place.
func (t *table) put(place uint64, mark uint32, kept any) {
	if t.kept[place].Load() == nil {
		t.taken.Add(1)
	}
	t.kept[place].Store(kept)
	t.marks[place].Store(mark)
}
