package collect

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is the number of references that the collector remembers. kube-controller-manager has the same.
const remembered = 500

// reference is what identifies an owner: what its dependents in a namespace have in their references.
type reference struct {
	apiVersion, kind, namespace, name string
	uid                               types.UID
}

// recent are the last references of some kind. The references of deleted owners answer whether an owner exists if the
// server does not serve its resource any more, because its definition was deleted too.
type recent[K comparable] struct {
	mu    sync.Mutex // guards the fields below
	known map[K]bool
	order []K
}

// add reports whether a reference is new.
func (r *recent[K]) add(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[k] {
		return false
	}
	if r.known == nil {
		r.known = map[K]bool{}
	}
	if len(r.order) == remembered {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	r.known[k] = true
	r.order = append(r.order, k)
	return true
}

func (r *recent[K]) has(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[k]
}
