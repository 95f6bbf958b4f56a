package recording

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/observe/recording/internal/redact"
)

const (
	// flushInterval bounds what a killed process loses. It is half of what the documentation promises.
	flushInterval = 500 * time.Millisecond

	defaultBacklog = 16 << 20
)

// Options are the options of a Recorder. The zero value is useful.
type Options struct {
	// Redact names values that are replaced by hashes before they are written, besides those of Secrets, of which
	// only the values of known plain fields are written. A resource with redactions is requested as JSON, because
	// protobuf does not name fields.
	// The values of redacted fields in selectors are replaced too.
	Redact []Redaction
	// Key is the key of the hashes. Equal values have equal hashes in all recordings with the same key. Nil means a
	// random key, which is never written; values are then comparable only within the recording.
	Key []byte
	// JSON requests all resources as JSON. leat show and leat replay do not read protobuf.
	JSON bool
	// Backlog bounds the bytes that wait for the disk, without about 130 bytes for each frame. Zero means 16 MiB.
	Backlog int
	// Wait delays the client if the backlog is full, also before Run is called. Without it, the rest of the answer is
	// not recorded, so that a slow disk does not delay an agent.
	Wait bool
	// OnError gets the error that ended the recording, once; for example, a full disk. Run then waits for the end of
	// its context, and requests continue. Without OnError, Run returns the error.
	OnError func(error)
	// Logger logs the begin, the end, and streams that are not complete. Nil logs nothing, unless a manager with a
	// logger runs the recorder.
	Logger *zap.Logger
}

// Mark is the beginning of every text that stands for a redacted one. The whole text is valid base64, so that it can
// also stand for the bytes of a Secret: decoded, it is "redacted:" and twelve bytes of a keyed hash.
const Mark = redact.Mark

// Redaction names values that must not reach the disk.
type Redaction struct {
	// Resource is the plural name, such as "configmaps", or the plural name with its group, such as "deployments.apps".
	// A name without a group is that of the resources of all groups. "*" is every resource. The case of letters does
	// not matter.
	Resource string
	// Path leads from the object to a field: "data", "spec.template.spec.containers.env.value",
	// "metadata.annotations['example.com/token']". "*" is every field of an object. The items of a list need no
	// mention; [*] is allowed. All values below the field are replaced, except the kind and the identity of the object.
	// Fields whose names differ only in the case of letters are replaced too. Stats.Redacted does not count them, so it
	// shows a path in the wrong case, and one that leads nowhere.
	Path string
}

// paths returns redactions as package redact takes them.
func paths(all []Redaction) (paths []redact.Path) {
	for _, r := range all {
		paths = append(paths, redact.Path(r))
	}
	return paths
}

// Stats are numbers of a Recorder.
type Stats struct {
	Streams uint64 // lists and watches that have begun
	Events  uint64 // frames of watches, with bookmarks
	Bytes   uint64 // of answers
	Written uint64 // bytes of the file
	Lost    uint64 // streams that are not complete, because the backlog was full or a frame was too large
	// Redacted has the number of replaced fields for each element of Options.Redact. If it is 0, no received object had
	// the field, or its path is wrong.
	Redacted []uint64
}

// Recorder records the lists and watches of a client. Wrap is its tap; Run writes what the tap has copied. Make one
// with New.
type Recorder struct {
	o      Options
	log    *zap.Logger
	redact redact.Paths
	key    []byte
	w      *writer // belongs to the goroutine of Run

	streams, events, bytes, written, lost atomic.Uint64

	dirty chan struct{} // has an element if there is something to write
	much  chan struct{} // has an element if a block or more waits

	mu      sync.Mutex // guards the fields below
	state   recorderState
	backlog backlog
	free    [][]byte  // chunks for the backlog
	drained sync.Cond // of a full backlog
}

type recorderState byte

const (
	waiting recorderState = iota // for Run
	running
	over
)

