package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// Timeline is what a recording says about objects: their changes, in the order in which the client learned of them. It
// holds the objects as bytes, and decodes an object when the caller wants it. It never changes after Load.
type Timeline[T api.Object] struct {
	first, last time.Time
	listed      time.Time // of the last initial change; that of the first record if there is no such change
	changes     []Change[T]
	resources   []api.Resource
	scopes      []*Scope
	notes       []string
}

// Change is one change of one object.
type Change[T api.Object] struct {
	// Time is when the client received the change; for an object of a list, the time of the list's end.
	Time     time.Time
	Resource api.Resource
	Type     watch.EventType // Added, Modified or Deleted
	Key      api.Key
	// ResourceVersion is that of the object, or that of the deletion.
	ResourceVersion string
	// Initial reports that the object came with the first list of its informer.
	Initial bool
	// FinalStateUnknown reports a deletion that a later list showed. The object may have had states after Object.
	FinalStateUnknown bool

	packer   *codec.Packer[T]
	new, old *codec.Packed
	epoch    int // number of times that the server went back to older versions
}

// Object decodes the state after the change; of a deletion, the last state. The caller owns it.
func (c Change[T]) Object() (T, error) { return c.packer.Unpack(c.new) }

// Before decodes the state before a change of type Modified. ok is false for other types.
func (c Change[T]) Before() (object T, ok bool, err error) {
	if c.old == nil {
		return object, false, nil
	}
	object, err = c.packer.Unpack(c.old)
	return object, true, err
}

// Load reads the changes of the streams that want selects; a nil want selects all. It holds all versions of their
// objects in memory. Damaged parts are skipped; see Reader.Problems and Notes. T is a pointer to a struct, or
// *unstructured.Unstructured, which cannot be decoded from protobuf. The error is that of the
// context.
func Load[T api.Object](ctx context.Context, r *Reader, want func(*Stream) bool) (*Timeline[T], error) {
	l := newLoader[T]()
	l.timeline.first, l.timeline.last = r.Span()
	for _, s := range r.Streams() {
		if s.Note == "" && (want == nil || want(s)) {
			q := l.requests[s.scope()]
			q.begin = append(q.begin, s.At)
			l.requests[s.scope()] = q
		}
	}
	defer l.stop()
	for rec := range r.Records(want) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("recording: not read to its end: %w", context.Cause(ctx))
		}
		l.record(rec)
	}
	for _, k := range l.order {
		l.timeline.resources = append(l.timeline.resources, k.resource)
	}
	slices.SortFunc(l.timeline.resources, func(a, b api.Resource) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(a.Version, b.Version))
	})
	l.timeline.listed = l.timeline.first
	for i := range l.timeline.changes {
		c := &l.timeline.changes[i]
		if c.Initial {
			l.timeline.listed = c.Time
		}
		c.Resource = l.kinds[c.Resource].resource
	}
	for _, sc := range l.timeline.scopes {
		if k := l.kinds[sc.Resource]; k != nil { // otherwise all requests were refused
			sc.Resource = k.resource
		}
	}
	return &l.timeline, nil
}

// Span returns the times of the first and last record of the recording.
func (t *Timeline[T]) Span() (first, last time.Time) { return t.first, t.last }

// Changes returns all changes. The caller does not change the slice.
func (t *Timeline[T]) Changes() []Change[T] { return t.changes }

// Ordered returns all changes in the order in which the server made them, as far as their versions tell it: a client
// that watches several resources receives them in another order. Initial changes come first. The time of a change is
// never before that of an earlier one.
func (t *Timeline[T]) Ordered() []Change[T] {
	all := slices.Clone(t.changes)
	slices.SortStableFunc(all, func(a, b Change[T]) int {
		if a.Initial != b.Initial {
			if a.Initial {
				return -1
			}
			return 1
		}
		order, ok := api.CompareVersions(a.ResourceVersion, b.ResourceVersion)
		if !ok {
			order = 0
		}
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), order)
	})
	for i := range all[min(1, len(all)):] {
		if earlier := all[i].Time; all[i+1].Time.Before(earlier) && !all[i].Initial {
			all[i+1].Time = earlier
		}
	}
	return all
}

// Resources returns the recorded resources, ordered by name. The kind is empty if the recording has
// no object and no list of the resource.
func (t *Timeline[T]) Resources() []api.Resource { return t.resources }

// Scopes returns what the client followed, in the order of the first requests.
func (t *Timeline[T]) Scopes() []*Scope { return t.scopes }

