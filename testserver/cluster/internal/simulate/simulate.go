package simulate

import (
	"context"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

var (
	podResource  = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodeResource = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}

	leaseResource = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}
)

// Nodes are the nodes of a cluster, with a scheduler.
type Nodes struct {
	options Options
	client  *apiclient.Client
	pods    *apiclient.TypedClient[*corev1.Pod]
	nodes   *apiclient.TypedClient[*corev1.Node]
	leases  *apiclient.TypedClient[*coordinationv1.Lease]

	podCache  *informer.Informer[*corev1.Pod]
	nodeCache *informer.Informer[*corev1.Node]
	byNode    *cache.Index[*corev1.Pod, string]

	usage     usage
	addresses addresses

	mu            sync.Mutex           // guards the field below
	unschedulable map[api.Key]struct{} // pods without a node that fits

	scheduler, kubelet, registrar *controller.Controller[api.Key]
}

// New returns nodes for the pods that a client reaches.
func New(client *apiclient.Client, o Options) *Nodes {
	n := &Nodes{
		options: o.withDefaults(), client: client, unschedulable: map[api.Key]struct{}{},
		pods: apiclient.NewTyped[*corev1.Pod](client, podResource, ""), nodes: apiclient.NewTyped[*corev1.Node](client, nodeResource, ""),
		leases: apiclient.NewTyped[*coordinationv1.Lease](client, leaseResource, corev1.NamespaceNodeLease),
	}
	log := o.Controller.Logger
	n.podCache = informer.New(n.pods, informer.Options[*corev1.Pod]{Logger: log})
	n.nodeCache = informer.New(n.nodes, informer.Options[*corev1.Node]{Logger: log})
	n.byNode = informer.AddIndex(n.podCache, func(p *corev1.Pod) []string {
		if p.Spec.NodeName == "" {
			return nil
		}
		return []string{p.Spec.NodeName}
	})
	engine := o.Controller
	engine.Queue.Bucket.QPS = -1 // conflicts are retried soon, however many there are
	n.scheduler = controller.New("scheduler", controller.Func[api.Key](n.schedule), engine)
	n.kubelet = controller.New("kubelet", controller.Func[api.Key](n.live), engine)
	n.registrar = controller.New("node", controller.Func[api.Key](n.register), engine)
	n.watch()
	return n
}

// watch adds the sources of the controllers. The source of the scheduler also keeps account of the nodes: it sees a
// change before it adds the key, so that a decision is at least as new as the change.
func (n *Nodes) watch() {
	account := func(c api.Change[*corev1.Pod]) bool {
		if n.usage.observe(c) {
			n.retry()
		}
		return c.Type != api.Deleted && c.Object.Spec.NodeName == ""
	}
	n.scheduler.Watch(controller.For(n.podCache).When(account))
	n.scheduler.Watch(controller.Map(n.nodeCache, func(*corev1.Node) []api.Key { return n.waiting() }).Named("nodes"))
	n.kubelet.Watch(controller.For(n.podCache).When(func(c api.Change[*corev1.Pod]) bool {
		if c.Type == api.Deleted {
			n.addresses.release(c.Object.UID)
			return false
		}
		return c.Object.Spec.NodeName != "" || c.Object.DeletionTimestamp != nil
	}))
	n.kubelet.Watch(controller.Map(n.nodeCache, func(node *corev1.Node) []api.Key { return n.byNode.Keys(node.Name) }).Named("nodes").
		When(func(c api.Change[*corev1.Node]) bool { return c.Type != api.Updated || ready(c.Old) != ready(c.Object) }))
	n.registrar.Watch(controller.For(n.nodeCache).Unless(func(c api.Change[*corev1.Node]) bool { return c.Type == api.Deleted }))
}

// Run creates the nodes, and then simulates them until ctx ends. It returns after its goroutines have ended. It runs
// once.
func (n *Nodes) Run(ctx context.Context) error {
	if err := n.create(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		n.podCache.Run, n.nodeCache.Run, n.scheduler.Run, n.kubelet.Run, n.registrar.Run,
	} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// addresses are the IPs of pods.
type addresses struct {
	mu    sync.Mutex // guards the fields below
	owner map[string]types.UID
	of    map[types.UID]string
}

// lease returns the address of a pod. It keeps the address that the pod already has, and otherwise takes a free one.
// candidate returns the addresses to try, in order.
func (a *addresses) lease(pod types.UID, has string, candidate func(i int) string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner == nil {
		a.owner, a.of = map[string]types.UID{}, map[types.UID]string{}
	}
	if have := a.of[pod]; have != "" {
		return have
	}
	for i := 0; has == ""; i++ {
		if address := candidate(i); a.owner[address] == "" {
			has = address
		}
	}
	a.owner[has], a.of[pod] = pod, has
	return has
}

// release frees the address of a pod.
func (a *addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.owner, a.of[pod])
	delete(a.of, pod)
}
