package simulate

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
)

// create creates the nodes that do not exist yet.
func (n *Nodes) create(ctx context.Context) error {
	for i := range max(n.options.Nodes, 0) {
		name := "node-" + strconv.Itoa(i)
		node := &corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			}},
			Spec: corev1.NodeSpec{PodCIDR: network(i) + ".0/24", PodCIDRs: []string{network(i) + ".0/24"}},
		}
		node.Status.Capacity = n.options.Capacity.DeepCopy()
		if n.options.Node != nil {
			n.options.Node(i, node)
		}
		wanted := node.Status.Capacity
		_, err := n.nodes.Create(ctx, node, metav1.CreateOptions{})
		if err == nil {
			err = n.fill(ctx, api.Key{Name: node.Name}, wanted) // the server drops the status of a new object
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("simulate: %w", err)
		}
	}
	return nil
}

// register writes the status of a node that another client has created, and the taints of its conditions. It renews the
// Lease of a node that is ready.
func (n *Nodes) register(ctx context.Context, key api.Key) (controller.Result, error) {
	node, found := n.nodeCache.Cache().Get(key)
	if !found {
		return controller.Result{}, nil
	}
	write := func() error { return n.taint(ctx, node) }
	if condition(node) == nil {
		write = func() error { return n.fill(ctx, key, n.options.Capacity) } // the change brings the node again
	}
	if err := write(); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, err
	}
	if !ready(node) || n.options.Heartbeat < 0 {
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: n.options.Heartbeat}, n.renew(ctx, node)
}

// renew writes the Lease of a node, as a kubelet does.
func (n *Nodes) renew(ctx context.Context, node *corev1.Node) error {
	key := api.Key{Namespace: corev1.NamespaceNodeLease, Name: node.Name}
	lease, err := n.leases.Get(ctx, key, metav1.GetOptions{})
	now := metav1.NowMicro()
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &node.Name, LeaseDurationSeconds: new(int32(leaseDuration / time.Second)), RenewTime: &now,
			},
		}
		if _, err = n.leases.Create(ctx, lease, metav1.CreateOptions{}); apierrors.IsNotFound(err) {
			err = nil // the server has no Leases, or not their namespace
		}
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = n.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// fill writes the status of a node that has none, and then its taints.
func (n *Nodes) fill(ctx context.Context, key api.Key, capacity corev1.ResourceList) error {
	node, err := n.nodes.Get(ctx, key, metav1.GetOptions{})
	if err != nil || condition(node) != nil {
		return err
	}
	s := &node.Status
	if len(s.Capacity) == 0 {
		s.Capacity = capacity.DeepCopy()
	}
	if len(s.Allocatable) == 0 {
		s.Allocatable = s.Capacity.DeepCopy()
	}
	now := metav1.Now()
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		s.Conditions = append(s.Conditions, c)
	}
	s.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: hostIP(node)}, {Type: corev1.NodeHostName, Address: node.Name},
	}
	s.NodeInfo = corev1.NodeSystemInfo{
		OperatingSystem: "linux", Architecture: "amd64", OSImage: "leat", KernelVersion: "6.12.0",
		ContainerRuntimeVersion: "containerd://2.2.0", KubeletVersion: "v1.37.2",
	}
	if node, err = n.nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return n.taint(ctx, node)
}

// taint writes the taints of a node if they do not follow from its conditions.
func (n *Nodes) taint(ctx context.Context, node *corev1.Node) error {
	taints := taintsOf(node)
	if equality.Semantic.DeepEqual(taints, node.Spec.Taints) {
		return nil
	}
	node = node.DeepCopy()
	node.Spec.Taints = taints
	_, err := n.nodes.Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// conditionTaints are the keys of the taints that stand for conditions with these values.
var conditionTaints = map[corev1.NodeConditionType]map[corev1.ConditionStatus]string{
	corev1.NodeReady: {
		corev1.ConditionFalse: corev1.TaintNodeNotReady, corev1.ConditionUnknown: corev1.TaintNodeUnreachable,
	},
	corev1.NodeMemoryPressure:     {corev1.ConditionTrue: corev1.TaintNodeMemoryPressure},
	corev1.NodeDiskPressure:       {corev1.ConditionTrue: corev1.TaintNodeDiskPressure},
	corev1.NodePIDPressure:        {corev1.ConditionTrue: corev1.TaintNodePIDPressure},
	corev1.NodeNetworkUnavailable: {corev1.ConditionTrue: corev1.TaintNodeNetworkUnavailable},
}

// taintsOf returns the taints that a node should have: those of its conditions, of a cordon, and of other clients. In a
// cluster, kube-controller-manager writes them. Its taints with the effect NoExecute are missing, because nothing here
// evicts pods.
func taintsOf(node *corev1.Node) []corev1.Taint {
	state := map[string]bool{corev1.TaintNodeUnschedulable: node.Spec.Unschedulable} // whether a taint must be there
	for kind, keys := range conditionTaints {
		at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
		for status, key := range keys {
			state[key] = at >= 0 && node.Status.Conditions[at].Status == status
		}
	}
	var out []corev1.Taint
	for _, t := range node.Spec.Taints {
		wanted, ours := state[t.Key]
		ours = ours && t.Effect == corev1.TaintEffectNoSchedule
		if !ours || wanted {
			out = append(out, t)
		}
		if ours {
			delete(state, t.Key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if state[key] {
			out = append(out, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	return out
}

// condition returns the condition Ready of a node, or nil.
func condition(node *corev1.Node) *corev1.NodeCondition {
	at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if at < 0 {
		return nil
	}
	return &node.Status.Conditions[at]
}

// ready reports whether a node is ready.
func ready(node *corev1.Node) bool {
	c := condition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}

// network returns the first three numbers of the addresses of a node's pods.
func network(index int) string { return fmt.Sprintf("10.%d.%d", 64+index/256%128, index%256) }

// indexOf returns the number of a node. A node that has another name than those of create gets one from its name.
func indexOf(name string) int {
	if digits, ok := strings.CutPrefix(name, "node-"); ok {
		if i, err := strconv.Atoi(digits); err == nil && i >= 0 {
			return i
		}
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() % (128 * 256))
}

// hostIP returns the address of a node.
func hostIP(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	i := indexOf(node.Name) + 2
	return fmt.Sprintf("172.%d.%d.%d", 18+i/65536%14, i/256%256, i%256)
}

// podIP returns a candidate for the address of a pod on a node. After those of the node's own network follow those of
// the next nodes.
func podIP(node string, i int) string {
	const perNode = 253
	return fmt.Sprintf("%s.%d", network(indexOf(node)+i/perNode), 2+i%perNode)
}

// timestamp returns a time as an object contains it: in whole seconds.
func timestamp(t time.Time) metav1.Time { return metav1.NewTime(t).Rfc3339Copy() }
