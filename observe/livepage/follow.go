package livepage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

// The bounds of what the page remembers of objects: at most 16 × 256 KiB of states.
const (
	mostFollowed   = 16
	mostPinned     = 8
	mostVersions   = 32
	mostBytes      = 256 << 10 // of all states of one object
	mostReconciles = 64
	mostDeliveries = 128
	mostFound      = 50
)

// inspectable is the part of an informer that shows objects. *informer.Informer[T] implements it.
type inspectable interface {
	Keys() iter.Seq[api.Key]
	Lookup(key api.Key) (api.Object, bool)
}

// place names an object: the name of its informer on the page, and its key.
type place struct {
	informer string
	key      api.Key
}

// follower remembers the objects that somebody looks at or has pinned. Without such an object it has no hook.
type follower struct {
	page *Page

	mu      sync.Mutex // guards the fields below; taken after the lock of the page
	objects map[place]*followed
	timer   *time.Timer // ends the memory of objects; nil without objects
	stops   []func()    // the hooks, if attached
	hooked  bool
}

// followed is the memory of one object.
type followed struct {
	place
	resource api.Resource
	readers  map[string]bool // controllers whose keys are those of the informer's objects
	pinned   bool
	lookedAt time.Time

	began      int64 // microseconds since 1970
	sequence   int
	versions   []version // oldest first
	bytes      int
	reconciles []reconcile // oldest first
	deliveries []delivery  // in the order in which the calls returned
}

// version is a state of an object, in JSON.
type version struct {
	Sequence int             `json:"sequence"`
	Type     string          `json:"type"` // Cached, Added, Updated or Deleted
	Version  string          `json:"version"`
	Received int64           `json:"received"` // microseconds since 1970, as Popped and Stored
	Popped   int64           `json:"popped"`
	Stored   int64           `json:"stored"`
	Unknown  bool            `json:"finalStateUnknown,omitempty"`
	Object   json.RawMessage `json:"object,omitempty"`
	Omitted  string          `json:"omitted,omitempty"` // why there is no object
	// Earlier says that the state before, which the page took from the cache, is newer. Its own change follows.
	Earlier bool `json:"earlier,omitempty"`
}

// delivery is a call of a handler with a state of the object. It may be known before the state.
type delivery struct {
	Handler string `json:"handler"`
	Type    string `json:"type"`
	Version string `json:"version"`
	Began   int64  `json:"began"` // microseconds since 1970
	Took    int64  `json:"took"`  // microseconds
}

// reconcile is a reconcile of the object, or one that it caused. The names are those of /debug/why/.
type reconcile struct {
	Controller    string
	Key           string
	ID            string
	Attempt       int
	Priority      int
	Causes        []workqueue.Cause
	CausesOmitted int
	Added, Ready  time.Time
	Started       time.Time
	Took          time.Duration
	Outcome       controller.Outcome
	RequeueAfter  time.Duration
	Next          time.Time
	Err           string
}

var (
	errPins    = fmt.Errorf("livepage: %d objects are pinned already", mostPinned)
	errUnknown = errors.New("livepage: the informer does not hold this object, and the page has not seen it")
)

// follow returns the memory of an object, and makes one if the object is in the cache.
func (f *follower) follow(s *shownInformer, key api.Key, readers map[string]bool) (*followed, error) {
	inspect, ok := s.informer.(inspectable)
	if !ok {
		return nil, fmt.Errorf("livepage: informer %s does not show objects", s.name)
	}
	at := place{s.name, key}
	object, cached := inspect.Lookup(key)
	resource := s.informer.Status().Resource
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[at]
	if o == nil {
		if !cached {
			return nil, errUnknown
		}
		o = &followed{
			place: at, resource: resource, began: time.Now().UnixMicro(),
			reconciles: []reconcile{}, deliveries: []delivery{}, // the browser gets lists also if they are empty
		}
		f.makeRoom()
		f.objects[at] = o
		o.seen(object)
	}
	o.lookedAt, o.readers = time.Now(), readers
	if f.timer == nil {
		f.timer = time.AfterFunc(patience, f.forget)
	}
	return o, nil
}

