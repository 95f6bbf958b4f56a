package workqueue

const (
	// smallestTable is the number of slots of an empty table, a power of two.
	smallestTable = 32
	// occupied is a bit of every hash, so that zero can mark an empty slot.
	occupied = 1 << 31
)

// table finds the entry of a key: open addressing with linear probing, at most three quarters full.
//
// A Go map would do, and did. But each add and Done would hash the key twice, under the queue's lock, where here it is
// hashed once, before; and a map never gives back what a burst of keys made it grow to.
type table[K comparable] struct {
	slab *slab[K]
	used int

	// The slots, whose number is a power of two. The hashes stand by themselves, so that a look-up reads little memory
	// when there are a million keys, and growing visits no entry.
	hashes []uint32
	ids    []id
}

// capacity is how many of so many slots may be used. At three quarters a search for what is not there looks at nine hashes
// on average, which share a cache line or two; to keep more slots empty would cost more in memory than it saves.
func capacity(slots int) int { return slots / 4 * 3 }

func newTable[K comparable](entries *slab[K]) table[K] {
	t := table[K]{slab: entries}
	t.resize(smallestTable)
	return t
}

// probe returns the slot of a key: the one that holds it, or the empty one where it belongs.
func (t *table[K]) probe(key K, hash uint32) int {
	mask := len(t.hashes) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		if h := t.hashes[i]; h == 0 || h == hash && t.slab.at(t.ids[i]).key == key {
			return i
		}
	}
}

// find returns the slot and the entry of a key. The entry is nil if there is none.
func (t *table[K]) find(key K, hash uint32) (slot int, e *entry[K]) {
	slot = t.probe(key, hash)
	if t.hashes[slot] != 0 {
		e = t.slab.at(t.ids[slot])
	}
	return slot, e
}

// slotOf returns the slot of an entry.
func (t *table[K]) slotOf(e *entry[K]) int {
	mask := len(t.hashes) - 1
	i := int(e.hash) & mask
	for t.ids[i] != e.id {
		i = (i + 1) & mask
	}
	return i
}

// obtain returns the entry of a key, which is made if there is none.
func (t *table[K]) obtain(key K, hash uint32) *entry[K] {
	i := t.probe(key, hash)
	if t.hashes[i] != 0 {
		return t.slab.at(t.ids[i])
	}
	e := t.slab.take()
	e.key, e.hash = key, hash
	t.hashes[i], t.ids[i] = hash, e.id
	t.used++
	if t.used > capacity(len(t.hashes)) {
		t.resize(len(t.hashes) * 2)
	}
	return e
}

// release forgets an entry of which nothing is pending or processed, and everything that it refers to.
func (t *table[K]) release(slot int, e *entry[K]) {
	t.clear(slot)
	t.slab.put(e)
}

// clear empties a slot, and moves what follows it without a gap to where it now belongs.
func (t *table[K]) clear(gap int) {
	mask := len(t.hashes) - 1
	for i := (gap + 1) & mask; t.hashes[i] != 0; i = (i + 1) & mask {
		// What is in slot i may move to the gap, unless its home lies behind the gap.
		if home := int(t.hashes[i]) & mask; (i-home)&mask >= (i-gap)&mask {
			t.hashes[gap], t.ids[gap] = t.hashes[i], t.ids[i]
			gap = i
		}
	}
	t.hashes[gap], t.ids[gap] = 0, 0
	t.used--
}

// trim leaves room for so many entries.
func (t *table[K]) trim(room int) {
	slots := smallestTable
	for capacity(slots) < room {
		slots *= 2
	}
	if slots < len(t.hashes) {
		t.resize(slots)
	}
}

func (t *table[K]) resize(slots int) {
	hashes, ids := t.hashes, t.ids
	t.hashes, t.ids = make([]uint32, slots), make([]id, slots)
	mask := slots - 1
	for from, h := range hashes {
		if h == 0 {
			continue
		}
		i := int(h) & mask
		for t.hashes[i] != 0 {
			i = (i + 1) & mask
		}
		t.hashes[i], t.ids[i] = h, ids[from]
	}
}