// Notes says what the changes do not show, one line each: lost parts of watches, and objects that cannot be decoded.
func (t *Timeline[T]) Notes() []string { return t.notes }

// At returns the last change of each object of a resource that existed at a time, ordered by key.
func (t *Timeline[T]) At(r api.Resource, at time.Time) []Change[T] {
	state := map[api.Key]Change[T]{}
	for _, c := range t.changes {
		switch {
		case c.Resource != r:
		case c.Time.After(at):
		case c.Type == watch.Deleted:
			delete(state, c.Key)
		default:
			state[c.Key] = c
		}
	}
	out := make([]Change[T], 0, len(state))
	for _, c := range state {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change[T]) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}

// loader builds a Timeline.
type loader[T api.Object] struct {
	packer   *codec.Packer[T]
	codec    *codec.Codec[*codec.Packed]
	timeline Timeline[T]
	streams  map[uint64]*decoding[T]
	running  int                // streams that have no end yet
	requests map[scope]requests // that the timeline reads
	scopes   map[scope]*scopeState
	kinds    map[api.Resource]*kind[T] // by the resource without its kind
	order    []*kind[T]
	epoch    int
	noted    map[string]bool

	progresses map[scope]*Scope // by use
}

func newLoader[T api.Object]() *loader[T] {
	l := &loader[T]{
		packer: codec.NewPacker[T](codec.Options{MaxObjectBytes: maxRecord}), streams: map[uint64]*decoding[T]{},
		scopes: map[scope]*scopeState{}, kinds: map[api.Resource]*kind[T]{}, progresses: map[scope]*Scope{},
		requests: map[scope]requests{}, noted: map[string]bool{},
	}
	l.codec = l.packer.Codec(nil)
	return l
}

func (l *loader[T]) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !l.noted[text] {
		l.noted[text] = true
		l.timeline.notes = append(l.timeline.notes, text)
	}
}

const noteTime = "15:04:05"

// record reads one record.
func (l *loader[T]) record(rec Record) {
	d := l.streams[rec.Stream.ID]
	if rec.Kind == Opened {
		l.open(rec)
		return
	}
	if d == nil || d.over {
		return
	}
	d.now = rec.Time
	defer func() { d.progress.mark(rec.Time, len(rec.Data), d.scope) }()
	if rec.Gap && !d.broken {
		d.broken = true
		if rec.Stream.Watch {
			l.note("changes of %s before %s are missing, because the file is damaged", rec.Stream.Resource(), rec.Time.Format(noteTime))
		} else {
			l.note("a list of %s at %s is not complete, because the file is damaged", rec.Stream.Resource(), rec.Time.Format(noteTime))
			d.end(errBrokenList)
			return
		}
	}
	if rec.Kind != Data {
		d.progress.ended(d.stream, rec.Kind)
	}
	switch rec.Kind {
	case Data:
		d.feed(rec.Data)
	case Ended:
		d.end(nil)
	case Lost:
		l.note("the recorder lost the rest of a request for %s at %s", rec.Stream.Resource(), rec.Time.Format(noteTime))
		d.end(errBrokenList)
	case Closed, Broken:
		d.end(errBrokenList)
	}
}

// errBrokenList ends the reader of a list that is not complete.
var errBrokenList = errors.New("the answer is not complete")

// maxRunning bounds the streams that are open at a time, because each one has a decoder.
const maxRunning = 10_000

func (l *loader[T]) open(rec Record) {
	s := rec.Stream
	if s.isProbe() {
		return
	}
	progress := l.progress(s)
	progress.opened(s)
	if s.Note != "" {
		progress.mark(rec.Time, 0, nil)
		if s.Code == 200 || s.Code == 101 {
			l.note("a request for %s has no data: %s", s.Resource(), s.Note)
		}
		return
	}
	k := l.kinds[s.Resource()]
	if k == nil {
		k = newKind[T](s.Resource())
		l.kinds[s.Resource()] = k
		l.order = append(l.order, k)
	}
	k.resource.Namespaced = k.resource.Namespaced || s.Namespace != ""
	sc := l.scopes[s.scope()]
	if sc == nil && l.running < maxRunning {
		sc = k.add(s)
	}
	if sc == nil || l.running >= maxRunning {
		l.note("some requests for %s at %s are left out: too many are open, or have different selectors", s.Resource(), rec.Time.Format(noteTime))
		return
	}
	l.scopes[s.scope()] = sc
	d := &decoding[T]{loader: l, stream: s, kind: k, scope: sc, progress: progress, now: rec.Time, broken: rec.Gap}
	defer progress.mark(rec.Time, 0, sc)
	d.initial = s.Watch && s.Options["sendInitialEvents"] == "true"
	l.streams[s.ID] = d
	d.start()
}

