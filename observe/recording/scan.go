package recording

import (
	"bytes"
	"errors"
	"time"
)

// scanner finds the blocks of a file without an index.
type scanner struct {
	*Reader
	effort  effort
	buffers buffers
	seen    map[uint64]struct{} // the streams of a block

	window []byte // a part of the file
	from   int64  // its offset
}

// scan finds the blocks.
func (s *scanner) scan() {
	offset := int64(min(headerSize, s.size))
	for last := int64(0); offset < s.size; {
		h, payload, err := s.block(offset, &s.buffers, &s.effort)
		switch {
		case errors.Is(err, errEffort):
			s.problem(Problem{Offset: offset, Size: s.size - offset, From: timeOf(last), Err: err})
			return
		case err == nil:
			last = h.last
			s.add(offset, h, payload)
			offset += blockHeaderSize + int64(h.stored)
			continue
		}
		if b, e := s.read(offset, min(trailerSize, s.size-offset)); e == nil {
			if _, ok := parseTrailer(b); ok && offset+trailerSize == s.size {
				s.complete = true
				return
			}
		}
		next, h := s.next(offset + 1)
		p := Problem{Offset: offset, Size: next - offset, From: timeOf(last), Err: err}
		if next < s.size {
			p.Err, p.To = errDamaged, time.Unix(0, h.first)
		} else if errors.Is(err, errDamaged) && s.size-offset >= blockHeaderSize+4 {
			p.Err = errors.New("damaged, or the file is cut off")
		}
		s.problem(p)
		offset = next
	}
}

// timeOf returns the time of the last record; zero before the first one.
func timeOf(last int64) time.Time {
	if last == 0 {
		return time.Time{}
	}
	return time.Unix(0, last)
}

// add adds a block.
func (s *scanner) add(offset int64, h blockHeader, payload []byte) {
	if h.kind != dataBlock {
		return
	}
	b := indexedBlock{
		Offset: offset, Size: blockHeaderSize + int64(h.stored), First: h.first, Last: h.last, Records: h.records,
	}
	clear(s.seen)
	for len(payload) > 0 {
		e, rest, err := parseEntry(payload, h.first)
		if err != nil {
			s.problem(Problem{Offset: offset, Size: b.Size, From: time.Unix(0, h.first), To: time.Unix(0, h.last), Err: err})
			break
		}
		if (e.kind == Opened || e.kind == again) && s.streams[e.stream] == nil {
			if stream, err := parseStream(e); err == nil {
				s.streams[e.stream] = stream
			}
		}
		if _, seen := s.seen[e.stream]; !seen {
			s.seen[e.stream] = struct{}{}
			b.Streams = append(b.Streams, e.stream)
		}
		payload = rest
	}
	s.blocks = append(s.blocks, b)
}

// next returns the offset of the next good header at or after offset, or the size of the file.
func (s *scanner) next(offset int64) (int64, blockHeader) {
	for {
		b := s.at(offset)
		if len(b) < blockHeaderSize {
			return s.size, blockHeader{}
		}
		found := bytes.Index(b, []byte(blockMarker))
		if found < 0 {
			offset += int64(len(b) - (len(blockMarker) - 1))
			continue
		}
		offset += int64(found)
		if len(b)-found < blockHeaderSize {
			continue // at reads the rest
		}
		if h, ok := parseBlockHeader(b[found : found+blockHeaderSize]); ok {
			return offset, h
		}
		offset++
	}
}

// at returns bytes of the file from an offset, at least those of a header if the file has them. Each part of the file
// is read about once, however many headers it has.
func (s *scanner) at(offset int64) []byte {
	const size = 1 << 20
	if offset < s.from || offset+blockHeaderSize > s.from+int64(len(s.window)) {
		s.window = s.window[:0]
		if n := min(size, s.size-offset); n > 0 {
			b, err := s.read(offset, n)
			if err != nil {
				return nil
			}
			s.window, s.from = b, offset
		}
	}
	if len(s.window) == 0 {
		return nil
	}
	return s.window[offset-s.from:]
}
