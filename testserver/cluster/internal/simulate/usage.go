package simulate

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/leatproject/leat/api"
)

// usage is what the pods on each node request. It counts each pod once: from its binding until it has ended or is gone.
type usage struct {
	mu     sync.Mutex // guards the fields below
	placed map[types.UID]placement
	nodes  map[string]*load
}

type placement struct {
	node     string
	requests corev1.ResourceList
}

// load is the sum of the requests of the pods on a node.
type load struct {
	pods     int64
	requests corev1.ResourceList
}

func requestsOf(p *corev1.Pod) corev1.ResourceList {
	return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// observe takes a change of a pod into account. It reports whether room has become free.
func (u *usage) observe(c api.Change[*corev1.Pod]) (freed bool) {
	p := c.Object
	if c.Type == api.Deleted || ended(p) {
		return u.remove(p.UID)
	}
	if p.Spec.NodeName != "" {
		u.place(p, p.Spec.NodeName)
	}
	return false
}

// place counts a pod on a node.
func (u *usage) place(p *corev1.Pod, node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.placed == nil {
		u.placed, u.nodes = map[types.UID]placement{}, map[string]*load{}
	}
	if have, ok := u.placed[p.UID]; ok {
		if have.node == node {
			return
		}
		u.subtract(have)
	}
	added := placement{node: node, requests: requestsOf(p)}
	u.placed[p.UID] = added
	l := u.nodes[node]
	if l == nil {
		l = &load{requests: corev1.ResourceList{}}
		u.nodes[node] = l
	}
	l.pods++
	for name, q := range added.requests {
		sum := l.requests[name]
		sum.Add(q)
		l.requests[name] = sum
	}
}

// remove stops counting a pod. It reports whether the pod was counted.
func (u *usage) remove(pod types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	have, ok := u.placed[pod]
	if ok {
		delete(u.placed, pod)
		u.subtract(have)
	}
	return ok
}

// subtract removes a placement from the load of its node. The caller holds the lock.
func (u *usage) subtract(p placement) {
	l := u.nodes[p.node]
	l.pods--
	for name, q := range p.requests {
		sum := l.requests[name]
		sum.Sub(q)
		l.requests[name] = sum
	}
}

// on returns the load of a node. The caller owns it.
func (u *usage) on(node string) load {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.nodes[node]
	if l == nil {
		return load{}
	}
	return load{pods: l.pods, requests: maps.Clone(l.requests)}
}

// lacking returns the resources of which a node has too little for a pod.
func (l load) lacking(node *corev1.Node, requests corev1.ResourceList) []string {
	var out []string
	if room := node.Status.Allocatable[corev1.ResourcePods]; l.pods >= room.Value() {
		out = append(out, "Too many pods")
	}
	for _, name := range sortedNames(requests) {
		want := requests[name]
		if want.IsZero() {
			continue
		}
		sum := resource.Quantity{}
		sum.Add(l.requests[name])
		sum.Add(want)
		if room := node.Status.Allocatable[name]; sum.Cmp(room) > 0 {
			out = append(out, "Insufficient "+string(name))
		}
	}
	return out
}
