package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/leatproject/leat/internal/quote"
)

// Reader reads a recording. A damaged recording is read as far as possible: see Problems. It is safe for concurrent
// use.
type Reader struct {
	from io.ReaderAt
	size int64
	free int64 // see effort

	created  time.Time
	complete bool // with a trailer
	blocks   []indexedBlock
	streams  map[uint64]*Stream

	mu       sync.Mutex // guards the field below
	problems []Problem  // by offset
}

// Problem is a part of a recording that cannot be read.
type Problem struct {
	Offset, Size int64 // in bytes
	// From and To are the times of the records before and after the part. To is zero at the end of the file.
	From, To time.Time
	Err      error
}

// Error describes the part and the time of its records.
func (p Problem) Error() string {
	text := fmt.Sprintf("bytes %d to %d: %v", p.Offset, p.Offset+p.Size, p.Err)
	switch {
	case p.From.IsZero():
		return text
	case p.To.IsZero():
		return text + "; nothing after " + p.From.Format(problemTime)
	}
	from, to := p.From.Format(problemTime), p.To.Format(problemTime)
	if from == to {
		return fmt.Sprintf("%s; changes at %s may be missing", text, from)
	}
	return fmt.Sprintf("%s; changes between %s and %s may be missing", text, from, to)
}

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

const problemTime = "15:04:05.000"

// Open opens a file. The caller closes it with Close.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	var r *Reader
	if err == nil {
		r, err = newReader(f, info.Size())
	}
	if err != nil {
		_ = f.Close() // the other error says more
		return nil, fmt.Errorf("recording: %s: %w", quote.Short(path, maxPath), err)
	}
	return &File{Reader: r, f: f}, nil
}

// maxPath is the number of bytes of a path in an error.
const maxPath = 512

// File is a recording in a file.
type File struct {
	*Reader
	f *os.File
}

// Close closes the file. The Reader cannot be used afterwards.
func (f *File) Close() error { return f.f.Close() }

// NewReader returns a reader of the recording in the first size bytes of from. The error is ErrNotRecording or a
// *VersionError, wrapped, or that of from. Damage is not an error: see Problems.
func NewReader(from io.ReaderAt, size int64) (*Reader, error) {
	r, err := newReader(from, size)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return r, nil
}

func newReader(from io.ReaderAt, size int64) (*Reader, error) {
	r := &Reader{from: from, size: size, free: 1 << 30, streams: map[uint64]*Stream{}}
	head, err := r.read(0, min(size, headerSize))
	if err != nil {
		return nil, err
	}
	r.created, err = parseHeader(head)
	switch {
	case errors.Is(err, errDamagedHeader):
		r.problem(Problem{Size: int64(len(head)), Err: err})
	case err != nil:
		return nil, err
	}
	if !r.readIndex() {
		s := scanner{Reader: r, effort: r.effort(), seen: map[uint64]struct{}{}}
		s.scan()
	}
	return r, nil
}

// Created returns the time at which the recording was begun. It is zero if the header is damaged.
func (r *Reader) Created() time.Time { return r.created }

// Complete reports whether the recorder ended the file. If not, it was interrupted, or it still runs.
func (r *Reader) Complete() bool { return r.complete }

// Problems returns the parts that cannot be read and were found so far, by offset. Opening finds where a file was cut;
// reading finds damaged blocks.
func (r *Reader) Problems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// Span returns the times of the first and the last record; both are zero if the recording is empty.
func (r *Reader) Span() (first, last time.Time) {
	if len(r.blocks) == 0 {
		return first, last
	}
	from, to := r.blocks[0].First, r.blocks[0].Last
	for _, b := range r.blocks {
		from, to = min(from, b.First), max(to, b.Last)
	}
	return time.Unix(0, from), time.Unix(0, to)
}

