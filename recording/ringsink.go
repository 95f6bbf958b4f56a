package recording

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// ringSink writes segments, and forgets the oldest. What it forgets changes the base.
type ringSink struct {
	o       RingOptions
	written *atomic.Uint64
	base    *base

	segments []*segment // the last one is being written
	next     int
	streams  map[uint64]*openStream // that are open
	pending  map[uint64]bool        // lists and initial events that are not complete
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
	old   *superseded
	size  int64
	whole bool // no list was incomplete at its end
}

func newRingSink(o RingOptions, written *atomic.Uint64) (*ringSink, error) {
	r := &ringSink{o: o, written: written, streams: map[uint64]*openStream{}, pending: map[uint64]bool{}, paging: map[scope]time.Time{}, uses: map[scope]time.Time{}}
	var err error
	if r.base, err = newBase(o.Dir); err == nil {
		err = r.begin(time.Now())
	}
	return r, err
}

// begin begins a segment with the descriptions of the open streams.
func (r *ringSink) begin(at time.Time) error {
	r.next++
	s := &segment{path: segmentName(r.o.Dir, r.next), begin: at, old: newSuperseded()}
	var err error
	if s.file, err = os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	s.w = newWriter(&counted{s.file, r.written}, Repeats(), plainVersion, at)
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
		r.pending[s.ID] = true
	}
}

func (r *ringSink) data(id uint64, at time.Time, data []byte) origin {
	o := r.streams[id]
	if o == nil || r.err != nil {
		return origin{}
	}
	if len(data) > maxRecord {
		r.ended(Lost, id, at)
		return origin{}
	}
	r.current().w.data(id, at, data)
	if o.Watch {
		r.current().old.note(o.Stream, data, r.pending[id])
	}
	if r.pending[id] && o.Watch && isInitialEnd(data) {
		delete(r.pending, id)
	}
	r.rotate(at)
	return origin{}
}

// difference is not called, because a ring has no keyframes: a segment must not need one that was forgotten.
func (r *ringSink) difference(uint64, time.Time, origin, []byte) bool { return false }

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
	s := r.current()
	old := at.Sub(s.begin) >= r.o.MaxAge/ringSegments && r.complete(at)
	if s.w.offset < r.o.MaxBytes/ringSegments && !old {
		return
	}
	r.fail(s.w.close())
	r.fail(s.file.Close())
	s.size, s.end, s.whole, s.file, s.w, s.old.last = s.w.offset, at, r.complete(at), nil, nil, nil
	if r.err == nil {
		r.fail(r.begin(at))
	}
	r.fail(r.forget(at))
}

// forget folds the oldest segments into the base: those that are too old, and those that are too many. The base needs
// complete lists, so a list that is not complete keeps its segments.
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
		if s.whole {
			n = i + 1
		}
	}
	for range n {
		s := r.segments[0]
		if err := r.base.fold(s.path, s.old); err != nil {
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
		f, err := Open(s.path, ReadOptions{})
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
	return errors.Join(err, r.base.close())
}
