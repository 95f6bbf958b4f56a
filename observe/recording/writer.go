package recording

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
)

const (
	// reopenEvery is the number of blocks after which the open streams are described again.
	reopenEvery = 64
	// indexEvery is the number of blocks that one index describes. It bounds the memory of a writer.
	indexEvery = 1024
)

// writer writes a recording. It belongs to one goroutine. After an error it writes nothing more.
type writer struct {
	w      io.Writer
	offset int64
	err    error

	payload []byte // of the block
	head    blockHeader
	streams map[uint64]bool // of the block
	out     []byte          // a block as it is written

	open    map[uint64]*openStream
	sinceRe int // blocks since the open streams were described

	index     index
	lastIndex int64
}

// openStream is a stream without its end.
type openStream struct {
	*Stream
	records uint64
}

// index is the payload of an index block.
type index struct {
	Previous int64          `json:"previous"` // offset of the index before; 0 for none
	Blocks   []indexedBlock `json:"blocks"`
	Streams  []*Stream      `json:"streams,omitempty"` // opened in these blocks
}

type indexedBlock struct {
	Offset  int64    `json:"offset"`
	Size    int64    `json:"size"` // with its header
	First   int64    `json:"first"`
	Last    int64    `json:"last"`
	Records uint32   `json:"records"`
	Streams []uint64 `json:"streams"`
}

func newWriter(w io.Writer, created time.Time) *writer {
	x := &writer{w: w, open: map[uint64]*openStream{}, streams: map[uint64]bool{}}
	x.write(appendHeader(nil, created))
	return x
}

// opened begins a stream.
func (x *writer) opened(s *Stream) {
	o := &openStream{Stream: s}
	x.open[s.ID] = o
	x.index.Streams = append(x.index.Streams, s)
	x.describe(Opened, o, s.At)
}

func (x *writer) describe(kind RecordKind, o *openStream, at time.Time) {
	b, err := json.Marshal(o.Stream)
	if err != nil {
		x.fail(err)
		return
	}
	x.add(entry{kind: kind, stream: o.ID, number: o.records, at: at.UnixNano(), data: b})
}

// data adds bytes of a stream. A record with more than maxRecord bytes loses the rest of the stream.
func (x *writer) data(id uint64, at time.Time, data []byte) {
	o := x.open[id]
	if o == nil || len(data) == 0 {
		return
	}
	if len(data) > maxRecord {
		x.ended(Lost, id, at)
		return
	}
	o.records++
	x.add(entry{kind: Data, stream: id, number: o.records, at: at.UnixNano(), data: data})
}

// ended ends a stream.
func (x *writer) ended(kind RecordKind, id uint64, at time.Time) {
	o := x.open[id]
	if o == nil {
		return
	}
	delete(x.open, id)
	x.add(entry{kind: kind, stream: id, number: o.records + 1, at: at.UnixNano()})
}

// add adds an entry, and ends the block before it if that is full.
func (x *writer) add(e entry) {
	for x.head.records > 0 && (len(x.payload) >= fullBlock || len(x.payload)+len(e.data) > maxRecord) {
		x.endBlock()
	}
	if x.head.records == 0 {
		x.head.first, x.head.last = e.at, e.at
	}
	e.at = max(e.at, x.head.first) // the clock may have been set back
	x.head.last = max(x.head.last, e.at)
	x.payload = e.append(x.payload, x.head.first)
	x.head.records++
	x.streams[e.stream] = true
}

// flush writes what was added.
func (x *writer) flush() error {
	x.endBlock()
	return x.err
}

// endBlock writes the current block, and an index if one is due.
func (x *writer) endBlock() {
	if x.head.records == 0 {
		return
	}
	last := x.head.last
	x.index.Blocks = append(x.index.Blocks, indexedBlock{
		Offset: x.offset, First: x.head.first, Last: last, Records: x.head.records,
		Streams: slices.Sorted(maps.Keys(x.streams)),
	})
	x.writeBlock()
	at := &x.index.Blocks[len(x.index.Blocks)-1]
	at.Size = x.offset - at.Offset
	clear(x.streams)
	if len(x.index.Blocks) >= indexEvery {
		x.writeIndex(last)
	}
	if x.sinceRe++; x.sinceRe >= reopenEvery {
		x.sinceRe = 0
		for _, id := range slices.Sorted(maps.Keys(x.open)) {
			x.describe(again, x.open[id], time.Unix(0, last))
		}
	}
}

// writeBlock compresses and writes the payload with the header in head, and makes both empty.
func (x *writer) writeBlock() {
	room := blockHeaderSize + s2.MaxEncodedLen(len(x.payload))
	x.out = slices.Grow(x.out[:0], room)[:room]
	stored := s2.Encode(x.out[blockHeaderSize:], x.payload)
	x.head.stored, x.head.raw, x.head.crc = uint32(len(stored)), uint32(len(x.payload)), checksum(stored)
	x.head.append(x.out[:0])
	x.write(x.out[:blockHeaderSize+len(stored)])
	x.payload, x.head = x.payload[:0], blockHeader{}
	if cap(x.payload) > 4*fullBlock { // one large object does not cost memory forever
		x.payload, x.out = nil, nil
	}
}

// writeIndex writes an index of the blocks since the last one.
func (x *writer) writeIndex(at int64) {
	b, err := json.Marshal(x.index)
	if err != nil {
		x.fail(err)
		return
	}
	offset := x.offset
	x.payload = append(x.payload[:0], b...)
	x.head = blockHeader{kind: indexBlock, first: at, last: at}
	x.writeBlock()
	x.lastIndex = offset
	x.index = index{Previous: offset, Blocks: x.index.Blocks[:0]}
}

// close writes the rest, the last index and the trailer. Streams that are open stay without an end.
func (x *writer) close() error {
	x.endBlock()
	if len(x.index.Blocks) > 0 {
		x.writeIndex(x.index.Blocks[len(x.index.Blocks)-1].Last)
	}
	x.write(appendTrailer(nil, x.lastIndex))
	return x.err
}

func (x *writer) write(b []byte) {
	if x.err != nil {
		return
	}
	n, err := x.w.Write(b)
	x.offset += int64(n)
	x.fail(err)
}

func (x *writer) fail(err error) {
	if x.err == nil && err != nil {
		x.err = fmt.Errorf("recording: write: %w", err)
	}
}