// makeRoom drops the object that was looked at the longest ago, if there are too many. Pinned ones stay; there are
// fewer. The caller holds the lock.
func (f *follower) makeRoom() {
	for len(f.objects) >= mostFollowed {
		var oldest *followed
		for _, o := range f.objects {
			if !o.pinned && (oldest == nil || o.lookedAt.Before(oldest.lookedAt)) {
				oldest = o
			}
		}
		delete(f.objects, oldest.place)
	}
}

// pin keeps an object without a viewer, or ends that. The error says that the object is not followed, or that too many
// are pinned.
func (f *follower) pin(at place, yes bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[at]
	if o == nil {
		return errUnknown
	}
	var pins []string
	for _, other := range f.objects {
		if other.pinned {
			pins = append(pins, other.place.informer+" "+api.FormatKey(other.key))
		}
	}
	if yes && !o.pinned && len(pins) >= mostPinned {
		slices.Sort(pins)
		return fmt.Errorf("%w; release one: %s", errPins, strings.Join(pins, ", "))
	}
	o.pinned = yes
	return nil
}

// forget drops the objects that have no viewer any more, and then the hooks if no object is left.
func (f *follower) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, o := range f.objects {
		if !o.pinned && time.Since(o.lookedAt) >= patience {
			delete(f.objects, at)
		}
	}
	if len(f.objects) > 0 {
		f.timer.Reset(patience)
		return
	}
	f.timer = nil
	f.detach()
}

// attach adds the hooks to informers and controllers that have none. The caller holds the lock of the page.
func (f *follower) attach(informers []*shownInformer, controllers []*shownController) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hooked || len(f.objects) == 0 {
		return
	}
	f.hooked = true
	for _, s := range informers {
		if _, ok := s.informer.(inspectable); ok {
			f.stops = append(f.stops, s.informer.Trace(informer.Trace{
				Wanted:   func(key api.Key) bool { return f.follows(place{s.name, key}) },
				Change:   func(c informer.TracedChange) { f.changed(s.name, c) },
				Delivery: func(d informer.Delivery) { f.delivered(s.name, d) },
			}))
		}
	}
	for _, s := range controllers {
		c, ok := s.controller.(interface {
			Trace(t controller.Trace) (stop func())
		})
		if ok {
			f.stops = append(f.stops, c.Trace(controller.Trace{Reconciled: func(r controller.Reconciled) { f.reconciled(s.name, r.Report()) }}))
		}
	}
}

// detach removes the hooks. The caller holds the lock.
func (f *follower) detach() {
	for _, stop := range f.stops {
		stop()
	}
	f.stops, f.hooked = nil, false
}

// renew attaches the hooks again after a change of the parts. The caller holds the lock of the page.
func (f *follower) renew() {
	f.mu.Lock()
	f.detach()
	f.mu.Unlock()
	f.attach(f.page.informers, f.page.controllers)
}

func (f *follower) follows(at place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[at] != nil
}

// changed notes a change of a followed object. It runs on a goroutine of the informer.
func (f *follower) changed(name string, c informer.TracedChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.objects[place{name, api.KeyOf(c.Object)}]; o != nil {
		o.add(version{
			Type: c.Type.String(), Version: c.Object.GetResourceVersion(), Unknown: c.FinalStateUnknown,
			Received: c.At.UnixMicro(), Popped: c.Popped.UnixMicro(), Stored: c.Stored.UnixMicro(),
		}, c.Object)
	}
}

// delivered notes a call of a handler with a followed object. It runs on the goroutine of the handler.
func (f *follower) delivered(name string, d informer.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[place{name, d.Key}]
	if o == nil {
		return
	}
	o.deliveries = append(o.deliveries, delivery{d.Handler, d.Type.String(), d.Version, d.Began.UnixMicro(), d.Took.Microseconds()})
	if extra := len(o.deliveries) - mostDeliveries; extra > 0 {
		o.deliveries = slices.Delete(o.deliveries, 0, extra)
	}
}