// Streams returns the lists and watches, in the order of their beginning.
func (r *Reader) Streams() []*Stream {
	out := make([]*Stream, 0, len(r.streams))
	for _, s := range r.streams {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Stream) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (r *Reader) read(offset, n int64) ([]byte, error) {
	b := make([]byte, n)
	return b, r.readInto(offset, b)
}

func (r *Reader) readInto(offset int64, b []byte) error {
	if _, err := io.ReadFull(io.NewSectionReader(r.from, offset, int64(len(b))), b); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// problem notes a problem once.
func (r *Reader) problem(p Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := slices.BinarySearchFunc(r.problems, p.Offset, func(p Problem, offset int64) int {
		return cmp.Compare(p.Offset, offset)
	})
	if !found {
		r.problems = slices.Insert(r.problems, at, p)
	}
}

// readIndex reads the chain of indexes. It reports whether there is a complete one.
func (r *Reader) readIndex() bool {
	if r.size < headerSize+trailerSize {
		return false
	}
	b, err := r.read(r.size-trailerSize, trailerSize)
	if err != nil {
		return false
	}
	offset, ok := parseTrailer(b)
	if !ok {
		return false
	}
	var chain []index
	effort := r.effort()
	for before := r.size; offset != 0; {
		if offset < headerSize || offset >= before {
			return false // a chain only goes back
		}
		before = offset
		h, payload, err := r.block(offset, &buffers{}, &effort)
		var x index
		if err != nil || h.kind != indexBlock || json.Unmarshal(payload, &x) != nil || !x.valid(offset) {
			return false
		}
		chain = append(chain, x)
		offset = x.Previous
	}
	for _, x := range slices.Backward(chain) {
		r.blocks = append(r.blocks, x.Blocks...)
		for _, s := range x.Streams {
			r.streams[s.ID] = s
		}
	}
	r.complete = true
	return true
}

// valid reports whether the blocks of an index are between the index before and this one, in order.
func (x *index) valid(offset int64) bool {
	end := max(headerSize, x.Previous)
	for _, b := range x.Blocks {
		if b.Offset < end || b.Size < blockHeaderSize || b.Size > blockHeaderSize+maxBlock || b.Offset > offset-b.Size {
			return false
		}
		end = b.Offset + b.Size
	}
	return !slices.ContainsFunc(x.Streams, func(s *Stream) bool { return s == nil || s.Plural == "" || s.Version == "" })
}

// effort is the number of bytes that a pass over a file may still read, decompress and copy. A recorder never needs as
// much, but a few bytes can describe work for hours.
type effort int64

// effort returns 1 GiB and 4096 times the size of the file.
func (r *Reader) effort() effort { return effort(r.free + 4096*min(r.size, 1<<50)) }

var errEffort = errors.New("it describes far more than a recording of its size can have")

func (e *effort) spend(n int) error {
	if *e -= effort(n); *e < 0 {
		return errEffort
	}
	return nil
}

// block returns the header and the decompressed payload of the block at an offset. It uses the memory in kept, which
// then has the payload.
func (r *Reader) block(offset int64, kept *buffers, effort *effort) (h blockHeader, payload []byte, err error) {
	if r.size-offset < blockHeaderSize {
		return h, nil, errCut
	}
	head, err := r.read(offset, blockHeaderSize)
	if err != nil {
		return h, nil, err
	}
	h, ok := parseBlockHeader(head)
	switch {
	case !ok:
		return h, nil, errDamaged
	case int64(h.stored) > r.size-offset-blockHeaderSize:
		return h, nil, errCut
	}
	if err := effort.spend(int(h.stored) + int(h.raw)); err != nil {
		return h, nil, err
	}
	kept.stored = slices.Grow(kept.stored[:0], int(h.stored))[:h.stored]
	stored := kept.stored
	if err = r.readInto(offset+blockHeaderSize, stored); err != nil {
		return h, nil, err
	}
	if checksum(stored) != h.crc {
		return h, nil, errDamaged
	}
	if n, err := s2.DecodedLen(stored); err != nil || n != int(h.raw) {
		return h, nil, errDamaged
	}
	kept.payload, err = s2.Decode(slices.Grow(kept.payload[:0], int(h.raw))[:h.raw], stored)
	if err != nil {
		return h, nil, errDamaged
	}
	return h, kept.payload, nil
}

// buffers are memory for a block.
type buffers struct{ stored, payload []byte }

var (
	errDamaged = errors.New("damaged")
	errCut     = errors.New("the file is cut off")
)

// Records yields the records of the streams that want selects, in the order in which they were written. A nil want
// selects all. Damaged blocks are skipped and added to Problems.
func (r *Reader) Records(want func(*Stream) bool) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		p := pass{Reader: r, effort: r.effort(), want: want, numbers: map[uint64]uint64{}, yield: yield}
		for i, b := range r.blocks {
			if slices.ContainsFunc(b.Streams, p.selected) && !p.block(i) {
				return
			}
		}
	}
}

// pass is one pass over the records.
type pass struct {
	*Reader
	effort  effort
	buffers buffers // of the present block
	want    func(*Stream) bool
	numbers map[uint64]uint64 // of the last record of each stream that began
	yield   func(Record) bool
}

// selected reports whether the caller wants a stream. A stream whose beginning is lost has no description.
func (p *pass) selected(id uint64) bool {
	s := p.streams[id]
	return s != nil && (p.want == nil || p.want(s))
}

// block yields the records of a block. It returns false if the caller wants no more.
func (p *pass) block(i int) bool {
	h, payload, err := p.Reader.block(p.blocks[i].Offset, &p.buffers, &p.effort)
	for rest := payload; err == nil && len(rest) > 0; {
		var e entry
		if e, rest, err = parseEntry(rest, h.first); err == nil && p.selected(e.stream) && !p.entry(e) {
			return false
		}
	}
	if errors.Is(err, errEffort) {
		offset := p.blocks[i].Offset
		p.problem(Problem{Offset: offset, Size: p.size - offset, From: time.Unix(0, p.blocks[i].First), Err: err})
		return false
	}
	if err != nil {
		p.damaged(i, err)
	}
	return true
}

// entry yields the record of an entry.
func (p *pass) entry(e entry) bool {
	last, began := p.numbers[e.stream]
	if e.kind == again && began {
		return true
	}
	p.numbers[e.stream] = e.number
	rec := Record{Kind: e.kind, Stream: p.streams[e.stream], Time: time.Unix(0, e.at)}
	switch e.kind {
	case Opened:
		return p.yield(rec)
	case again:
		rec.Kind, rec.Gap = Opened, e.number > 0
		return p.yield(rec)
	}
	if !began {
		opened := rec
		opened.Kind = Opened
		if !p.yield(opened) {
			return false
		}
	}
	rec.Data, rec.Gap = e.data, e.number != last+1
	return p.yield(rec)
}

// damaged notes that the block of an index cannot be read.
func (r *Reader) damaged(i int, err error) {
	b := r.blocks[i]
	if !errors.Is(err, errCut) {
		err = errDamaged
	}
	r.problem(Problem{Offset: b.Offset, Size: b.Size, From: time.Unix(0, b.First), To: time.Unix(0, b.Last), Err: err})
}
