package recording

import "time"

// cutter divides the bytes of a watch into frames on the goroutine of the client. A frame whose object has a keyframe
// becomes a difference at once, from the client's buffer. Others are copied, and large ones become keyframes.
type cutter struct {
	tap       *tap
	keyframes *keyframes
	protobuf  bool

	keyframe *keyframe  // of the object of the present frame; nil if the frame is not compared
	compared comparison // of the present frame with its keyframe
	framer   framer     // has the beginning of a frame that is not compared
	unknown  bool       // whether the beginning may be too short to tell the object
	wasSmall bool       // whether the frame before was a small one
	at       time.Time  // of the present piece; zero until a record needs it
}

// searchStep is the number of bytes after which the identity of an object is searched again, if a frame arrives in
// small pieces.
const searchStep = 1 << 10

func newCutter(t *tap, table *keyframes, protobuf bool) *cutter {
	return &cutter{
		tap: t, keyframes: table, protobuf: protobuf, compared: comparison{summer: table.summer, protobuf: protobuf},
		framer: framer{watch: true, protobuf: protobuf},
	}
}

// add records a piece of the answer. It returns false if the stream is not recorded any more.
func (c *cutter) add(piece []byte) (ok bool) {
	c.at = time.Time{}
	for ok = true; ok && len(piece) > 0; {
		n := 0
		switch {
		case c.keyframe != nil:
			n, ok = c.compare(piece)
		case len(c.framer.tail) > 0:
			n, ok = c.extend(piece)
		default:
			n, ok = c.begin(piece)
		}
		piece = piece[n:]
	}
	return ok
}

// begin records the small frames at the beginning of a piece, or begins a large one. Frames of a watch often have
// similar sizes, so small ones are tried first after a small one.
func (c *cutter) begin(piece []byte) (n int, ok bool) {
	if c.wasSmall {
		if n, ok = c.small(piece); n > 0 {
			return n, ok
		}
	}
	i, known, more := c.identify(piece)
	if known && c.begins(i, piece) {
		c.wasSmall = false
		return i.start, true
	}
	if !c.wasSmall {
		if n, ok = c.small(piece); n > 0 {
			c.wasSmall = true
			return n, ok
		}
	}
	c.wasSmall = false
	n, complete := c.framer.finish(piece)
	if complete {
		return n, c.whole(piece[:n])
	}
	c.framer.tail, c.unknown = append(c.framer.tail, piece...), more
	return n, n <= maxRecord || c.lose()
}

// small records the small frames at the beginning of a piece as one record.
func (c *cutter) small(piece []byte) (size int, ok bool) {
	frames := 0
	for size < len(piece) {
		n, complete := c.framer.finish(piece[size:min(len(piece), size+minKeyframe)])
		if !complete {
			break
		}
		size, frames = size+n, frames+1
	}
	if size == 0 {
		return 0, true
	}
	return size, c.record(tapped{kind: Data, data: piece[:size], size: size, frames: frames})
}

// begins begins to compare a frame, if its object has a keyframe.
func (c *cutter) begins(i objectID, frame []byte) bool {
	if c.keyframe = c.keyframes.find(i.id, c.now()); c.keyframe == nil {
		return false
	}
	c.compared.begin(c.keyframe, frame[:i.start])
	if c.protobuf {
		c.compared.left = frameSize(frame) - i.start
	}
	return true
}

// compare compares the next bytes of a frame, and records the difference when the frame is complete.
func (c *cutter) compare(piece []byte) (n int, ok bool) {
	n, complete := c.compared.add(piece)
	switch {
	case c.compared.size > maxRecord:
		return n, c.lose()
	case complete:
		return n, c.difference(1)
	}
	return n, true
}

// difference records the difference of a frame.
func (c *cutter) difference(frames int) bool {
	k := c.keyframe
	c.keyframe = nil
	d := c.compared.finish()
	origin := c.keyframes.noteUse(k, len(d), frames > 0)
	return c.record(tapped{kind: difference, data: d, keyframe: k, origin: origin, size: c.compared.size, frames: frames})
}

// extend adds bytes to the beginning of a frame, which earlier pieces had.
func (c *cutter) extend(piece []byte) (n int, ok bool) {
	n, complete := c.framer.finish(piece)
	if c.unknown && n > searchStep {
		n, complete = searchStep, false
	}
	tail := append(c.framer.tail, piece[:n]...)
	c.framer.tail = tail
	if c.unknown {
		var i objectID
		var known bool
		if i, known, c.unknown = c.identify(tail); known && c.begins(i, tail) {
			c.framer.tail = tail[:0]
			_, ok = c.compare(tail[i.start:])
			return n, ok
		}
	}
	switch {
	case len(tail) > maxRecord:
		return n, c.lose()
	case complete:
		c.framer.tail = kept(tail)
		return n, c.whole(tail)
	}
	return n, true
}

// kept returns an empty slice with the memory of b, unless that is much.
func kept(b []byte) []byte {
	if cap(b) > fullBlock {
		return nil
	}
	return b[:0]
}

// whole records a frame as it is, and makes it the keyframe of its object.
func (c *cutter) whole(frame []byte) bool {
	e := tapped{kind: Data, data: frame, size: len(frame), frames: 1}
	if len(frame) >= minKeyframe && len(frame) <= maxKeyframe {
		if i, known, _ := c.identify(frame); known && i.start < len(frame) {
			e.keyframe = newKeyframe(c.keyframes.summer, i.id, frame, i.start, c.now())
		}
	}
	if !c.record(e) {
		return false
	}
	if e.keyframe != nil {
		c.keyframes.add(e.keyframe)
	}
	return true
}

// rest records the frame that is not complete.
func (c *cutter) rest() {
	c.at = time.Time{}
	tail := c.framer.tail
	switch {
	case c.keyframe != nil:
		c.difference(0)
	case len(tail) > 0:
		c.record(tapped{kind: Data, data: tail, size: len(tail)})
	}
}

// lose ends the record of the stream, because a frame is too large.
func (c *cutter) lose() bool {
	c.record(tapped{kind: Lost})
	return false
}

// now returns the time at which the present piece arrived.
func (c *cutter) now() time.Time {
	if c.at.IsZero() {
		c.at = time.Now()
	}
	return c.at
}

func (c *cutter) record(e tapped) bool {
	e.stream, e.at = c.tap, c.now()
	if len(e.data) > maxRecord-maxPlace { // the file would lose it; then nothing may refer to it
		e = tapped{kind: Lost, stream: c.tap, at: e.at}
	}
	return c.tap.recorder.add(e) && e.kind != Lost
}

func (c *cutter) identify(frame []byte) (i objectID, known, more bool) {
	if c.protobuf {
		return identifyProtobuf(c.keyframes.seed, frame)
	}
	return identifyJSON(c.keyframes.seed, frame)
}
