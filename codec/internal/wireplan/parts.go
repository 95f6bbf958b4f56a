package wireplan

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"weak"
)

// Parts is a table of the parts of objects that were decoded before: it maps the encoded bytes of a part to its value.
// All answers of a codec share one table. It holds values weakly: a value is collected with the last object that has
// it. Decision 0029 has the reasons.
type Parts struct {
	hash   cipher.AEAD
	shards [partShards]shard
}

const (
	partShards = 8
	partWays   = 4 // places of a part, side by side
	// firstParts and maxParts are the numbers of parts in a shard, at first and at most. A place takes 48 bytes, and 4
	// for the parts that were seen once. So a table takes 26 KB at first, and 13 MB at most.
	firstParts = 1 << 6
	maxParts   = 1 << 15
)

// tag is the hash of the bytes of a part.
type tag [2]uint64

// part is a place of the table. It is free if field is nil.
type part struct {
	tag   tag
	field *messageField // whose values have the same type
	at    weak.Pointer[byte]
	len   int // of a slice
}

// shard is a part of the table with its own lock, which is held for a look-up or an entry.
type shard struct {
	mu    sync.Mutex // guards the fields below
	parts []part
	seen  []uint32 // parts that were seen once: a half of a tag, at a place that the other half gives
	used  int      // places that are not free, dead values included
	next  int      // the way whose value is replaced next
}

// NewParts returns an empty table, or nil if this program can't share parts: it was built with the tag purego, or runs
// with GODEBUG=fips140=only, which allows no GCM with a nonce of the caller.
func NewParts() *Parts {
	if !canShare {
		return nil
	}
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
	p := &Parts{hash: hash}
	for i := range p.shards {
		p.shards[i].resize(firstParts)
	}
	return p
}

// hasher hashes for one goroutine. Its arrays keep the arguments of an interface on the heap.
type hasher struct {
	nonce [12]byte
	sum   [16]byte
}

// of returns the tag of b. It is the tag of AES-GCM for a text that is only authenticated, with one key per table and
// one nonce. No tag leaves the table. So two texts of n bytes that a user has chosen have the same tag with a
// probability of at most n/2^131. hash/maphash has 64 bits and no such bound.
func (h *hasher) of(p *Parts, b []byte) tag {
	sum := p.hash.Seal(h.sum[:0], h.nonce[:], nil, b)
	return tag{binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])}
}

// place returns bits that select the places of a tag. AES-GCM is linear: tags of texts that differ in a few bits differ
// in a few patterns, and so they would crowd a few places. Multiplication is not linear.
func (t tag) place() uint64 {
	const odd = 0x9e3779b97f4a7c15
	x := t[0] * odd
	x = (x ^ x>>32 ^ t[1]) * odd
	return x ^ x>>32
}

func (p *Parts) shard(t tag) *shard { return &p.shards[t.place()>>61] }

// find returns the value of a part. If at is nil, keep reports whether a new value should be kept.
func (p *Parts) find(f *messageField, t tag) (at *byte, len int, keep bool) {
	s := p.shard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.set(t)
	for i := range set {
		if e := &set[i]; e.tag == t && e.field == f {
			if at := e.at.Value(); at != nil {
				return at, e.len, false
			}
			return nil, 0, true
		}
	}
	if f.keepFirst {
		return nil, 0, true
	}
	seen, mark := &s.seen[t.place()>>20&uint64(cap(s.seen)-1)], uint32(t[0]>>32)|1
	keep = *seen == mark
	*seen = mark
	return nil, 0, keep
}

// keep stores the value of a part.
func (p *Parts) keep(f *messageField, t tag, at *byte, len int) {
	s := p.shard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(part{t, f, weak.Make(at), len})
}

// set returns the places of a tag.
func (s *shard) set(t tag) []part {
	at := int(t.place()) & (len(s.parts) - 1) &^ (partWays - 1)
	return s.parts[at : at+partWays]
}

// put stores a part in place of an older value of it, in a free place, or in place of a value that was collected.
// Otherwise it replaces another part, unless the table may grow.
func (s *shard) put(e part) {
	for {
		set := s.set(e.tag)
		to := -1
		for i := range set {
			if is := &set[i]; is.tag == e.tag && is.field == e.field {
				to = i
				break
			} else if to < 0 && (is.field == nil || is.at.Value() == nil) {
				to = i
			}
		}
		if to < 0 {
			if s.used > len(s.parts)/2 && s.grow() {
				continue
			}
			to = s.next % partWays
			s.next++
		}
		if set[to].field == nil {
			s.used++
		}
		set[to] = e
		return
	}
}

// grow removes dead values, and doubles the table if more than a quarter is alive. It returns false if the table is as
// large as allowed.
func (s *shard) grow() bool {
	old, live := s.parts, 0
	if len(old) >= maxParts {
		return false
	}
	for i := range old {
		if old[i].field != nil && old[i].at.Value() == nil {
			old[i] = part{}
		}
		if old[i].field != nil {
			live++
		}
	}
	if live <= len(old)/4 {
		s.used = live
		return true
	}
	s.resize(2 * len(old))
	for i := range old {
		if e := &old[i]; e.field != nil {
			s.put(*e) // at most half of the places are used, so this does not grow again
		}
	}
	return true
}

func (s *shard) resize(n int) { s.parts, s.seen, s.used = make([]part, n), make([]uint32, n), 0 }
