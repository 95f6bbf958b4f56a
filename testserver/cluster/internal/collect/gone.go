package collect

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxGone is the number of deleted objects that the collector remembers. kube-controller-manager has the same.
const maxGone = 500

// gone are the UIDs of objects whose deletion the collector has seen. The server may not serve their resource any more,
// because its definition was deleted with them, so it could not say that they are gone.
type gone struct {
	mu    sync.Mutex // guards the fields below
	known map[types.UID]bool
	order []types.UID
}

func (g *gone) add(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[uid] {
		return
	}
	if g.known == nil {
		g.known = map[types.UID]bool{}
	}
	if len(g.order) == maxGone {
		delete(g.known, g.order[0])
		g.order = g.order[1:]
	}
	g.known[uid] = true
	g.order = append(g.order, uid)
}

func (g *gone) has(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[uid]
}
