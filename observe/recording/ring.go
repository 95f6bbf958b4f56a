package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// RingOptions are the options of a Ring. Only Dir is required.
type RingOptions struct {
	// Options are those of the Recorder.
	Options
	// Dir is the folder of the segments and of the dumps. It is made if it does not exist, and belongs to one Ring.
	// If an earlier process was killed, NewRing makes a dump of the segments that it left. Such a dump lacks the
	// objects that did not change in this time. If the dump cannot be written, NewRing renames the segments to
	// killed-*.rec, and a later NewRing makes the dump; see Ring.Run for the error. leat show reads these files too.
	Dir string
	// MaxAge is how long changes are kept at least. The state of a collection that was neither listed nor watched for
	// twice as long may be forgotten. Zero means ten minutes.
	MaxAge time.Duration
	// MaxBytes bounds the segments: more changes are forgotten earlier. The state before them needs the size of its
	// objects too, and up to as much again as garbage. Zero means 256 MiB.
	//
	// A list that is not complete keeps all segments since its beginning, and so does a WatchList without its bookmark.
	// The ring loses such a stream if it takes more than twice MaxAge, or if it keeps more than twice MaxBytes besides
	// its own objects. So the segments have at most three times MaxBytes and the objects of these streams.
	MaxBytes int64
	// MaxDumps is the number of dumps that are kept; the oldest are deleted. As many sets of killed-*.rec are kept.
	// Zero means 4.
	MaxDumps int
}

// Ring is a Recorder that keeps the last minutes, and writes them to a file when something happens: see Dump. A dump is
// a complete recording: it begins with the state before the kept changes.
//
// The state is on disk too. Memory has about 350 bytes for each object, and
// an entry of a map for each one that changed in the latest segment.
type Ring struct {
	*Recorder
	o    RingOptions
	ring *ringSink

	// dumps is held while a dump is written and old ones are deleted: an unfinished dump must not be deleted. A
	// goroutine that holds it may lock Recorder.writing.
	dumps    sync.Mutex
	dumping  atomic.Bool // by report
	killed   error       // of the dump of a killed process; NewRing sets it
	reported atomic.Bool // killed
}

// segments in a ring, if changes come at a constant rate. A ring forgets one at a time.
const ringSegments = 10

// NewRing returns a ring. The error is that of the folder, or of a wrong Redaction. A full disk is not an error: Run
// has it.
func NewRing(o RingOptions) (*Ring, error) {
	o.MaxAge, o.MaxBytes = cmp.Or(o.MaxAge, 10*time.Minute), cmp.Or(o.MaxBytes, 256<<20)
	o.MaxDumps = cmp.Or(o.MaxDumps, 4)
	if o.Dir == "" || o.MaxAge < 0 || o.MaxBytes < 0 || o.MaxDumps < 0 {
		return nil, errors.New("recording: a ring needs a Dir, and no option below 0")
	}
	recorder, err := newRecorder(o.Options)
	if err != nil {
		return nil, err
	}
	r := &Ring{Recorder: recorder, o: o}
	if err = os.MkdirAll(o.Dir, 0o700); err == nil {
		err = r.salvage()
	}
	if err == nil {
		r.ring, err = newRingSink(o, &recorder.written, &recorder.lost)
	}
	if isFull(err) {
		r.ring, err = &ringSink{err: err}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	recorder.sink = r.ring
	return r, nil
}

// isFull reports whether an error is that of a full disk. A program must not fail to start because of it.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Run is Recorder.Run. If NewRing could not write the dump of a killed process, OnError gets the error of the dump
// first, and Run then records. Without OnError, Run returns the error at its end.
func (r *Ring) Run(ctx context.Context) error {
	if r.killed == nil || r.reported.Swap(true) {
		return r.Recorder.Run(ctx)
	}
	if r.o.OnError == nil {
		return errors.Join(r.killed, r.Recorder.Run(ctx))
	}
	r.o.OnError(r.killed)
	return r.Recorder.Run(ctx)
}

// create creates the file of a dump.
func (r *Ring) create(why string) (path string, file *os.File, err error) {
	name := filepath.Join(r.o.Dir, "dump-"+time.Now().UTC().Format("20060102T150405.000000000")+"-"+why)
	for n := 1; ; n++ { // two dumps may begin at the same time
		path = fmt.Sprintf("%s%03d.rec", name, n)
		file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, os.ErrExist) {
			return path, file, err
		}
	}
}

// Dump writes what the ring has to a new file in its folder and returns the path. It may be called on any goroutine,
// before Run and while it runs. It waits for other dumps. It fails after Run has ended or a write has failed, because
// Run then deletes what the ring has. The client does not wait for it, but data that arrive meanwhile need the backlog.
func (r *Ring) Dump() (path string, err error) {
	r.dumps.Lock()
	defer r.dumps.Unlock()
	path, file, err := r.create("")
	if err != nil {
		return "", fmt.Errorf("recording: dump: %w", err)
	}
	if err = cmp.Or(r.dump(file), file.Close()); err != nil {
		_ = os.Remove(path) // the other error says more
		return "", fmt.Errorf("recording: dump: %w", err)
	}
	return path, r.prune(path)
}

