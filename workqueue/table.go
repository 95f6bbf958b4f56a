package workqueue

const (
	// smallestTable is the number of slots of an empty table, a power of two.
	smallestTable = 32
	// occupied is a bit of every hash, so that zero can mark an empty slot.
	occupied = 1 << 31
)

// table finds the entry of a key. It uses open addressing with linear probing, and is at most three quarters full.
//
// A Go map would also work. But it would hash the key twice for each add and Done, under the queue's lock; the table
// hashes once, before taking the lock. And a map never releases the memory that a burst of keys needed.
type table[K comparable] struct {
	slab *slab[K]
	used int

	// The number of slots is a power of two. The hashes have an array of their own, so that a look-up among a million
	// keys reads little memory and growing does not visit the entries.
	hashes []uint32
	ids    []id
}

// capacity returns how many of the given slots may be used. At three quarters, a search for a missing key reads nine
// hashes on average, which are in one or two cache lines. Keeping more slots empty would need more memory and save
// little time.
func capacity(slots int) int { return slots / 4 * 3 }

func newTable[K comparable](entries *slab[K]) table[K] {
	t := table[K]{slab: entries}
	t.resize(smallestTable)
	return t
}

// probe returns the slot that holds a key, or the empty slot where the key belongs.
func (t *table[K]) probe(key K, hash uint32) int {
	mask := len(t.hashes) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		if h := t.hashes[i]; h == 0 || h == hash && t.slab.at(t.ids[i]).key == key {
			return i
		}
	}
}

// find returns the slot and the entry of a key. The entry is nil if the table does not have the key.
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

// obtain returns the entry of a key, and creates it if necessary.
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

// release removes an entry that is neither pending nor processed, with everything that it refers to.
func (t *table[K]) release(slot int, e *entry[K]) {
	t.clear(slot)
	t.slab.put(e)
}

// clear empties a slot. It then moves the following entries to where they now belong, up to the next empty slot.
func (t *table[K]) clear(gap int) {
	mask := len(t.hashes) - 1
	for i := (gap + 1) & mask; t.hashes[i] != 0; i = (i + 1) & mask {
		// The entry in slot i may move to the gap, unless its home is behind the gap.
		if home := int(t.hashes[i]) & mask; (i-home)&mask >= (i-gap)&mask {
			t.hashes[gap], t.ids[gap] = t.hashes[i], t.ids[i]
			gap = i
		}
	}
	t.hashes[gap], t.ids[gap] = 0, 0
	t.used--
}

// trim shrinks the table to the size that the given number of entries needs.
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
