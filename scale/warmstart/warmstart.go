package warmstart

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Options are the options of a ListerWatcher.
type Options struct {
	// Path is the file. Its directory must exist, and others must not be able to write to it. Two more files stand
	// beside it: Path.lock, and Path.new during a list. Another file at Path.new is removed.
	//
	// The file may have objects as the Transform of the informer left them, and the next start transforms them again.
	// So a Transform must not change its own result, and a program whose Transform has changed needs another Path.
	Path string
	// Cluster names the API server, for instance apiclient.Client.Host. A file of another cluster is not used.
	Cluster string
	// Key encrypts the file. It has 32 random bytes, and must not be stored beside the file. It may be empty, except
	// for Secrets. An informer of packed objects writes whole objects, even if T declares few fields.
	Key []byte
	// BytesPerMinute bounds what is written. 0 means 256 MiB.
	BytesPerMinute int64
	// Logger may be nil; then nothing is logged.
	Logger *zap.Logger
}

// Status says what a ListerWatcher did.
type Status struct {
	// Warm says that the first list came from the file.
	Warm bool
	// Objects and Version are those of that list.
	Objects int
	Version string
	// Cold is the reason why the first list came from the server. It is nil before the first list and if Warm is set.
	Cold error
	// Stopped is the reason why no file is kept at present. It is nil while one is kept, and before the first list.
	Stopped error
	// Bytes is the size of the file.
	Bytes int64
}

// ListerWatcher is a source whose collection is kept in a file. It implements api.ListerWatcher.
type ListerWatcher[T api.Object] struct {
	*keeper
	source  api.ListerWatcher[T]
	codec   *codec.Codec[T] // of the source if it says, so that objects of both share their equal parts
	encode  func(object T) ([]byte, error)
	workers int // goroutines that decode the file
}

// keeper keeps the file. Several ListerWatchers have one keeper if they are of the same source in different types.
type keeper struct {
	objects
	o    Options
	log  *zap.Logger
	seal *sealer
	boot string
	lock func() error // ends the lock

	mu      sync.Mutex // guards the fields below
	status  Status
	began   bool   // the first request was made
	labels  string // the selectors of that request; a list with others is not one of the collection
	fields  string
	newest  string    // the newest version that the informer may have
	watches int       // in progress
	closed  bool      // by Close
	ready   *replayed // the state for the first list; nil: none
	file    *logFile  // the file that is kept; nil: none
	next    *logFile  // the list in progress; nil: none
	paged   string    // the version of the first page of that list; empty before
	budget  budget
}

// New returns a source that keeps the collection of another one in a file. It fails if an option is wrong, or if
// another process uses the file.
func New[T api.Object](source api.ListerWatcher[T], o Options) (*ListerWatcher[T], error) {
	r := source.Collection().Resource
	switch {
	case o.Path == "":
		return nil, errors.New("warmstart: Options.Path is empty")
	case o.Cluster == "":
		return nil, errors.New("warmstart: Options.Cluster is empty")
	case r.Plural == "":
		return nil, errors.New("warmstart: the source does not name its resource")
	case r.Group == "" && r.Plural == "secrets" && len(o.Key) == 0:
		return nil, errors.New("warmstart: a file of Secrets needs Options.Key")
	case o.BytesPerMinute < 0:
		return nil, fmt.Errorf("warmstart: Options.BytesPerMinute is %d", o.BytesPerMinute)
	}
	if o.BytesPerMinute == 0 {
		o.BytesPerMinute = 256 << 20
	}
	seal, err := newSealer(o.Key)
	if err != nil {
		return nil, fmt.Errorf("warmstart: Options.Key: %w", err)
	}
	lock, err := lockFile(o.Path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("warmstart: %w", err)
	}
	k := &keeper{
		objects: newObjects[T](r), o: o, log: o.Logger, seal: seal, boot: bootID(), lock: lock,
		budget: budget{perMinute: o.BytesPerMinute},
	}
	if k.log == nil {
		k.log = zap.NewNop()
	}
	k.log = k.log.With(zap.Stringer("resource", r), zap.String("path", o.Path))
	return &ListerWatcher[T]{
		keeper: k, source: source, codec: codecOf(source), workers: runtime.GOMAXPROCS(0),
		encode: func(object T) ([]byte, error) { return k.objects.encode(object) },
	}, nil
}

