package recording

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
)

// keptPayloads bounds the memory in bytes of the blocks that have keyframes, while records are read. Above it, a block
// may be decompressed again.
const keptPayloads = 256 << 20

// payloads are decompressed blocks with keyframes. When the recent ones have half of the memory, those that were not
// used since the last time are forgotten.
type payloads struct {
	*Reader
	effort        effort
	recent, older map[int][]byte // by index in Reader.blocks
	kept          int            // size of the recent ones in bytes
	failed        map[int]error  // blocks that cannot be read
	frame         []byte         // the last one that was resolved
}

// of returns the payload of a block.
func (p *payloads) of(i int) ([]byte, error) {
	if b, ok := p.recent[i]; ok {
		return b, nil
	}
	b, ok := p.older[i]
	if !ok {
		err := p.failed[i]
		if err == nil {
			if _, b, err = p.Reader.block(p.blocks[i].Offset, &buffers{}, &p.effort); err == nil {
				err = p.effort.spend(15 * len(b)) // it takes longer than a copy, and memory is new
			}
		}
		if err != nil {
			if p.failed == nil {
				p.failed = map[int]error{}
			}
			p.failed[i] = err
			return nil, err
		}
	}
	if p.recent == nil || p.kept+len(b) > keptPayloads/2 {
		p.recent, p.older, p.kept = map[int][]byte{}, p.recent, 0
	}
	p.recent[i] = b
	p.kept += len(b)
	return b, nil
}

// errLostKeyframe means that a difference refers to a block that cannot be read.
var errLostKeyframe = errors.New("the keyframe of a change cannot be read")

// resolve returns the frame of a difference in a block, whose payload is own. The frame is valid until the next call.
func (p *payloads) resolve(block int, own, data []byte) ([]byte, error) {
	var numbers [3]int // see difference
	for i := range numbers {
		v, n := binary.Uvarint(data)
		if n <= 0 || v > math.MaxInt32 {
			return nil, errDifference
		}
		numbers[i], data = int(v), data[n:]
	}
	back, offset, size := numbers[0], numbers[1], numbers[2]
	from := own
	if back > 0 {
		var err error
		if from, err = p.earlier(block, back); err != nil {
			return nil, err
		}
	}
	if size > maxKeyframe || offset > len(from) || size > len(from)-offset {
		return nil, errDifference
	}
	var err error
	p.frame, err = applyDifference(p.frame[:0], from[offset:offset+size], data)
	if err == nil && len(p.frame) > maxRecord {
		err = errDifference
	}
	if err == nil {
		err = p.effort.spend(len(p.frame))
	}
	return p.frame, err
}

// earlier returns the payload of the block with a number that is lower than that of a block.
func (p *payloads) earlier(block, back int) ([]byte, error) {
	number := int64(p.blocks[block].Number) - int64(back)
	i, found := slices.BinarySearchFunc(p.blocks[:block], number, func(b indexedBlock, number int64) int {
		return cmp.Compare(int64(b.Number), number)
	})
	if found {
		b, err := p.of(i)
		var method *methodError
		if err == nil || errors.As(err, &method) || errors.Is(err, errEffort) {
			return b, err
		}
		p.damaged(i, err)
	}
	if p.needed(i, found, p.blocks[block].Last) {
		return nil, errLostKeyframe
	}
	return nil, errDifference
}

// needed notes that a record at a time needs a part that cannot be read: block i, or else the bytes before it. It
// returns false if no such part is known.
func (r *Reader) needed(i int, found bool, at int64) bool {
	from, to := int64(0), r.blocks[i].Offset
	if found {
		from, to = to, to+1
	} else if i > 0 {
		from = r.blocks[i-1].Offset + r.blocks[i-1].Size
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, _ := slices.BinarySearchFunc(r.problems, from, func(p Problem, offset int64) int { return cmp.Compare(p.Offset, offset) })
	if n < len(r.problems) {
		if p := &r.problems[n]; p.Offset < to {
			if last := time.Unix(0, at); last.After(p.To) {
				p.To = last
			}
			return true
		}
	}
	return false
}
