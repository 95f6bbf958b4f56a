package workqueue

const (
	// smallestTable is the number of slots of an empty table, a power of two.
	smallestTable = 32
	// minFree is the number of entries that a queue keeps for the next keys although it holds none.
	minFree = 128
	// occupied is a bit of every hash, so that zero can mark an empty slot.
	occupied = 1 << 31
)

// table finds the entry of a key: open addressing with linear probing, between an eighth and three quarters full.
//
// A Go map would do, and did. But each add and Done would hash the key twice, under the queue's lock, where here it is
// hashed once, before; and a map never gives back what a burst of keys made it grow to.
type table[K comparable] struct {
	used int

	// The slots, whose number is a power of two. The hashes stand by themselves, so that a look-up reads little memory
	// when there are a million keys, and growing visits no entry.
	hashes  []uint32
	entries []*entry[K]

	free  *entry[K] // linked by age, the last one released first
	frees int
}

func newTable[K comparable]() table[K] {
	t := table[K]{}
	t.resize(smallestTable)
	return t
}

// probe returns the slot of a key: the one that holds it, or the empty one where it belongs.
func (t *table[K]) probe(key K, hash uint32) int {
	mask := len(t.hashes) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		if h := t.hashes[i]; h == 0 || h == hash && t.entries[i].key == key {
			return i
		}
	}
}

// find returns the entry of a key, or nil.
func (t *table[K]) find(key K, hash uint32) *entry[K] {
	return t.entries[t.probe(key, hash)]
}

// obtain returns the entry of a key, which is made if there is none, with room for a cause if there will be one.
func (t *table[K]) obtain(key K, hash uint32, caused bool) *entry[K] {
	i := t.probe(key, hash)
	if t.hashes[i] != 0 {
		return t.entries[i]
	}
	var e *entry[K]
	switch {
	case t.free != nil:
		e = t.reuse()
	case caused:
		e = newCausedEntry[K]()
	default:
		e = &entry[K]{}
	}
	e.key, e.hash = key, hash
	t.hashes[i], t.entries[i] = hash, e
	t.used++
	if t.used > len(t.hashes)/4*3 {
		t.resize(len(t.hashes) * 2)
	}
	return e
}

// release forgets an entry of which nothing is pending or processed, and everything that it refers to.
func (t *table[K]) release(e *entry[K]) {
	t.remove(e)
	var none K
	e.key = none // all else is either zero by now or set before it is read
	e.links[byAge].next, t.free = t.free, e
	t.frees++
	for t.frees > max(t.used, minFree) {
		t.reuse() // and drop it: never more is kept than is in use
	}
}

// reuse takes an entry off the free ones. There must be one.
func (t *table[K]) reuse() *entry[K] {
	e := t.free
	t.free, e.links[byAge].next = e.links[byAge].next, nil
	t.frees--
	return e
}

// remove empties the slot of an entry, and moves those that follow it without a gap to where they now belong.
func (t *table[K]) remove(e *entry[K]) {
	mask := len(t.hashes) - 1
	gap := int(e.hash) & mask
	for t.entries[gap] != e {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.hashes[i] != 0; i = (i + 1) & mask {
		// What is in slot i may move to the gap, unless its home lies behind the gap.
		if home := int(t.hashes[i]) & mask; (i-home)&mask >= (i-gap)&mask {
			t.hashes[gap], t.entries[gap] = t.hashes[i], t.entries[i]
			gap = i
		}
	}
	t.hashes[gap], t.entries[gap] = 0, nil
	t.used--
	if t.used < len(t.hashes)/8 && len(t.hashes) > smallestTable {
		t.resize(len(t.hashes) / 2)
	}
}

func (t *table[K]) resize(slots int) {
	hashes, entries := t.hashes, t.entries
	t.hashes, t.entries = make([]uint32, slots), make([]*entry[K], slots)
	mask := slots - 1
	for from, h := range hashes {
		if h == 0 {
			continue
		}
		i := int(h) & mask
		for t.hashes[i] != 0 {
			i = (i + 1) & mask
		}
		t.hashes[i], t.entries[i] = h, entries[from]
	}
}
