package testserver

import (
	"iter"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Snapshot is the state of the whole server at one version. It never changes, and the server's history need not reach
// back to it. It is cheap because it shares its memory with the server.
type Snapshot struct{ state *store.State }

// Snapshot returns the present state.
func (s *Server) Snapshot() *Snapshot { return &Snapshot{s.store.State()} }

// ResourceVersion returns the version of the state.
func (s *Snapshot) ResourceVersion() string { return strconv.FormatUint(s.state.Version(), 10) }

// Len returns the number of objects of a resource.
func (s *Snapshot) Len(r api.Resource) int { return s.state.View(r.GroupResource()).Len() }

// Get returns one object; ok is false if it does not exist.
func (s *Snapshot) Get(r api.Resource, key api.Key) (*unstructured.Unstructured, bool) {
	rec := s.state.View(r.GroupResource()).Get(key)
	if rec == nil {
		return nil, false
	}
	return toUnstructured(rec, r), true
}

// All yields the objects of a resource in the order of lists.
func (s *Snapshot) All(r api.Resource) iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for rec := range s.state.View(r.GroupResource()).All() {
			if !yield(toUnstructured(rec, r)) {
				return
			}
		}
	}
}

// Versions returns the resource version of every object of a resource.
func (s *Snapshot) Versions(r api.Resource) map[api.Key]string {
	out := map[api.Key]string{}
	for rec := range s.state.View(r.GroupResource()).All() {
		out[rec.Key] = rec.ResourceVersion()
	}
	return out
}

// toUnstructured decodes a record as an object of a resource, in the version of the resource.
func toUnstructured(rec *store.Record, as api.Resource) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: rec.TreeIn(as.Version)}
	u.SetGroupVersionKind(as.GroupVersionKind())
	return u
}
