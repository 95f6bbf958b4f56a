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

// Pod has the fields of a Pod that the controllers read. The decoder skips all others, so they use no memory.
type Pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec has the fields of the spec.
type PodSpec struct {
	NodeName   string      `json:"nodeName"`
	Containers []Container `json:"containers"`
}

// Container has the fields of a container that the kubelet reads.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// PodStatus has the fields of the status.
type PodStatus struct {
	Phase             corev1.PodPhase       `json:"phase"`
	Conditions        []corev1.PodCondition `json:"conditions"`
	ContainerStatuses []ContainerStatus     `json:"containerStatuses"`
}

// ContainerStatus has the fields of the status of a container.
type ContainerStatus struct {
	RestartCount int32 `json:"restartCount"`
}

// Owner is the index key of an object: the UID of its controller or, for an orphan, its namespace.
type Owner struct {
	Controller types.UID
	Namespace  string // only of orphans
}

// OwnerOf returns the index key of an object. It is an index function.
func OwnerOf[T metav1.Object](object T) []Owner {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		return []Owner{{Controller: ref.UID}}
	}
	return []Owner{{Namespace: object.GetNamespace()}}
}

// Selects reports whether a selector matches an object. A selector that is empty or invalid matches none, because it
// would adopt everything.
func Selects(selector *metav1.LabelSelector, object metav1.Object) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(object.GetLabels()))
}