// stop ends the streams that have no end.
func (l *loader[T]) stop() {
	for _, d := range l.streams {
		d.end(errBrokenList)
	}
}

// event applies an event of a watch.
func (d *decoding[T]) event(e api.Event[*codec.Packed]) {
	sc := d.scope
	d.progress.event(e.Type == watch.Bookmark)
	if e.Type == watch.Bookmark {
		if e.InitialEventsEnd && d.initial {
			d.initial = false
			d.list(d.items, e.ResourceVersion)
			d.items = nil
		}
		sc.reached(e.ResourceVersion)
		return
	}
	if d.initial {
		d.items = append(d.items, e.Object)
		return
	}
	if order, ok := api.CompareVersions(e.ResourceVersion, sc.version); ok && order <= 0 && sc.synced {
		return // another watch of the scope was faster
	}
	sc.reached(e.ResourceVersion)
	key := api.KeyOf(e.Object)
	if e.Type == watch.Deleted {
		delete(sc.objects, key)
	} else {
		sc.objects[key] = e.Object
	}
	c := Change[T]{ResourceVersion: e.ResourceVersion, new: e.Object}
	if e.Type == watch.Deleted {
		d.remove(key, c)
	} else {
		d.merge(key, c)
	}
}

func (s *scopeState) reached(version string) {
	if order, ok := api.CompareVersions(version, s.version); !ok || order > 0 {
		s.version = version
	}
}

// list applies a complete list. An old list from the cache of a server is ignored. An old list that is
// consistent counts, because the server may have been restored from a backup.
func (d *decoding[T]) list(items []*codec.Packed, version string) {
	sc := d.scope
	consistent := d.stream.Options["resourceVersion"] == ""
	if order, ok := api.CompareVersions(version, sc.version); ok && order < 0 && sc.synced {
		if !consistent {
			return
		}
		d.loader.epoch++
	}
	d.progress.listed(d.stream)
	before := sc.objects
	sc.objects = make(map[api.Key]*codec.Packed, len(items))
	initial := !sc.synced
	sc.version, sc.synced = version, true
	for _, o := range items {
		sc.objects[api.KeyOf(o)] = o
	}
	for _, key := range d.gone(before) {
		d.remove(key, Change[T]{ResourceVersion: version, new: before[key], FinalStateUnknown: true})
	}
	for _, o := range items {
		d.merge(api.KeyOf(o), Change[T]{ResourceVersion: o.GetResourceVersion(), new: o, Initial: initial})
	}
}

// decode reads the stream to its end, or to an error.
func (d *decoding[T]) decode() error {
	ctx := context.Background() // a recording is read without waiting
	o := api.Options[*codec.Packed]{OnUndecodable: func(e *api.UndecodableError) error {
		d.loader.note("%v", e)
		return nil
	}}
	resource := d.stream.Resource()
	if d.stream.protobuf() && d.kind.resource.Kind != asMetadata && !d.stream.partial() {
		resource.Kind = d.kind.resource.Kind // the bytes of an object do not have it
	}
	if d.stream.Watch {
		events, err := d.loader.codec.NewEventReader(ctx, d, d.stream.ContentType, resource, o)
		if err != nil {
			return err
		}
		for {
			e, err := events.Next()
			var unknown *codec.UnknownEventError
			switch {
			case errors.As(err, &unknown):
			case err != nil:
				return err
			default:
				d.event(e)
			}
		}
	}
	if d.stream.Options["continue"] == "" {
		d.scope.pages = nil
	} else if !d.scope.paging {
		d.loader.note("the first pages of a list of %s at %s are missing", resource, d.now.Format(noteTime))
		return errBrokenList
	}
	d.scope.paging = false
	var items []*codec.Packed
	meta, err := d.loader.codec.DecodeList(ctx, d, d.stream.ContentType, resource, o, func(p *codec.Packed) error {
		items = append(items, p)
		return nil
	})
	if err != nil {
		return err
	}
	return d.page(items, meta)
}

// page adds a page of a list. The last one completes the list.
func (d *decoding[T]) page(items []*codec.Packed, meta metav1.ListMeta) error {
	all := append(d.scope.pages, items...)
	if d.scope.paging = meta.Continue != ""; d.scope.paging {
		d.scope.pages = all
		return nil
	}
	d.scope.pages = nil
	d.list(all, meta.ResourceVersion)
	return nil
}
