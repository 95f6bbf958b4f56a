package plan

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"weak"
)

// Parts is a table of the parts of objects that were decoded before: it maps the encoded bytes of a part to its value.
// All answers of a codec share one table. It holds values weakly: a value is collected with the last object that has
// it. Decision 0029 has the reasons.
type Parts struct {
	hash   cipher.AEAD
	most   int // parts in a shard
	shards [partShards]shard
}

const (
	partShards = 8
	partWays   = 4 // places of a part, side by side
	// firstParts is the number of parts in a shard at first. A place takes 32 bytes, and 4 for the parts that were seen
	// once. So a table takes 4 KB at first. Below fewParts, a table grows as soon as a part finds no place.
	firstParts = 1 << 3
	fewParts   = 1 << 6
	// MaxParts is the largest number of parts in the table of one codec. A full table takes 9 MB; the runtime takes
	// about as much again for its weak pointers.
	MaxParts = partShards << 15
	// MaxSharedParts is the largest number of parts in the table of many codecs.
	MaxSharedParts = partShards << 17
)

// Tag is the hash of the kind and the bytes of a part.
type Tag [2]uint64

// PartKind identifies values of one type in the same place of an object, such as those of one field. NewPartKind makes
// one.
type PartKind struct {
	id uint64
	// KeepFirst keeps a part when it comes for the first time. Others are kept when they come for the second time.
	KeepFirst bool
	misses    int32 // see Find
}

// kinds is the number of kinds that were made. No kind has the id of one that the program has forgotten, because the
// table may still know values of its type.
var kinds atomic.Uint64

// NewPartKind returns a kind that no other value has.
func NewPartKind(keepFirst bool) PartKind {
	return PartKind{id: kinds.Add(1), KeepFirst: keepFirst, misses: -credit}
}

// part is a place of the table. It is free if its tag is zero.
type part struct {
	tag Tag
	at  weak.Pointer[byte]
	len int // of a slice
}

func (e *part) isFree() bool { return e.tag == Tag{} }

// shard is a part of the table with its own lock, which is held for a look-up or an entry.
type shard struct {
	mu    sync.Mutex // guards the fields below
	parts []part
	// Parts that were seen once: a half of a tag, at a place that the other half gives. Another part with this place
	// makes a mark even, and replaces an even one. So two parts that come by turns are both found.
	seen []uint32
	used int // places that are not free, dead values included
	next int // the way whose value is replaced next
}

// NewParts returns an empty table for at most so many parts: MaxParts or MaxSharedParts. It returns nil if this program
// can't share parts: it was built with the tag purego, or runs with GODEBUG=fips140=only, which allows no GCM with a
// nonce of the caller.
func NewParts(most int) *Parts {
	p := NewTags()
	if p != nil {
		p.most = most / partShards
		for i := range p.shards {
			p.shards[i].resize(firstParts)
		}
	}
	return p
}

// NewTags returns a Parts that only makes tags. It keeps no part.
func NewTags() *Parts {
	if !CanShare {
		return nil
	}
	hash := sharedHash()
	if hash == nil {
		return nil
	}
	return &Parts{hash: hash}
}

// sharedHash returns AES-GCM with a random key, or nil if the program may not use it. All tables have the same one,
// because a key takes 700 bytes, and no tag leaves the process.
var sharedHash = sync.OnceValue(func() cipher.AEAD {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil
	}
	hash, err := cipher.NewGCM(block)
	if err != nil {
		return nil
	}
	return hash
})

// Hasher looks for parts, for one goroutine. Its arrays keep the arguments of an interface on the heap.
type Hasher struct {
	nonce [12]byte
	sum   [16]byte
	// Update means that the object is a new state of one that came before.
	Update  bool
	sample  bool // the object is a sample
	objects uint64
}

const (
	// worthless is the number of misses after which only samples are looked for.
	worthless = 64
	// hitWorth is the number of misses that a hit makes up for. So what is found less than once in nine times becomes
	// worthless.
	hitWorth = 8
	// credit is the number of misses that are free at first, and after a worthless kind has been found again: a part
	// must come twice or three times before it is found.
	credit = 2048
	// epoch is the number of objects or texts for which the samples are the same. An object of a large collection
	// must come again within it.
	epoch = 1 << 14
	// beginning is the number of bytes that select an object as a sample. They contain its name, unless annotations
	// come first.
	beginning = 96
)

// Begin starts another object. The first bytes of b, its encoding, decide whether it is a sample.
func (h *Hasher) Begin(b []byte) {
	h.objects++
	h.sample = isSample(maphash.Bytes(sampleSeed, b[:min(len(b), beginning)]), h.objects/epoch)
}

var sampleSeed = maphash.MakeSeed()

// isSample reports whether a hash is one of a sixteenth. The samples change from turn to turn, because few frequent
// values may have no sample among them.
func isSample(hash, turn uint64) bool { return (hash^turn*odd)*odd>>60 == 0 }

// odd is a factor that mixes bits.
const odd = 0x9e3779b97f4a7c15