// dump copies the state and the segments. The segments stay readable after the ring has deleted them.
func (r *Ring) dump(to *os.File) error {
	w := newWriter(to, time.Now())
	segments, err := r.copyState(w)
	defer func() {
		for _, s := range segments {
			_ = s.Close()
		}
	}()
	lost := map[uint64]bool{}
	for _, s := range segments {
		if err == nil {
			err = copyRecords(w, s.Reader, lost)
		}
	}
	return cmp.Or(err, w.close())
}

// copyState copies the state, and opens the segments. The lock is held meanwhile. It is released after a panic too, so
// that DumpOnPanic does not wait forever.
func (r *Ring) copyState(w *writer) ([]*File, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.ring.over {
		return nil, errors.New("the ring has ended")
	}
	r.used = r.swap(r.used)
	r.process(r.used)
	if err := r.ring.flush(); err != nil {
		return nil, err
	}
	if err := r.ring.base.copy(w); err != nil {
		return nil, err
	}
	return r.ring.open()
}

// copyRecords copies the records of a segment. The streams that were open at its beginning are open already, except in
// the first segment; there, the state has their initial events.
//
// The ring has lost a list whose beginning is before the first segment. Its rest cannot be read, so the copy only says
// that it is lost. copyRecords adds these streams to lost.
func copyRecords(w *writer, r *Reader, lost map[uint64]bool) error {
	for rec := range r.Records(nil) {
		if w.err != nil {
			return w.err
		}
		id := rec.Stream.ID
		switch {
		case lost[id]:
		case rec.Kind == Opened && w.open[id] == nil:
			w.opened(continued(rec))
			if lost[id] = rec.Gap && !rec.Stream.Watch; lost[id] {
				w.ended(Lost, id, rec.Time)
			}
		case rec.Kind == Data:
			w.data(id, rec.Time, rec.Data)
		case rec.Kind != Opened:
			w.ended(rec.Kind, id, rec.Time)
		}
	}
	return w.err
}

// continued returns the description of a stream that begins in a copy with a record.
func continued(rec Record) *Stream {
	s := *rec.Stream
	if rec.Gap && s.Options["sendInitialEvents"] != "" {
		s.Options = maps.Clone(s.Options)
		delete(s.Options, "sendInitialEvents")
	}
	s.At = rec.Time
	return &s
}

// prune deletes the oldest dumps, but never the newest one: after the clock was set back, its name may be the first.
func (r *Ring) prune(newest string) error {
	all, err := files(r.o.Dir, "dump-", ".rec")
	if i := slices.Index(all, newest); i >= 0 {
		all = append(slices.Delete(all, i, i+1), newest)
	}
	for len(all) > r.o.MaxDumps && err == nil {
		err = remove(all[0])
		all = all[1:]
	}
	if err != nil {
		return fmt.Errorf("recording: delete old dumps: %w", err)
	}
	return nil
}

// files returns the paths of the files in a folder whose names begin and end so, ordered by name. The folder is not a
// pattern.
func files(dir, begin, end string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && strings.HasPrefix(name, begin) && strings.HasSuffix(name, end) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, err
}

// remove deletes a file that may be deleted already.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// DumpOnPanic writes a dump if the goroutine panics, and then panics again. It waits for a dump that is being written,
// and then writes another one, because the first may lack the records before the panic. Defer it:
//
//	defer ring.DumpOnPanic()
func (r *Ring) DumpOnPanic() {
	if p := recover(); p != nil {
		_, _ = r.Dump() // the panic says more
		panic(p)
	}
}

// DumpOnFailure returns a health check that calls check. When check fails for the first time, or after it has
// succeeded, the health check writes a dump before it returns. dumped may be nil; it gets the result of the dump.
func (r *Ring) DumpOnFailure(check func(context.Context) error, dumped func(path string, err error)) func(context.Context) error {
	var failing atomic.Bool
	return func(ctx context.Context) error {
		err := check(ctx)
		if failing.Swap(err != nil) || err == nil {
			return err
		}
		r.report(dumped)
		return err
	}
}

// report writes a dump, unless another report is not complete. A Dump that is being written delays it.
func (r *Ring) report(dumped func(string, error)) {
	if !r.dumping.CompareAndSwap(false, true) {
		return
	}
	defer r.dumping.Store(false)
	if path, err := r.Dump(); dumped != nil {
		dumped(path, err)
	}
}

// DumpOn writes a dump for each signal until ctx ends, and returns the error of ctx. The caller makes the channel with
// signal.Notify. dumped may be nil; it gets the result of each dump.
func (r *Ring) DumpOn(ctx context.Context, signals <-chan os.Signal, dumped func(path string, err error)) error {
	for {
		select {
		case <-signals:
			r.report(dumped)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// segmentName returns the name of a segment.
func segmentName(dir string, n int) string {
	return filepath.Join(dir, fmt.Sprintf("segment-%08d", n))
}

// isInitialEnd reports whether frames have the bookmark that ends the initial events of a watch. The annotation is text
// in JSON and in protobuf.
func isInitialEnd(frames []byte) bool {
	return strings.Contains(string(frames), "k8s.io/initial-events-end")
}
