package recording

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/observe/recording/internal/frame"
)

// ringSink writes segments, and forgets the oldest. What it forgets changes the base.
type ringSink struct {
	o       RingOptions
	written *atomic.Uint64
	lost    *atomic.Uint64
	base    *base

	segments []*segment // the last one is being written
	next     int
	streams  map[uint64]*openStream // that are open
	pending  map[uint64]*unfinished // lists and initial events that are not complete
	paging   map[scope]time.Time    // of each scope whose next page may follow: when the last page ended
	uses     map[scope]time.Time    // of each scope: when a request for it last began or ended
	over     bool
	err      error // the first one; nothing is written after it
}

// segment is a file of a ring.
type segment struct {
	path  string
	begin time.Time
	end   time.Time
	file  *os.File // nil after the segment is complete
	w     *writer
	size  int64

	// The fields below describe the end of a complete segment.
	unfinished map[uint64]bool // lists that were not complete, without those that were lost later
	paged      bool            // the next page of a list was missing
}

// whole reports whether the segment is complete, and all lists that were not complete at its end are lost.
func (s *segment) whole() bool { return s.file == nil && len(s.unfinished) == 0 && !s.paged }

// unfinished is a list, or the initial events of a watch, that is not complete.
type unfinished struct {
	since time.Time
	size  int64 // bytes of objects so far
}

// newRingSink begins a ring. If that fails, it leaves no file.
func newRingSink(o RingOptions, written, lost *atomic.Uint64) (*ringSink, error) {
	r := &ringSink{
		o: o, written: written, lost: lost, streams: map[uint64]*openStream{}, pending: map[uint64]*unfinished{},
		paging: map[scope]time.Time{}, uses: map[scope]time.Time{},
	}
	base, err := newBase(o.Dir)
	if err != nil {
		return nil, err
	}
	r.base = base
	if err = r.begin(time.Now()); err != nil {
		_ = r.close() // the other error says more
		return nil, err
	}
	return r, nil
}

// begin begins a segment with the descriptions of the open streams.
func (r *ringSink) begin(at time.Time) error {
	r.next++
	s := &segment{path: segmentName(r.o.Dir, r.next), begin: at}
	var err error
	if s.file, err = os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	s.w = newWriter(&counted{s.file, r.written}, at)
	for id, o := range r.streams {
		continued := &openStream{Stream: o.Stream, records: o.records}
		s.w.open[id] = continued
		s.w.index.Streams = append(s.w.index.Streams, o.Stream)
		s.w.describe(again, continued, at)
		r.streams[id] = continued
	}
	r.segments = append(r.segments, s)
	return nil
}

func (r *ringSink) current() *segment { return r.segments[len(r.segments)-1] }

func (r *ringSink) opened(s *Stream) {
	if r.err != nil {
		return
	}
	w := r.current().w
	w.opened(s)
	r.streams[s.ID] = w.open[s.ID]
	r.uses[use(s)] = s.At
	delete(r.paging, use(s)) // this is the next page, or the watch after the last one
	if !s.Watch || s.Options["sendInitialEvents"] == "true" {
		r.pending[s.ID] = &unfinished{since: s.At}
	}
}

func (r *ringSink) data(id uint64, at time.Time, data []byte) {
	o := r.streams[id]
	if o == nil || r.err != nil {
		return
	}
	if len(data) > maxRecord {
		r.ended(Lost, id, at)
		return
	}
	r.current().w.data(id, at, data)
	if list := r.pending[id]; list != nil {
		list.size += initialSize(o.Stream, data)
		if o.Watch && isInitialEnd(data) {
			delete(r.pending, id)
		}
	}
	r.rotate(at)
}

// initialSize returns how many bytes of a record are objects of a list, or are initial events.
func initialSize(s *Stream, data []byte) (size int64) {
	if !s.Watch {
		return int64(len(data))
	}
	for one := range frame.Of(data, s.protobuf()) {
		if bytes.Contains(one[:min(len(one), typeSize)], []byte("ADDED")) {
			size += int64(len(one))
		}
	}
	return size
}

// typeSize is the number of bytes at the beginning of a frame that have its type, in JSON and in protobuf.
const typeSize = 24

func (r *ringSink) ended(kind RecordKind, id uint64, at time.Time) {
	if r.err != nil {
		return
	}
	o := r.streams[id]
	if o == nil {
		return
	}
	r.uses[use(o.Stream)] = at
	r.current().w.ended(kind, id, at)
	delete(r.streams, id)
	delete(r.pending, id)
	if (kind == Ended || kind == Closed) && !o.Watch && (o.Options["limit"] != "" || o.Options["continue"] != "") {
		r.paging[use(o.Stream)] = at
		return
	}
	r.rotate(at)
}

// pageWait is the time in which a client requests the next page of a list. A client that only lists never says that it
// has the last one.
const pageWait = time.Minute

// complete reports whether no list is between its first and its last byte.
func (r *ringSink) complete(at time.Time) bool {
	for key, since := range r.paging {
		if at.Sub(since) > pageWait {
			delete(r.paging, key)
		}
	}
	return len(r.pending)+len(r.paging) == 0
}

