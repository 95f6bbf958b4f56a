package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// The resources that the controllers read and write.
var (
	Deployments = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	ReplicaSets = api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	Pods        = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

// Pod is what the controllers look at in a Pod. Everything else is skipped while it is read, and never stored.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec is what they look at in its spec.
type PodSpec struct {
	NodeName   string      `json:"nodeName"`
	Containers []Container `json:"containers"`
}

// Container is what the kubelet looks at in a container.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// PodStatus is what they look at in its status.
type PodStatus struct {
	Phase             corev1.PodPhase       `json:"phase"`
	Conditions        []corev1.PodCondition `json:"conditions"`
	ContainerStatuses []ContainerStatus     `json:"containerStatuses"`
}

// ContainerStatus is what they look at in the status of a container.
type ContainerStatus struct {
	RestartCount int32 `json:"restartCount"`
}

// Keeper is under what an object is filed: the UID of its controller or, for an orphan, its namespace.
type Keeper struct {
	Controller types.UID
	Namespace  string // only of orphans
}

// KeeperOf files an object. It is an index function.
func KeeperOf[T metav1.Object](object T) []Keeper {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		return []Keeper{{Controller: ref.UID}}
	}
	return []Keeper{{Namespace: object.GetNamespace()}}
}

// Selects tells whether a selector is for an object. One that is empty, or cannot be read, is for none: it would adopt
// everything.
func Selects(selector *metav1.LabelSelector, object metav1.Object) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(object.GetLabels()))
}
