package recording

import (
	"hash/maphash"
	"sync"
	"time"
)

// keyframe is a frame that was written whole. Later frames of the same object are written as differences to it. Memory
// has hashes of its parts instead of its text.
type keyframe struct {
	sums    []uint64 // of the parts
	start   int      // of the first part in the frame
	anchors []uint64 // the first eight bytes of each part

	// keyframes.mu guards the fields below.
	due   bool   // the next frame of the object is a new keyframe
	used  bool   // since the hand has passed
	uses  uint16 // differences that were written
	least int32  // bytes of the smallest difference
	waste int32  // bytes that the other differences had above that
	id    uint64
	made  int64  // nanoseconds since 1970
	at    origin // where it is in the file
}

// origin is where a keyframe is: its block, its offset in the decompressed payload, and its size. A size of 0 means
// that it was not written yet.
type origin struct{ block, offset, size uint32 }

const (
	// minKeyframe is the size of the smallest keyframe. Smaller frames cost as much when they are written whole.
	minKeyframe = 1 << 10
	// maxKeyframe is the size of the largest keyframe.
	maxKeyframe = 1 << 20
	// maxUses and maxKeyframeAge bound how many frames are lost with the block of a keyframe.
	maxUses        = 256
	maxKeyframeAge = 10 * time.Minute
	// keyframeOverhead is the memory in bytes of a keyframe without its parts, with up to four slots of the table.
	keyframeOverhead = 192
)

// memory returns the memory of the keyframe in bytes.
func (k *keyframe) memory() int { return 8*(cap(k.sums)+len(k.anchors)) + keyframeOverhead }

// newKeyframe returns the keyframe of a frame whose object has an id and begins at start. The end of the frame belongs
// to no part: otherwise a part of a later frame that is equal could be behind its end.
func newKeyframe(s *summer, id uint64, frame []byte, start int, at time.Time) *keyframe {
	body := frame[start:]
	n := (len(body) - 1) / partSize
	k := withSums(n)
	k.start, k.id, k.made, k.anchors = start, id, at.UnixNano(), make([]uint64, n)
	for i := range n {
		part := (*[partSize]byte)(body[i*partSize:])
		k.sums[i], k.anchors[i] = s.sum(part), word(part, 0)
	}
	return k
}

// withSums returns a keyframe with room for n hashes, if possible in the memory behind it. Keyframes are in no cache
// when they are used, and this saves the second of two waits for memory.
func withSums(n int) *keyframe {
	switch {
	case n <= 32:
		return inRoom(func(sums *[32]uint64) []uint64 { return sums[:n] })
	case n <= 64:
		return inRoom(func(sums *[64]uint64) []uint64 { return sums[:n] })
	case n <= 96:
		return inRoom(func(sums *[96]uint64) []uint64 { return sums[:n] })
	case n <= 128:
		return inRoom(func(sums *[128]uint64) []uint64 { return sums[:n] })
	default:
		return &keyframe{sums: make([]uint64, n)}
	}
}

// inRoom returns a keyframe whose hashes are in an array behind it.
func inRoom[A any](slice func(*A) []uint64) *keyframe {
	k := &struct {
		keyframe
		sums A
	}{}
	k.keyframe.sums = slice(&k.sums)
	return &k.keyframe
}

// keyframes are the keyframes of a recording, one for each object, in bounded memory. If it is full, a keyframe that
// was not used lately is forgotten; the next frame of its object is a new one.
type keyframes struct {
	*summer
	seed  maphash.Seed // of identities
	limit int          // bytes

	mu     sync.Mutex // guards the fields below, and some of each keyframe
	table  []slot     // by id; half of it is empty, and its length is a power of two
	n      int        // keyframes
	hand   int        // in table: the next one that is forgotten if it was not used
	memory int        // bytes
}

// slot is an entry of a hash table with linear probing. A look-up waits for memory once, and in a map twice.
type slot struct {
	id uint64
	k  *keyframe // nil if the slot is empty
}

func newKeyframes(limit int) *keyframes {
	return &keyframes{summer: newSummer(), seed: maphash.MakeSeed(), limit: limit, table: make([]slot, 64)}
}

// at returns the slot of an id: the one that has it, or the one where it belongs.
func (t *keyframes) at(id uint64) int {
	mask := len(t.table) - 1
	i := int(id) & mask
	for t.table[i].k != nil && t.table[i].id != id {
		i = (i + 1) & mask
	}
	return i
}

// find returns the keyframe of an object at a time, or nil if a new one is due.
func (t *keyframes) find(id uint64, at time.Time) *keyframe {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.table[t.at(id)].k
	if k == nil || k.due || at.UnixNano()-k.made > int64(maxKeyframeAge) {
		return nil
	}
	k.used = true
	return k
}

// noteUse notes a difference of a size to a keyframe, and returns where the keyframe is. The least size is what
// changes in each event. If others are larger, the object has moved away from its keyframe, and a new one is worth its
// size when they have cost as much. The size of a frame that is not whole says nothing.
func (t *keyframes) noteUse(k *keyframe, size int, whole bool) origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !whole {
		return k.at
	}
	if k.uses == 0 || int32(size) < k.least {
		k.least = int32(size)
	}
	k.uses++
	k.waste += int32(size) - k.least
	k.due = k.uses >= maxUses || int(k.waste) > partSize*len(k.sums)
	return k.at
}

// written notes where a keyframe is.
func (t *keyframes) written(k *keyframe, at origin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.at = at
}

// origin returns where a keyframe is.
func (t *keyframes) origin(k *keyframe) origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	return k.at
}

// add adds a keyframe. It replaces that of its object.
func (t *keyframes) add(k *keyframe) {
	if k.memory() > t.limit {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k.used = true
	t.memory += k.memory()
	i := t.at(k.id)
	if old := t.table[i].k; old != nil {
		t.memory -= old.memory()
	} else {
		t.n++
	}
	t.table[i] = slot{k.id, k}
	for t.memory > t.limit {
		t.forget()
	}
	if t.n > len(t.table)/2 {
		t.grow()
	}
}

func (t *keyframes) grow() {
	old := t.table
	t.table, t.hand = make([]slot, 2*len(old)), 0
	for _, s := range old {
		if s.k != nil {
			t.table[t.at(s.id)] = s
		}
	}
}

// forget moves the hand by one slot. It forgets the keyframe there, if that was not used since the last time.
func (t *keyframes) forget() {
	i := t.hand & (len(t.table) - 1)
	k := t.table[i].k
	if k == nil || k.used {
		if k != nil {
			k.used = false
		}
		t.hand = i + 1
		return
	}
	t.memory -= k.memory()
	t.n--
	t.table[i] = slot{}
	// Move those behind it that a look-up would not find any more.
	mask := len(t.table) - 1
	for j := (i + 1) & mask; t.table[j].k != nil; j = (j + 1) & mask {
		s := t.table[j]
		t.table[j] = slot{}
		t.table[t.at(s.id)] = s
	}
}
