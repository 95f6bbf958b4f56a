package recording

import (
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// kind is what the loader knows of a resource. Several informers may follow it: the newest state of their scopes
// counts.
type kind[T api.Object] struct {
	key      api.Resource // of loader.kinds
	resource api.Resource
	scopes   map[string][]*scopeState // by namespace; those of all namespaces have none
	merged   map[api.Key]state        // the newest state of all scopes
	deleted  map[api.Key]state        // the last deletion; its object is nil
}

// scopeState is what the streams of one scope say. An informer has one; two informers of one scope agree.
type scopeState struct {
	objects map[api.Key]*codec.Packed
	version string // all changes up to it are known
	synced  bool
	pages   []*codec.Packed // of a list that is not complete
	paging  bool            // the next page continues it
	stream  *Stream         // the first one
}

// requests are what a timeline reads of a scope.
type requests struct {
	open  int         // now
	begin []time.Time // of each
}

// requestGap is the time without a request after which nobody follows a scope. A client whose server is away waits
// between two requests.
const requestGap = time.Minute

// followed reports whether there is a request now, or soon.
func (q requests) followed(now time.Time) bool {
	next := sort.Search(len(q.begin), func(i int) bool { return !q.begin[i].Before(now) })
	return q.open > 0 || next < len(q.begin) && q.begin[next].Sub(now) <= requestGap
}

// state is a state of an object.
type state struct {
	*codec.Packed
	version string
	epoch   int
	partial bool // only its metadata
	initial bool // it came with the first list of its scope
}

// older reports whether a state is older than another.
func (s state) older(than state) bool {
	order, ok := api.CompareVersions(s.version, than.version)
	return s.epoch == than.epoch && ok && order < 0
}

func newKind[T api.Object](r api.Resource) *kind[T] {
	return &kind[T]{
		key: r, resource: r, scopes: map[string][]*scopeState{}, merged: map[api.Key]state{}, deleted: map[api.Key]state{},
	}
}

// maxScopes bounds the scopes of a resource in one namespace, because each change is compared with all of them.
const maxScopes = 1000

// add adds a scope. It returns nil if there are too many.
func (k *kind[T]) add(s *Stream) *scopeState {
	if len(k.scopes[s.Namespace]) >= maxScopes {
		return nil
	}
	sc := &scopeState{objects: map[api.Key]*codec.Packed{}, stream: s}
	k.scopes[s.Namespace] = append(k.scopes[s.Namespace], sc)
	return sc
}

// newest returns the newest state of an object in all scopes. Metadata count only if no scope has the whole object.
// now is what another scope has just learned. It ends an older state in a scope that nobody follows any more.
func (d *decoding[T]) newest(key api.Key, now state) (newest state) {
	k := d.kind
	look := func(sc *scopeState) {
		o := sc.objects[key]
		if o == nil {
			return
		}
		s := state{Packed: o, version: o.GetResourceVersion(), epoch: now.epoch, partial: sc.stream.partial()}
		if s.older(now) && !d.loader.requests[sc.stream.scope()].followed(d.now) {
			delete(sc.objects, key)
			return
		}
		if gone := k.deleted[key]; s.older(gone) || s.version == gone.version && s.epoch == gone.epoch {
			return
		}
		if newest.Packed == nil || newest.partial && !s.partial || newest.partial == s.partial && newest.older(s) {
			newest = s
		}
	}
	for _, sc := range k.scopes[key.Namespace] {
		look(sc)
	}
	if key.Namespace != "" {
		for _, sc := range k.scopes[""] {
			look(sc)
		}
	}
	return newest
}

// remove notes a deletion that the present scope says, and adds the change. A scope with a selector does not know
// whether the object is deleted or does not match any more.
func (d *decoding[T]) remove(key api.Key, c Change[T]) {
	if !d.stream.selects() {
		d.kind.deleted[key] = state{version: c.ResourceVersion, epoch: d.loader.epoch}
	}
	d.merge(key, c)
}

// gone returns the objects that a complete list of the present scope no longer has. before has the objects before the
// list. A list without selectors also shows deletions that other scopes do not know yet.
func (d *decoding[T]) gone(before map[api.Key]*codec.Packed) (all []api.Key) {
	now := d.scope.objects
	for key := range before {
		if now[key] == nil {
			all = append(all, key)
		}
	}
	if !d.stream.selects() {
		list := state{version: d.scope.version, epoch: d.loader.epoch}
		for key, s := range d.kind.merged {
			inside := d.stream.Namespace == "" || d.stream.Namespace == key.Namespace
			if inside && now[key] == nil && before[key] == nil && (s.older(list) || s.epoch < list.epoch) {
				all = append(all, key)
			}
		}
	}
	slices.SortFunc(all, func(a, b api.Key) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// merge adds a change, if the newest state of all scopes has changed. c has what the change of the scope says.
func (d *decoding[T]) merge(key api.Key, c Change[T]) {
	l, k := d.loader, d.kind
	newest := d.newest(key, state{version: c.ResourceVersion, epoch: l.epoch})
	newest.initial = c.Initial
	old := k.merged[key]
	c.Time, c.Resource, c.Key, c.packer, c.epoch = d.now, k.resource, key, l.packer, l.epoch
	c.Resource.Kind, c.Resource.Namespaced = "", false // the key of kinds; Load completes it
	add := func(c Change[T]) { l.timeline.changes = append(l.timeline.changes, c) }
	switch {
	case newest.Packed == nil && old.Packed == nil:
	case newest.Packed == nil:
		delete(k.merged, key)
		if c.Type = watch.Deleted; c.new == nil || d.stream.partial() {
			c.new = old.Packed
		}
		add(c)
	case old.Packed != nil && old.GetUID() != newest.GetUID():
		if newest.older(old) {
			return // the scope is behind another one
		}
		gone := c
		gone.Type, gone.new, gone.FinalStateUnknown, gone.Initial = watch.Deleted, old.Packed, true, false
		add(gone)
		fallthrough
	case old.Packed == nil:
		k.merged[key] = newest
		k.resource.Namespaced = k.resource.Namespaced || key.Namespace != ""
		c.Type, c.new, c.ResourceVersion = watch.Added, newest.Packed, newest.version
		c.FinalStateUnknown = false
		add(c)
	case newest.older(old):
	case old.version != newest.version || old.partial && !newest.partial:
		k.merged[key] = newest
		c.Type, c.new, c.old, c.ResourceVersion = watch.Modified, newest.Packed, old.Packed, newest.version
		c.FinalStateUnknown, c.Initial = false, c.Initial && old.initial && old.version == newest.version
		add(c)
	}
}