// Find returns the value of the part with the bytes b. If at is nil, keep reports whether a new value should be kept.
//
// A hash costs time, which is lost if the part never comes again. So Find counts how often a kind is found. If it is
// worthless, Find looks only in a sixteenth of the objects, until enough parts are found there. The states of an object
// are samples together, so a part that repeats in them is found. A part that is kept when it comes for the first time
// cannot be found in a first list, so only updates count then.
func (h *Hasher) Find(p *Parts, k *PartKind, b []byte) (t Tag, at *byte, n int, keep bool) {
	counts := h.Update || !k.KeepFirst
	misses := atomic.LoadInt32(&k.misses)
	if counts && misses >= worthless && !h.sample {
		return t, nil, 0, false
	}
	t = h.Of(p, k, b)
	at, n, keep = p.Find(k, t)
	if now := afterLook(misses, at != nil); counts && now != misses {
		atomic.StoreInt32(&k.misses, now) // if two goroutines count at the same time, one count may be lost
	}
	return t, at, n, keep
}

// afterLook returns the number of misses after one more look.
func afterLook(misses int32, found bool) int32 {
	if !found {
		return min(misses+1, 2*worthless)
	}
	if now := max(misses-hitWorth, -credit); misses < worthless || now >= worthless {
		return now
	}
	return -credit
}

// Of returns the tag of b. It is the tag of AES-GCM for a text that is only authenticated, with one key per process,
// and with the kind as the nonce. No tag leaves the process. So two texts of n bytes that a user has chosen have the
// same tag with a probability of at most n/2^131, whatever their kinds. hash/maphash has 64 bits and no such bound.
func (h *Hasher) Of(p *Parts, k *PartKind, b []byte) Tag {
	binary.LittleEndian.PutUint64(h.nonce[:], k.id)
	sum := p.hash.Seal(h.sum[:0], h.nonce[:], nil, b)
	return Tag{binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])}
}

// Place returns bits that select the places of a tag. AES-GCM is linear: tags of texts that differ in a few bits differ
// in a few patterns, and so they would crowd a few places. Multiplication is not linear.
func (t Tag) Place() uint64 {
	x := t[0] * odd
	x = (x ^ x>>32 ^ t[1]) * odd
	return x ^ x>>32
}

func (p *Parts) shard(t Tag) *shard { return &p.shards[t.Place()>>61] }

// Find returns the value of a part. If at is nil, keep reports whether a new value should be kept.
func (p *Parts) Find(k *PartKind, t Tag) (at *byte, len int, keep bool) {
	s := p.shard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.set(t)
	for i := range set {
		if e := &set[i]; e.tag == t {
			if at := e.at.Value(); at != nil {
				return at, e.len, false
			}
			return nil, 0, true
		}
	}
	if k.KeepFirst {
		return nil, 0, true
	}
	seen, mark := &s.seen[t.Place()>>20&uint64(cap(s.seen)-1)], uint32(t[0]>>32)|1
	switch {
	case *seen|1 == mark:
		*seen, keep = 0, true
	case *seen&1 != 0:
		*seen--
	default:
		*seen = mark
	}
	return nil, 0, keep
}

// Keep stores the value of a part.
func (p *Parts) Keep(t Tag, at *byte, len int) {
	s := p.shard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(part{t, weak.Make(at), len}, p.most)
}

// set returns the places of a tag.
func (s *shard) set(t Tag) []part {
	at := int(t.Place()) & (len(s.parts) - 1) &^ (partWays - 1)
	return s.parts[at : at+partWays]
}

// put stores a part in place of an older value of it, in a free place, or in place of a value that was collected.
// Otherwise it replaces another part, unless the table may grow.
func (s *shard) put(e part, most int) {
	for {
		set := s.set(e.tag)
		to := -1
		for i := range set {
			if is := &set[i]; is.tag == e.tag {
				to = i
				break
			} else if to < 0 && is.at.Value() == nil {
				to = i
			}
		}
		if to < 0 {
			if len(s.parts) < fewParts {
				s.double(most)
				continue
			}
			if s.used > len(s.parts)/2 && s.grow(most) {
				continue
			}
			to = s.next % partWays
			s.next++
		}
		if set[to].isFree() {
			s.used++
		}
		set[to] = e
		return
	}
}

// grow removes dead values, and doubles the table if more than a quarter is alive. It returns false if the table is as
// large as allowed.
func (s *shard) grow(most int) bool {
	old, live := s.parts, 0
	if len(old) >= most {
		return false
	}
	for i := range old {
		if old[i].at.Value() != nil {
			live++
		} else {
			old[i] = part{}
		}
	}
	if live <= len(old)/4 {
		s.used = live
		return true
	}
	s.double(most)
	return true
}

// double makes a table of twice the size with the same parts.
func (s *shard) double(most int) {
	parts, seen := s.parts, s.seen
	s.resize(2 * len(parts))
	copy(s.seen, seen)
	copy(s.seen[len(s.seen)-len(seen):], seen) // the bit that selects the half is not known any more
	for i := range parts {
		if e := &parts[i]; e.at.Value() != nil {
			s.put(*e, most)
		}
	}
}

func (s *shard) resize(n int) {
	s.parts, s.seen, s.used = make([]part, n), make([]uint32, max(n, fewParts)), 0
}