// Packed returns the ListerWatcher of the same objects as bytes, with the same file, or nil if the source cannot keep
// bytes. Package packed uses it.
func (w *ListerWatcher[T]) Packed(from func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	packer, ok := w.source.(codec.PackedSource)
	if !ok {
		return nil
	}
	// A codec of packed objects may belong to one goroutine, so the file is read by one.
	out := &ListerWatcher[*codec.Packed]{keeper: w.keeper, workers: 1}
	out.source = packer.Packed(func(o codec.Options) *codec.Codec[*codec.Packed] {
		out.codec = from(o)
		return out.codec
	})
	if out.source == nil {
		return nil
	}
	unpacker := sync.OnceValue(func() *codec.Packer[T] {
		if own, ok := api.As[codec.PackerSource[T]](w.source); ok {
			return own.Packer()
		}
		return codec.NewPacker[T](codec.Options{})
	})
	out.encode = func(p *codec.Packed) ([]byte, error) {
		if data, ok := p.Plain(w.mediaType); ok {
			return data, nil
		}
		object, err := unpacker().Unpack(p)
		if err != nil {
			return nil, err
		}
		return w.encode(object)
	}
	return out
}

// Close ends the use of the file, which stays for the next start. Call it after Run of the informer has ended: during a
// watch it removes the file, which would not have the changes that follow. Later requests go to the source alone.
func (w *ListerWatcher[T]) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.watches > 0 {
		w.giveUp(errors.New("it was closed during a watch"))
	}
	err := w.file.close()
	w.next.discard()
	w.file, w.next, w.ready = nil, nil, nil
	return errors.Join(err, w.lock())
}

// Status returns what was done so far.
func (w *ListerWatcher[T]) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.status
	if w.file != nil {
		out.Bytes = w.file.size
	}
	return out
}

// Collection returns the collection of the source.
func (w *ListerWatcher[T]) Collection() api.Collection { return w.source.Collection() }

// Unwrap returns the source, so that the ListerWatcher has its capabilities.
func (w *ListerWatcher[T]) Unwrap() any { return w.source }

