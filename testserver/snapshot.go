package testserver

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
)

// Snapshot is the state of the whole server at one version. It never changes, and the server's history need not reach
// back to it. It is cheap because it shares its memory with the server.
type Snapshot struct {
	version     uint64
	roots       map[schema.GroupResource]*node
	definitions map[schema.GroupResource]*definition
}

// Snapshot returns the present state.
func (s *Server) Snapshot() *Snapshot {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	out := &Snapshot{
		version:     s.store.version,
		roots:       map[schema.GroupResource]*node{},
		definitions: map[schema.GroupResource]*definition{},
	}
	for gr, c := range s.store.collections {
		out.roots[gr], out.definitions[gr] = c.root, c.def
	}
	return out
}

// ResourceVersion returns the version of the state.
func (s *Snapshot) ResourceVersion() string { return strconv.FormatUint(s.version, 10) }

// Resources returns the resources that have objects, sorted by name.
func (s *Snapshot) Resources() []api.Resource {
	var out []api.Resource
	for _, gr := range slices.SortedFunc(maps.Keys(s.roots), compareNames) {
		if s.roots[gr].len() > 0 {
			out = append(out, s.definitions[gr].Resource)
		}
	}
	return out
}

// Len returns the number of objects of a resource.
func (s *Snapshot) Len(r api.Resource) int { return s.roots[r.GroupResource()].len() }

// Get returns one object; ok is false if it does not exist.
func (s *Snapshot) Get(r api.Resource, key api.Key) (*unstructured.Unstructured, bool) {
	rec := s.roots[r.GroupResource()].get(pathOf(key))
	if rec == nil {
		return nil, false
	}
	return rec.unstructured(r), true
}

// All yields the objects of a resource in the order of lists.
func (s *Snapshot) All(r api.Resource) iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for rec := range s.roots[r.GroupResource()].scan("", "") {
			if !yield(rec.unstructured(r)) {
				return
			}
		}
	}
}

// Versions returns the resource version of every object of a resource.
func (s *Snapshot) Versions(r api.Resource) map[api.Key]string {
	out := map[api.Key]string{}
	for rec := range s.roots[r.GroupResource()].scan("", "") {
		out[rec.key] = strconv.FormatUint(rec.version, 10)
	}
	return out
}

// restore makes a snapshot the present state. It deletes the history and ends every watch. The caller holds the lock.
func (s *store) restore(to *Snapshot) {
	s.version = to.version
	for gr, c := range s.collections {
		c.root = to.roots[gr]
		base := &change{version: to.version, root: c.root}
		c.base, c.tail, c.kept = base, base, 0
		c.epoch++
		c.wake.fire()
	}
	for _, c := range slices.Clone(s.order) {
		if c.fromCRD() {
			s.retire(c)
		}
	}
	s.serveCRDs()
	s.advanced.fire()
}

// unstructured decodes a record as an object of a resource.
func (r *record) unstructured(as api.Resource) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: r.tree()}
	u.SetGroupVersionKind(as.GroupVersionKind())
	return u
}

func compareNames(a, b schema.GroupResource) int {
	switch {
	case a.String() < b.String():
		return -1
	case a.String() > b.String():
		return 1
	}
	return 0
}