// backlog is what the tap has copied and Run has not yet written.
type backlog struct {
	entries []tapped
	chunks  [][]byte // the data of the entries, one after the other
	size    int      // of the data
}

const (
	// chunkSize is the size of the pieces of memory of a backlog. Pieces do not have to be copied when it grows.
	chunkSize = 64 << 10
	// keptChunks bounds the memory that stays after a burst.
	keptChunks = 16
)

// tapped is an entry of a backlog.
type tapped struct {
	kind   RecordKind
	stream *tap
	at     time.Time
	data   []byte
}

// add appends an entry, with a copy of its data.
func (b *backlog) add(e tapped, free *[][]byte) {
	if len(e.data) > 0 {
		last := len(b.chunks) - 1
		if last < 0 || cap(b.chunks[last])-len(b.chunks[last]) < len(e.data) {
			b.chunks = append(b.chunks, chunk(free, len(e.data)))
			last++
		}
		from := len(b.chunks[last])
		b.chunks[last] = append(b.chunks[last], e.data...)
		b.size += len(e.data)
		e.data = b.chunks[last][from:]
	}
	b.entries = append(b.entries, e)
}

// chunk returns an empty piece of memory for at least n bytes.
func chunk(free *[][]byte, n int) []byte {
	if last := len(*free) - 1; last >= 0 && n <= chunkSize {
		c := (*free)[last]
		*free = (*free)[:last]
		return c[:0]
	}
	return make([]byte, 0, max(n, chunkSize))
}

// New returns a Recorder that writes to w. The caller closes w after Run has returned. The error is that of a wrong
// Redaction.
func New(w io.Writer, o Options) (*Recorder, error) {
	o.Backlog, o.Redact = cmp.Or(o.Backlog, defaultBacklog), slices.Clone(o.Redact)
	compiled, err := redact.Compile(paths(o.Redact))
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		o: o, log: cmp.Or(o.Logger, zap.NewNop()), redact: compiled, key: slices.Clone(o.Key), dirty: make(chan struct{}, 1), much: make(chan struct{}, 1),
	}
	if r.key == nil {
		r.key = make([]byte, 32)
		_, _ = rand.Read(r.key) // never fails
	}
	r.drained.L = &r.mu
	r.w = newWriter(&counted{w, &r.written}, time.Now())
	return r, nil
}

// counted counts the bytes that are written.
type counted struct {
	io.Writer
	n *atomic.Uint64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(uint64(n))
	return n, err
}

func (r *Recorder) hash() hash.Hash { return hmac.New(sha256.New, r.key) }

// Stats returns the present numbers.
func (r *Recorder) Stats() Stats {
	return Stats{
		Streams: r.streams.Load(), Events: r.events.Load(), Bytes: r.bytes.Load(), Written: r.written.Load(), Lost: r.lost.Load(),
		Redacted: r.redact.Hits(paths(r.o.Redact)),
	}
}

// Totals returns the numbers of Stats that package metrics shows.
func (r *Recorder) Totals() (streams, events, bytes, written, lost uint64) {
	return r.streams.Load(), r.events.Load(), r.bytes.Load(), r.written.Load(), r.lost.Load()
}

// String returns "recording", from which a manager makes the name in logs and metrics.
func (r *Recorder) String() string { return "recording" }

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger. It must be called before
// Run.
func (r *Recorder) UseLogger(log *zap.Logger) {
	if r.o.Logger == nil {
		r.log = log
	}
}

// ErrStarted is the error of a second Run.
var ErrStarted = errors.New("recording: Run was called before")

// NeedLeaderElection returns false: each replica records what it receives. See manager.LeaderElectionRunnable.
func (r *Recorder) NeedLeaderElection() bool { return false }