// rotate begins a new segment if the current one is full. One that is only old waits for the end of a list.
func (r *ringSink) rotate(at time.Time) {
	r.expire(at)
	s := r.current()
	old := at.Sub(s.begin) >= r.o.MaxAge/ringSegments && r.complete(at)
	if s.w.offset < r.o.MaxBytes/ringSegments && !old {
		return
	}
	if r.blocked() {
		r.loseAll(at)
	}
	r.fail(s.w.close())
	r.fail(s.file.Close())
	s.paged = !r.complete(at) && len(r.paging) > 0
	s.unfinished = make(map[uint64]bool, len(r.pending))
	for id := range r.pending {
		s.unfinished[id] = true
	}
	s.size, s.end, s.file, s.w = s.w.offset, at, nil, nil
	if r.err == nil {
		r.fail(r.begin(at))
	}
	r.fail(r.forget(at))
}

// expire loses the lists that take longer than twice the age of the ring. Without it, an answer that never ends would
// keep all segments since its beginning.
func (r *ringSink) expire(at time.Time) {
	for id, list := range r.pending {
		if at.Sub(list.since) > 2*r.o.MaxAge {
			r.lose(id, at)
		}
	}
}

// blocked reports whether incomplete lists keep more than twice the bytes of the ring. The bytes of these lists do not
// count: they become the state, which has no bound.
func (r *ringSink) blocked() bool {
	total := r.current().w.offset
	for _, s := range r.segments {
		if s.whole() {
			return false // it is forgotten as soon as the segments after it have the bytes of the ring
		}
		total += s.size
	}
	for _, list := range r.pending {
		total -= list.size
	}
	return total > 2*r.o.MaxBytes
}

// loseAll loses all lists that are not complete, so that the segments can be forgotten.
func (r *ringSink) loseAll(at time.Time) {
	for _, id := range slices.Sorted(maps.Keys(r.pending)) {
		r.lose(id, at)
	}
	clear(r.paging)
	for _, s := range r.segments {
		s.paged = false // the base can continue with the next page
	}
}

// lose ends a stream whose list is not complete. The rest of its answer is not recorded.
func (r *ringSink) lose(id uint64, at time.Time) {
	r.lost.Add(1)
	r.uses[use(r.streams[id].Stream)] = at
	r.current().w.ended(Lost, id, at)
	delete(r.streams, id)
	delete(r.pending, id)
	for _, s := range r.segments {
		delete(s.unfinished, id)
	}
}

// forget folds the oldest segments into the base: those that are too old, and those that are too many. The base needs
// complete lists, so a list that is not complete keeps its segments until it is lost.
func (r *ringSink) forget(now time.Time) error {
	if r.err != nil {
		return r.err
	}
	total := int64(0)
	for _, s := range r.segments {
		total += s.size
	}
	n := 0
	for i, s := range r.segments[:len(r.segments)-1] {
		if now.Sub(s.end) <= r.o.MaxAge && total <= r.o.MaxBytes {
			break
		}
		total -= s.size
		if s.whole() {
			n = i + 1
		}
	}
	for range n {
		s := r.segments[0]
		if err := r.base.fold(s.path); err != nil {
			return err
		}
		if err := os.Remove(s.path); err != nil {
			return err
		}
		r.segments = r.segments[1:]
	}
	if n > 0 {
		r.forgetScopes(now)
		return r.base.collect()
	}
	return nil
}

// forgetScopes removes the state of the scopes that no request has used for twice the age of the ring. The segments
// have none of their records. Without it, each selector that a client ever sent would cost memory and disk.
func (r *ringSink) forgetScopes(now time.Time) {
	for _, o := range r.streams {
		r.uses[use(o.Stream)] = now
	}
	for key, at := range r.uses {
		if now.Sub(at) > 2*r.o.MaxAge {
			delete(r.uses, key)
		}
	}
	r.base.keep(func(s *Stream) bool { _, used := r.uses[use(s)]; return used })
}

// use returns the scope of a request, also of one that was refused: its answer may have another content type.
func use(s *Stream) scope {
	key := s.scope()
	key.contentType = ""
	return key
}

func (r *ringSink) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// flush writes what was added. It forgets nothing: only data that arrive make a ring forget.
func (r *ringSink) flush() error {
	if r.err != nil {
		return r.err
	}
	return r.current().w.flush()
}

// open opens the segments.
func (r *ringSink) open() (all []*File, err error) {
	for _, s := range r.segments {
		f, err := Open(s.path)
		if err != nil {
			for _, f := range all {
				_ = f.Close()
			}
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// close ends the ring and deletes its files, except the dumps.
func (r *ringSink) close() error {
	r.over = true
	err := r.err
	for _, s := range r.segments {
		if s.file != nil {
			err = errors.Join(err, s.file.Close())
		}
		err = errors.Join(err, os.Remove(s.path))
	}
	if r.base != nil {
		err = errors.Join(err, r.base.close())
	}
	return err
}
