package recording

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Repeats replaces long texts that a block has had before by their places, and nothing else. It is the default: the
// events of a watch repeat most of what an earlier event said, and finding long repeats costs a fraction of Flate.
//
// A compressed block is a sequence of: the number of bytes that follow as they are, these bytes, the length of a
// repeat, and its distance in bytes. Numbers are varints. The last sequence may end before the repeat.
func Repeats() Compression { return &repeats{} }

type repeats struct {
	// places are those of the last text with a hash, plus one. The upper half is the lower half of the hash: most texts
	// that differ are then told apart without reading the earlier one, which is often in no near cache.
	places [1 << placeBits]uint64
}

const (
	placeBits = 13
	// minRepeat is the length of the shortest repeat. A place takes up to seven bytes.
	minRepeat = 16
	// placeEvery is the distance of the places that are noted inside of a repeat. More cost time, and fewer lose
	// repeats.
	placeEvery = 32
)

const repeatsID = 3

func (*repeats) ID() byte { return repeatsID }

func (r *repeats) Compress(dst, src []byte) []byte {
	clear(r.places[:])
	from, at, distance := 0, 0, 0 // from is the first byte that is not written
	for last := len(src) - minRepeat; at <= last; {
		text := binary.LittleEndian.Uint64(src[at:])
		// A changed number leaves the rest of an object where it was: the last distance is tried first.
		place := at - distance
		noted := r.note(text, at)
		if distance == 0 || binary.LittleEndian.Uint64(src[place:]) != text {
			if place = noted; place < 0 || binary.LittleEndian.Uint64(src[place:]) != text {
				at += 1 + (at-from)>>5 // steps grow where nothing repeats
				continue
			}
		}
		n := 8 + equal(src[place+8:], src[at+8:])
		for at > from && place > 0 && src[place-1] == src[at-1] {
			at, place, n = at-1, place-1, n+1
		}
		if n < minRepeat {
			at += 8
			continue
		}
		distance = at - place
		dst = append(binary.AppendUvarint(dst, uint64(at-from)), src[from:at]...)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(n)), uint64(distance))
		from = at + n
		for p := at + placeEvery; p < from-8; p += placeEvery {
			r.note(binary.LittleEndian.Uint64(src[p:]), p)
		}
		at = from
	}
	if from < len(src) {
		dst = append(binary.AppendUvarint(dst, uint64(len(src)-from)), src[from:]...)
	}
	return dst
}

// note notes the place of a text, and returns the one that was noted before, or -1.
func (r *repeats) note(text uint64, at int) (before int) {
	h := text * 0x9E3779B97F4A7C15
	slot := &r.places[h>>(64-placeBits)]
	old := *slot
	*slot = h<<32 | uint64(uint32(at)+1)
	if old>>32 != h&0xFFFFFFFF {
		return -1
	}
	return int(uint32(old)) - 1
}

// equal returns the number of bytes at the beginning of b that are equal to those of a, which is not shorter.
func equal(a, b []byte) (n int) {
	const part = 128 // the runtime compares these with vectors
	for len(b)-n >= part && string(a[n:n+part]) == string(b[n:n+part]) {
		n += part
	}
	for len(b)-n >= 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
		n += 8
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

var errRepeats = errors.New("it does not decompress")

func (*repeats) Decompress(dst, src []byte, limit int) ([]byte, error) {
	begin := len(dst)
	number := func() (int, bool) {
		v, n := binary.Uvarint(src)
		if n <= 0 || v > maxBlock {
			return 0, false
		}
		src = src[n:]
		return int(v), true
	}
	for len(src) > 0 {
		n, ok := number()
		if !ok || n > len(src) {
			return dst, errRepeats
		}
		if len(dst)-begin+n > limit {
			return dst, errTooLong
		}
		dst, src = append(dst, src[:n]...), src[n:]
		if len(src) == 0 {
			break
		}
		n, ok = number()
		distance, found := number()
		switch {
		case !ok || !found || distance == 0 || distance > len(dst)-begin:
			return dst, errRepeats
		case len(dst)-begin+n > limit:
			return dst, errTooLong
		}
		for n > 0 { // a repeat may be longer than its distance
			part := min(n, distance)
			dst = append(dst, dst[len(dst)-distance:len(dst)-distance+part]...)
			n -= part
		}
	}
	return dst, nil
}