// Run writes until ctx ends, and then writes the rest and the index. It starts no goroutine. Data are written at most
// half a second after they have arrived. They are not synced: a killed process loses at most the last second, and a
// machine that fails may lose more.
func (r *Recorder) Run(ctx context.Context) error {
	r.mu.Lock()
	if r.state != waiting {
		r.mu.Unlock()
		return ErrStarted
	}
	r.state = running
	r.mu.Unlock()
	r.log.Info("recording")
	err := r.write(ctx)
	r.mu.Lock()
	r.state = over
	rest := r.backlog
	r.backlog = backlog{}
	r.drained.Broadcast()
	r.mu.Unlock()
	if err == nil {
		r.process(rest)
	}
	if closed := r.w.close(); err == nil {
		err = closed // an earlier error says more
	}
	r.logEnd(err)
	if err != nil && r.o.OnError != nil {
		r.o.OnError(err)
		<-ctx.Done()
		return nil
	}
	return err
}

func (r *Recorder) logEnd(err error) {
	n := r.Stats()
	fields := []zap.Field{
		zap.Uint64("streams", n.Streams), zap.Uint64("events", n.Events), zap.Uint64("written", n.Written), zap.Uint64("lost", n.Lost),
	}
	if err != nil {
		r.log.Error("the recording has failed", append(fields, zap.NamedError("err", err))...)
		return
	}
	r.log.Info("the recording has ended", fields...)
}

// write writes the backlog again and again until ctx ends.
func (r *Recorder) write(ctx context.Context) error {
	timer := time.NewTimer(flushInterval)
	defer timer.Stop()
	var logged uint64 // lost streams
	var used backlog  // the last one that was written
	for {
		if lost := r.lost.Load(); lost > 0 && lost >= 2*logged { // the log stays short if each stream is lost
			r.log.Warn("streams are not complete", zap.Uint64("lost", lost))
			logged = lost
		}
		select {
		case <-r.dirty:
		case <-ctx.Done():
			return nil
		}
		timer.Reset(flushInterval)
		for due := false; !due; {
			select {
			case <-timer.C:
				due = true
			case <-r.much:
			case <-ctx.Done():
				return nil
			}
			used = r.swap(used)
			r.process(used)
		}
		if err := r.w.flush(); err != nil {
			return err
		}
	}
}

// swap returns the backlog, and continues with an empty one. It takes the memory of the one that was used before.
func (r *Recorder) swap(used backlog) backlog {
	clear(used.entries)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range used.chunks {
		if cap(c) == chunkSize && len(r.free) < keptChunks {
			r.free = append(r.free, c)
		}
	}
	clear(used.chunks)
	full := r.backlog
	r.backlog = backlog{entries: used.entries[:0], chunks: used.chunks[:0]}
	if cap(used.entries) > maxEntries {
		r.backlog = backlog{}
	}
	for _, c := range []chan struct{}{r.dirty, r.much} {
		select {
		case <-c:
		default:
		}
	}
	r.drained.Broadcast()
	return full
}

// maxEntries bounds the entries whose memory stays after a burst.
const maxEntries = 4096

// process writes the entries of a backlog.
func (r *Recorder) process(b backlog) {
	for _, e := range b.entries {
		e.stream.write(e)
	}
}

// add appends an entry to the backlog. It is the whole cost of the tap on the goroutine of the client. It reports
// whether the entry was taken; if not, the stream is not recorded any more.
func (r *Recorder) add(e tapped) bool {
	r.mu.Lock()
	b := &r.backlog
	for len(e.data) > 0 && b.size > 0 && b.size+len(e.data) > r.o.Backlog && r.state != over {
		if !r.o.Wait {
			e.kind, e.data = Lost, nil
			break
		}
		r.drained.Wait()
	}
	if r.state == over {
		r.mu.Unlock()
		return false
	}
	empty, before, much := len(b.entries) == 0, b.size, min(fullBlock, r.o.Backlog/2)
	b.add(e, &r.free)
	full := before <= much && b.size > much
	r.mu.Unlock()
	if empty {
		r.signal(r.dirty)
	}
	if full {
		r.signal(r.much)
	}
	return e.kind != Lost
}

func (r *Recorder) signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