// List lists from the file at the first request, if the file can be used. Later it does what List of the source does.
// It blocks while the file is read.
func (w *ListerWatcher[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	if o.Limit == 1 { // a probe; so a collection that is listed in pages of one object has no file
		return w.source.List(ctx, o, each)
	}
	if w.ofShard(o) {
		return w.source.List(ctx, o, each)
	}
	if state := w.first(w.header(o)); state != nil {
		return w.listFile(ctx, o, state, each)
	}
	if !w.concerns(w.header(o)) { // it has other selectors
		return w.source.List(ctx, o, each)
	}
	if o.Continue == "" {
		w.begin(w.header(o))
	}
	o.OnUndecodable = w.noting(o.OnUndecodable)
	meta, err := w.source.List(ctx, o, func(object T) error {
		w.add(object)
		return each(object)
	})
	switch {
	case err != nil && o.Continue == "":
		w.cancel() // a later page may be requested again
	case err == nil:
		w.page(meta)
	}
	return meta, err
}

// Watch does what Watch of the source does. A WatchList answers api.ErrNoWatchList at the first request if the file can
// be used: the list that follows is read from the file.
func (w *ListerWatcher[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	if w.ofShard(o) {
		return w.source.Watch(ctx, o)
	}
	return func(yield func(api.Event[T], error) bool) {
		initial := o.SendInitialEvents != nil && *o.SendInitialEvents
		if initial {
			if w.open(w.header(o)) {
				yield(api.Event[T]{}, fmt.Errorf("warmstart: the list is read from the file: %w", api.ErrNoWatchList))
				return
			}
			w.begin(w.header(o))
			defer w.cancel() // after the end of the list, there is nothing to cancel
		} else {
			w.accepted(o.ResourceVersion)
		}
		o.OnUndecodable = w.noting(o.OnUndecodable)
		w.watching(1)
		defer w.watching(-1)
		for event, err := range w.source.Watch(ctx, o) {
			if err == nil {
				initial = w.event(event, initial)
			}
			if !yield(event, err) {
				return
			}
			if event.InitialEventsEnd && err == nil { // an informer that refuses the list ends the watch
				w.accepted(event.ResourceVersion)
			}
		}
	}
}

// open opens the file at the first request. It reports whether the next list will be read from it.
func (k *keeper) open(h header) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.began || k.closed {
		return k.ready != nil
	}
	k.began, k.labels, k.fields = true, h.Labels, h.Fields
	err := errNoBootID
	if k.boot != "" {
		k.ready, err = openLog(k.o.Path, k.seal, h)
	}
	if err != nil {
		k.status.Cold = err
		if !errors.Is(err, errNoFile) {
			k.log.Warn("warm start: the state is listed from the server", zap.NamedError("err", err))
		}
		return false
	}
	k.file, k.newest = k.ready.file, k.ready.version
	k.status.Warm, k.status.Objects, k.status.Version = true, len(k.ready.index), k.ready.version
	return true
}

// ofShard reports whether a request is for a part of the collection, which a file cannot have. A file from before is
// removed, because the informer will show newer states.
func (w *ListerWatcher[T]) ofShard(o api.Options[T]) bool {
	if o.Keep == nil && o.ShardSelector == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status.Cold = errShard; !w.closed && !errors.Is(w.status.Stopped, errShard) {
		w.giveUp(errShard)
	}
	return true
}

// concerns reports whether a list is one of the whole collection.
func (k *keeper) concerns(h header) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.Labels == k.labels && h.Fields == k.fields
}

func (k *keeper) watching(change int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watches += change
}

// noting returns an OnUndecodable that gives up the file, because the file has no place for an object that cannot be
// decoded: the next start would show an older state of it.
func (k *keeper) noting(then func(*api.UndecodableError) error) func(*api.UndecodableError) error {
	if then == nil {
		return nil // the error ends the request
	}
	return func(e *api.UndecodableError) error {
		k.mu.Lock()
		if k.file != nil || k.next != nil {
			k.giveUp(e)
		}
		k.mu.Unlock()
		return then(e)
	}
}

// first returns the state for the first list, or nil for a list from the server.
func (k *keeper) first(h header) *replayed {
	if !k.open(h) {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	state := k.ready
	k.ready = nil
	return state
}

// event writes an event. It returns whether the initial events go on.
func (w *ListerWatcher[T]) event(e api.Event[T], initial bool) bool {
	if initial {
		switch {
		case e.InitialEventsEnd:
			w.complete(e.ResourceVersion)
			return false
		case e.Type == watch.Added:
			w.add(e.Object)
			return true
		case e.Type == watch.Bookmark:
			return true
		default: // a change of an object before the end of the initial events
			w.change(e, true)
			return true
		}
	}
	w.change(e, false)
	return false
}

// change writes an event to the file, or to the list in progress.
func (w *ListerWatcher[T]) change(e api.Event[T], listing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.file
	if listing {
		f = w.next
	} else if order, ok := api.CompareVersions(e.ResourceVersion, w.newest); w.newest == "" || !ok || order > 0 {
		w.newest = e.ResourceVersion
	}
	if f == nil {
		return
	}
	var err error
	switch e.Type {
	case watch.Bookmark:
		err = w.write(f, record{kind: reached, version: e.ResourceVersion})
	case watch.Deleted:
		err = w.write(f, record{kind: deleted, version: e.ResourceVersion, key: api.KeyOf(e.Object)})
	default:
		err = w.put(f, e.Object, e.ResourceVersion)
	}
	if err == nil && !listing && f.size > 2*f.whole+roomOfLog {
		err = w.compact()
	}
	if err != nil {
		w.giveUp(err)
	}
}