// seen notes a state that was in the cache when somebody looked.
func (o *followed) seen(object api.Object) {
	now := time.Now().UnixMicro()
	o.add(version{Type: typeCached, Version: object.GetResourceVersion(), Received: now, Popped: now, Stored: now}, object)
}

// typeCached is the type of a state whose change the page has not seen.
const typeCached = "Cached"

// refresh notes a change that came before the hooks. A hook may have brought a newer state since the look-up: the older
// one is dropped. Versions without an order are noted if they differ.
func (f *follower) refresh(o *followed, s *shownInformer) (cached bool) {
	object, cached := s.informer.(inspectable).Lookup(o.key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !cached {
		return false
	}
	order, ok := api.CompareVersions(object.GetResourceVersion(), o.versions[len(o.versions)-1].Version)
	if order > 0 || !ok {
		o.seen(object)
	}
	return true
}

// add appends a state, and drops the oldest ones beyond the bounds.
func (o *followed) add(v version, object api.Object) {
	o.sequence++
	v.Sequence = o.sequence
	if n := len(o.versions) - 1; n >= 0 && o.versions[n].Type == typeCached && v.Type != typeCached {
		order, ok := api.CompareVersions(v.Version, o.versions[n].Version)
		v.Earlier = ok && order < 0
		if v.Earlier || v.Version == o.versions[n].Version {
			o.bytes -= len(o.versions[n].Object) // now the page knows how the state came, or will know it
			o.versions = o.versions[:n]
		}
	}
	text, err := render(o.resource, object)
	switch {
	case err != nil:
		v.Omitted = "the object has no JSON form"
	case len(text) > mostBytes:
		v.Omitted = fmt.Sprintf("the object has %d bytes; the page keeps at most %d", len(text), mostBytes)
	default:
		v.Object = text
	}
	o.versions = append(o.versions, v)
	o.bytes += len(v.Object)
	for len(o.versions) > mostVersions || len(o.versions) > 1 && o.bytes > mostBytes {
		o.bytes -= len(o.versions[0].Object)
		o.versions = slices.Delete(o.versions, 0, 1)
	}
}

// reconciled notes a reconcile that concerns a followed object. It runs on a worker of the controller.
func (f *follower) reconciled(name string, r controller.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects {
		if o.concerns(name, r.Key, r.Causes) {
			o.note(reconcileOf(r))
		}
	}
}

// concerns reports whether a reconcile is of the object, or was caused by it.
func (o *followed) concerns(name, key string, causes []workqueue.Cause) bool {
	own := api.FormatKey(o.key)
	return key == own && o.readers[name] || slices.ContainsFunc(causes, func(c workqueue.Cause) bool {
		return c.Object == own && readsResource(c.Source, o.resource)
	})
}

// note appends a reconcile, unless it is known.
func (o *followed) note(r reconcile) {
	if slices.ContainsFunc(o.reconciles, func(known reconcile) bool { return known.ID == r.ID }) {
		return
	}
	o.reconciles = append(o.reconciles, r)
	slices.SortStableFunc(o.reconciles, func(a, b reconcile) int { return cmp.Compare(a.Started.UnixNano(), b.Started.UnixNano()) })
	if extra := len(o.reconciles) - mostReconciles; extra > 0 {
		o.reconciles = slices.Delete(o.reconciles, 0, extra)
	}
}

func reconcileOf(r controller.Report) reconcile {
	out := reconcile{
		Controller: r.Controller, Key: r.Key, ID: r.ID, Attempt: r.Attempt, Priority: r.Priority,
		Causes: slices.Clone(r.Causes), CausesOmitted: r.CausesOmitted, Added: r.Added, Ready: r.Ready, Started: r.Started,
		Took: r.Took, Outcome: r.Outcome, RequeueAfter: r.RequeueAfter, Next: r.Next,
	}
	if r.Err != nil {
		out.Err = short(r.Err.Error())
	}
	return out
}
