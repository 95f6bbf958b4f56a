package simulate

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

const (
	// usageAnnotation of a pod sets what each of its running containers uses: cpu=250m,memory=64Mi.
	usageAnnotation = "leat.dev/usage"
	// window is the time over which the usage was measured. kube-controller-manager ignores the processor time of a pod
	// that has been ready for less than this time.
	window = time.Second
)

// measured are the resources in metrics.
var measured = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// Metrics returns the resources of metrics.k8s.io, which a real cluster gets from metrics-server.
func Metrics() []*registry.Definition {
	define := func(kind, plural string, namespaced bool, compute func(registry.Reader) []object.Tree) *registry.Definition {
		return &registry.Definition{
			Settings: registry.Settings{NoStatus: true, Resource: api.Resource{
				Group: "metrics.k8s.io", Version: "v1beta1", Kind: kind, Plural: plural, Namespaced: namespaced,
			}},
			Verbs: metav1.Verbs{"get", "list"}, Missing: strings.ToLower(kind), Columns: usageColumns{}, Compute: compute,
		}
	}
	return []*registry.Definition{
		define("NodeMetrics", "nodes", false, nodeMetrics), define("PodMetrics", "pods", true, podMetrics),
	}
}

// podMetrics returns the metrics of the pods with running containers on ready nodes.
func podMetrics(all registry.Reader) (out []object.Tree) {
	nodes := readyNodes(all)
	for p := range running(all) {
		if nodes[p.Spec.NodeName] == nil {
			continue
		}
		var containers []any
		for name, used := range usageOf(p) {
			containers = append(containers, object.Tree{"name": name, "usage": used.tree()})
		}
		if containers != nil {
			tree := measurement(&p.ObjectMeta)
			tree["containers"] = containers
			out = append(out, tree)
		}
	}
	return out
}

// nodeMetrics returns the metrics of the ready nodes: the sums of their pods.
func nodeMetrics(all registry.Reader) (out []object.Tree) {
	nodes, sums := readyNodes(all), map[string]amounts{}
	for p := range running(all) {
		for _, used := range usageOf(p) {
			sums[p.Spec.NodeName] = sums[p.Spec.NodeName].plus(used)
		}
	}
	for name, node := range nodes {
		tree := measurement(&node.ObjectMeta)
		tree["usage"] = sums[name].tree()
		out = append(out, tree)
	}
	return out
}

// measurement returns metrics without the usage.
func measurement(of *metav1.ObjectMeta) object.Tree {
	now := time.Now().UTC().Format(time.RFC3339)
	meta := object.Tree{"name": of.Name, "creationTimestamp": now}
	if of.Namespace != "" {
		meta["namespace"] = of.Namespace
	}
	if len(of.Labels) > 0 {
		labels := object.Tree{}
		for name, value := range of.Labels {
			labels[name] = value
		}
		meta["labels"] = labels
	}
	return object.Tree{"metadata": meta, "timestamp": now, "window": window.String()}
}

// readyNodes returns the nodes that are ready.
func readyNodes(all registry.Reader) map[string]*corev1.Node {
	out := map[string]*corev1.Node{}
	for tree := range all(schema.GroupResource{Resource: "nodes"}) {
		var n corev1.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &n); err == nil && ready(&n) {
			out[n.Name] = &n
		}
	}
	return out
}

// running yields the pods in the phase Running.
func running(all registry.Reader) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for tree := range all(schema.GroupResource{Resource: "pods"}) {
			if object.TextAt(tree, "status", "phase") != string(corev1.PodRunning) {
				continue
			}
			var p corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &p); err == nil && !yield(&p) {
				return
			}
		}
	}
}

// amounts are quantities of the measured resources.
type amounts [2]resource.Quantity

func (a amounts) plus(b amounts) amounts {
	for i := range a {
		a[i] = a[i].DeepCopy()
		a[i].Add(b[i])
	}
	return a
}

func (a amounts) tree() object.Tree {
	out := object.Tree{}
	for i, name := range measured {
		out[string(name)] = a[i].String()
	}
	return out
}

// usageOf yields the names of the running containers of a pod and what each of them uses: what the annotation sets, and
// otherwise half of the requests.
func usageOf(p *corev1.Pod) iter.Seq2[string, amounts] {
	set := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(p.Annotations[usageAnnotation], ",") {
		name, text, _ := strings.Cut(part, "=")
		if q, err := resource.ParseQuantity(strings.TrimSpace(text)); err == nil && q.Sign() >= 0 {
			set[strings.TrimSpace(name)] = q
		}
	}
	requests := map[string]corev1.ResourceList{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		requests[c.Name] = c.Resources.Requests
	}
	return func(yield func(string, amounts) bool) {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.State.Running == nil {
				continue
			}
			var used amounts
			for i, name := range measured {
				q, ok := set[string(name)]
				switch {
				case ok:
				case name == corev1.ResourceCPU:
					q = requests[s.Name][name].DeepCopy()
					q.SetMilli(q.MilliValue() / 2)
				default:
					q = requests[s.Name][name].DeepCopy()
					q.Set(q.Value() / 2)
				}
				used[i] = q
			}
			if !yield(s.Name, used) {
				return
			}
		}
	}
}

// usageColumns are the columns of metrics-server. It implements registry.Columns.
type usageColumns struct{}

// Definitions implements registry.Columns.
func (usageColumns) Definitions(string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the resource"},
		{Name: "cpu", Type: "string", Format: "quantity"},
		{Name: "memory", Type: "string", Format: "quantity"},
		{Name: "Window", Type: "string", Format: "duration"},
	}
}

// Rows implements registry.Columns.
func (usageColumns) Rows(_ string, tree object.Tree) ([]metav1.TableRow, error) {
	cells := []any{object.StringAt(object.Metadata(tree), "name")}
	for _, name := range measured {
		sum := resource.MustParse(cmp.Or(object.TextAt(tree, "usage", string(name)), "0"))
		for _, c := range object.SliceAt(tree, "containers") {
			c, _ := c.(object.Tree)
			sum.Add(resource.MustParse(object.TextAt(c, "usage", string(name))))
		}
		cells = append(cells, sum.String())
	}
	return []metav1.TableRow{{Cells: append(cells, object.StringAt(tree, "window"))}}, nil
}
