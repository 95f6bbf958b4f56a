package recording

import (
	"bytes"
	"encoding/binary"
)

// comparison compares one frame with a keyframe while its bytes arrive, and writes the difference. It reads bytes that
// are the same once, to compute a hash, and copies only the others. It belongs to one goroutine.
type comparison struct {
	*summer
	k        *keyframe
	protobuf bool
	left     int // bytes to the end of a frame in protobuf

	part  int    // of the keyframe: the next one, if nothing was added or removed
	next  int    // part behind the last one that was copied
	fails int    // searches without a result
	held  []byte // the beginning of a part, which earlier pieces had

	out             []byte // the difference, except what follows
	different       []byte // bytes that are not in the keyframe
	copied, skipped int    // bytes of a copy behind them
	size            int    // of the frame so far
}

const (
	// searchWindow is the number of bytes in which the next parts of the keyframe are searched, after bytes were added
	// or removed. searchParts is the number of these parts.
	searchWindow, searchParts = 512, 64
	// maxFails is the number of searches after which the rest of the frame is taken as different.
	maxFails = 4
)

// begin begins with a frame whose first bytes, up to its object, are head.
func (c *comparison) begin(k *keyframe, head []byte) {
	c.k = k
	c.part, c.next, c.fails, c.size = 0, 0, 0, len(head)
	c.held, c.out, c.copied = c.held[:0], kept(c.out), 0
	c.different = append(kept(c.different), head...)
	c.skipped = k.start
}

// add compares the next bytes. It returns how many belong to the frame, and whether the frame is complete.
func (c *comparison) add(b []byte) (n int, complete bool) {
	last := c.protobuf && len(b) >= c.left
	if last {
		b = b[:c.left]
	}
	n, complete = c.compare(b, last)
	c.left -= n
	c.size += n
	return n, complete || last
}

// compare compares b. If last is true, the frame ends with b.
func (c *comparison) compare(b []byte, last bool) (n int, complete bool) {
	if len(c.held) > 0 {
		if n, complete = c.hold(b, last); complete || n == len(b) {
			return n, complete
		}
	}
	for c.part < len(c.k.sums) {
		if equal := c.equal(b[n:]); equal > 0 {
			c.same(equal)
			n += equal * partSize
			continue
		}
		if len(b)-n < partSize {
			m, complete := c.hold(b[n:], last)
			return n + m, complete
		}
		m, complete := c.mismatch(b[n:])
		if n += m; complete {
			return n, true
		}
	}
	m, complete := c.differ(b[n:])
	return n + m, complete
}

// equal returns the number of parts at the beginning of b that are the next ones of the keyframe.
func (c *comparison) equal(b []byte) int {
	sums := c.k.sums[c.part:]
	n, _ := c.summer.equal(sums, b[:min(len(b), partSize*len(sums))])
	return n
}

// same notes that the next n parts are those of the keyframe.
func (c *comparison) same(n int) {
	if c.copied == 0 {
		c.skipped += (c.part - c.next) * partSize
	}
	c.copied += n * partSize
	c.part += n
	c.next = c.part
}

// differ notes bytes that are not in the keyframe, as far as they belong to the frame. The frame may end only in bytes
// that differ, because no part of a keyframe has its end.
func (c *comparison) differ(b []byte) (n int, complete bool) {
	if !c.protobuf {
		if at := bytes.IndexByte(b, '\n'); at >= 0 {
			b, complete = b[:at+1], true
		}
	}
	if c.copied > 0 {
		c.flush()
	}
	c.different = append(c.different, b...)
	return len(b), complete
}

// flush writes the bytes that differ and the copy behind them.
func (c *comparison) flush() {
	c.out = appendDifferent(c.out, c.different)
	if c.copied > 0 {
		c.out = appendCopy(c.out, c.copied, c.skipped)
	}
	c.different, c.copied, c.skipped = c.different[:0], 0, 0
}

// hold keeps the beginning of a part until the part is complete, and then compares it. The frame may end before.
func (c *comparison) hold(b []byte, last bool) (n int, complete bool) {
	room := partSize - len(c.held)
	complete = last && len(b) <= room
	b = b[:min(len(b), room)]
	if !c.protobuf {
		if at := bytes.IndexByte(b, '\n'); at >= 0 {
			b, complete = b[:at+1], true
		}
	}
	c.held = append(c.held, b...)
	switch {
	case complete:
		c.differ(c.held)
	case len(c.held) < partSize:
		return len(b), false
	case c.equal(c.held) == 1:
		c.same(1)
	default:
		c.differ(c.held)
		c.part++
	}
	c.held = c.held[:0]
	return len(b), complete
}

// finish returns the difference. It is valid until begin is called.
func (c *comparison) finish() []byte {
	if len(c.held) > 0 {
		c.differ(c.held) // the answer has ended inside of the frame
	}
	c.flush()
	return c.out
}

// mismatch notes bytes that are not the next part of the keyframe, and finds the place at which it continues. There are
// at least as many bytes as a part has.
func (c *comparison) mismatch(b []byte) (n int, complete bool) {
	if c.continues(b, 1) || c.continues(b, 2) || len(b) < 2*partSize {
		c.part++ // something was changed in its place
		return c.differ(b[:partSize])
	}
	window := b[:min(len(b), searchWindow)]
	if at, part := c.search(b); part >= 0 {
		c.part = part
		return c.differ(b[:at])
	}
	if c.fails++; c.fails >= maxFails {
		c.part = len(c.k.sums)
	}
	return c.differ(window)
}

// continues reports whether the keyframe continues in its place after a number of parts.
func (c *comparison) continues(b []byte, parts int) bool {
	at := parts * partSize
	return c.part+parts < len(c.k.sums) && len(b) >= at+partSize && c.sum((*[partSize]byte)(b[at:])) == c.k.sums[c.part+parts]
}

// search returns where in b one of the next parts of the keyframe begins, and which. If b has no such part, the part is
// -1. A filter of the anchors makes most places cost one load.
func (c *comparison) search(b []byte) (at, part int) {
	const filterBits = 10
	var filter [1 << filterBits / 64]uint64
	slot := func(anchor uint64) (word, bit uint64) {
		h := anchor * 0x9E3779B97F4A7C15 >> (64 - filterBits)
		return h / 64, 1 << (h % 64)
	}
	anchors := c.k.anchors[c.next:min(len(c.k.anchors), c.next+searchParts)]
	for _, a := range anchors {
		word, bit := slot(a)
		filter[word] |= bit
	}
	for at := range min(searchWindow, len(b)-partSize+1) {
		text := binary.LittleEndian.Uint64(b[at:])
		if word, bit := slot(text); filter[word]&bit == 0 {
			continue
		}
		for i, a := range anchors {
			if a == text && c.sum((*[partSize]byte)(b[at:])) == c.k.sums[c.next+i] {
				return at, c.next + i
			}
		}
	}
	return 0, -1
}
