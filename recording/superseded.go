package recording

import (
	"hash/maphash"
	"iter"
)

// superseded notes which frames of a segment do not matter when the segment is forgotten: a later frame of the same
// watch in the same segment has a newer state of the object. They are then neither decoded nor stored. A frame is known
// by its number among all frames of watches in the segment.
type superseded struct {
	seed   maphash.Seed
	frames int                   // so far
	last   map[watchedObject]int // the last frame of each object; nil when the segment is complete
	bits   []uint64              // has a bit for each frame up to the last one that does not matter
}

// watchedObject is an object in a watch.
type watchedObject struct{ stream, id uint64 }

func newSuperseded() *superseded {
	return &superseded{seed: maphash.MakeSeed(), last: map[watchedObject]int{}}
}

// note notes the frames of a record. If all of them matter, as those of a WatchList do, only their number is noted.
func (s *superseded) note(stream *Stream, data []byte, matter bool) {
	identify := identifyJSON
	if stream.ContentType == typeProtobuf {
		identify = identifyProtobuf
	}
	for frame, complete := range framesOf(stream, data) {
		if complete && !matter {
			if i, known, _ := identify(s.seed, frame); known && i.exact {
				object := watchedObject{stream.ID, i.id}
				if before, ok := s.last[object]; ok {
					s.set(before)
				}
				s.last[object] = s.frames
			}
		}
		s.frames++
	}
}

func (s *superseded) set(n int) {
	for n/64 >= len(s.bits) {
		s.bits = append(s.bits, 0)
	}
	s.bits[n/64] |= 1 << (n % 64)
}

// matters returns the frames of a record that matter, appended to dst. first is the number of its first frame; next is
// that of the record behind it.
func (s *superseded) matters(dst []byte, stream *Stream, data []byte, first int) (frames []byte, next int) {
	for frame := range framesOf(stream, data) {
		if first/64 >= len(s.bits) || s.bits[first/64]&(1<<(first%64)) == 0 {
			dst = append(dst, frame...)
		}
		first++
	}
	return dst, first
}

// framesOf yields the frames of a record of a watch. The last one may be incomplete.
func framesOf(stream *Stream, data []byte) iter.Seq2[[]byte, bool] {
	f := framer{watch: true, protobuf: stream.ContentType == typeProtobuf}
	return func(yield func([]byte, bool) bool) {
		for len(data) > 0 {
			n, complete := f.finish(data)
			if !yield(data[:n], complete) {
				return
			}
			data = data[n:]
		}
	}
}
