package workqueue

import (
	"math/bits"
	"time"
)

const (
	// chunkLength is the number of entries that are allocated together.
	chunkLength = 64
	// smallestTable is the number of slots of an empty table, a power of two.
	smallestTable = 32
)

// table holds the entries of a queue and finds the entry of a key.
//
// The slots use open addressing with linear probing, and at most three quarters of them are used. A Go map would need
// less code. But it would hash the key twice for each add and Done, under the queue's lock; the table hashes once,
// before taking the lock. And a map of a million strings takes 39 bytes more for each key.
//
// The entries are in chunks, which are allocated, reused and released as a whole. References between entries are ids,
// so a backlog of a million keys is a few thousand objects for the garbage collector, and few pointers.
type table[K comparable] struct {
	slots  []slot      // their number is a power of two
	chunks []*chunk[K] // nil for a chunk that was released
	open   []int       // indexes of the chunks that have a free entry or were released; the last one is used first
	room   int         // number of entries in all chunks
	used   int         // number of entries that are not free
	peak   int         // largest value of used since the last trim
}

// slot refers to the entry of a key. It holds the hash too, so that a look-up among a million keys reads little memory
// and growing does not visit the entries.
type slot struct {
	hash uint32
	id   id // zero for an empty slot
}

type chunk[K comparable] struct {
	entries [chunkLength]entry[K]
	causes  *[chunkLength]causeList // one for each entry; nil until an entry needs its list
	free    uint64                  // one bit for each entry
}

const allFree = 1<<chunkLength - 1

func newTable[K comparable]() table[K] { return table[K]{slots: make([]slot, smallestTable)} }

// at returns the entry of an id, which must not be zero.
func (t *table[K]) at(i id) *entry[K] {
	return &t.chunks[(i-1)/chunkLength].entries[(i-1)%chunkLength]
}

// find returns the entry of a key, or nil.
func (t *table[K]) find(key K, hash uint32) *entry[K] {
	for i := int(hash); ; i++ {
		s := t.slots[i&(len(t.slots)-1)]
		if s.id == 0 {
			return nil
		}
		if s.hash == hash {
			if e := t.at(s.id); e.key == key {
				return e
			}
		}
	}
}

// obtain returns the entry of a key, and creates it if necessary.
func (t *table[K]) obtain(key K, hash uint32) *entry[K] {
	e := t.find(key, hash)
	if e == nil {
		e = t.take()
		e.key, e.hash = key, hash
		if t.used > capacity(len(t.slots)) {
			t.resize(len(t.slots) * 2)
		}
		t.insert(slot{hash, e.id})
	}
	return e
}

// insert fills the first empty slot where find looks for the entry.
func (t *table[K]) insert(s slot) {
	mask := len(t.slots) - 1
	i := int(s.hash) & mask
	for t.slots[i].id != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// release frees an entry that is neither pending nor processed. It empties the entry's slot, and moves the following
// slots to where they now belong, up to the next empty slot.
func (t *table[K]) release(e *entry[K]) {
	mask := len(t.slots) - 1
	gap := int(e.hash) & mask
	for t.slots[gap].id != e.id {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.slots[i].id != 0; i = (i + 1) & mask {
		// Slot i may move to the gap, unless its home is behind the gap.
		if home := int(t.slots[i].hash) & mask; (i-home)&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = slot{}
	t.put(e)
}

// take returns a free entry.
func (t *table[K]) take() *entry[K] {
	if len(t.open) == 0 {
		t.open = append(t.open, len(t.chunks))
		t.chunks = append(t.chunks, nil)
	}
	last := len(t.open) - 1
	at := t.open[last]
	c := t.chunks[at]
	if c == nil {
		c = &chunk[K]{free: allFree}
		t.chunks[at] = c
		t.room += chunkLength
	}
	i := bits.TrailingZeros64(c.free)
	c.free &= c.free - 1
	if c.free == 0 {
		t.open = t.open[:last]
	}
	t.used++
	t.peak = max(t.peak, t.used)
	e := &c.entries[i]
	e.id = id(at*chunkLength + i + 1)
	return e
}

// put frees an entry. It clears only the key; the caller has cleared every other field that is read before it is set.
func (t *table[K]) put(e *entry[K]) {
	var none K
	e.key = none
	at, i := (e.id-1)/chunkLength, (e.id-1)%chunkLength
	c := t.chunks[at]
	if c.free == 0 {
		t.open = append(t.open, int(at))
	}
	c.free |= 1 << i
	t.used--
}

// causesOf returns the causes of an entry, for an add.
func (t *table[K]) causesOf(e *entry[K]) *causeList {
	if e.causes == nil {
		c := t.chunks[(e.id-1)/chunkLength]
		if c.causes == nil {
			c.causes = new([chunkLength]causeList)
		}
		e.causes = &c.causes[(e.id-1)%chunkLength]
	}
	return e.causes
}

// capacity returns how many of the given slots may be used. At three quarters, a search for a missing key reads nine
// slots on average, which are in one or two cache lines. Keeping more slots empty would need more memory and save
// little time.
func capacity(slots int) int { return slots / 4 * 3 }

func (t *table[K]) resize(slots int) {
	old := t.slots
	t.slots = make([]slot, slots)
	for _, s := range old {
		if s.id != 0 {
			t.insert(s)
		}
	}
}

// trim releases what the table does not need for the given number of entries.
func (t *table[K]) trim(room int) {
	slots := smallestTable
	for capacity(slots) < room {
		slots *= 2
	}
	if slots < len(t.slots) {
		t.resize(slots)
	}
	t.open = nil
	for i, c := range t.chunks {
		if c != nil && c.free == allFree && t.room-chunkLength >= room {
			t.chunks[i], c = nil, nil
			t.room -= chunkLength
		}
		if c == nil {
			t.open = append(t.open, i)
		}
	}
	for i, c := range t.chunks {
		if c != nil && c.free != 0 {
			t.open = append(t.open, i)
		}
	}
}

const (
	// roomy is the number of entries that a queue always keeps room for.
	roomy = 256
	// trimAfter is how long the queue keeps more room than that without using it. If it released the room at once, a
	// queue whose backlog comes and goes would allocate memory again and again.
	trimAfter = 10 * time.Second
)

// planTrim starts the timer of the next trim if the queue has much more room than entries.
func (q *Queue[K]) planTrim() {
	if t := &q.table; q.trimmer == nil && t.room > roomy && t.room > 2*t.used && !q.closed {
		q.trimmer = time.AfterFunc(trimAfter, q.trim)
	}
}

// trim releases the room that was not needed since the last trim. So the second trim after a burst releases the room of
// the burst, at the latest.
func (q *Queue[K]) trim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	room := max(q.table.peak, roomy)
	q.table.trim(room)
	q.delays.trim(room)
	q.table.peak, q.trimmer = q.table.used, nil
	q.planTrim()
}
