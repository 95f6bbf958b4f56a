package subject

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is the key of an object for all libraries.
type Key = types.NamespacedName

// Pod is a struct with eight fields, like a user's own type. The field numbers are those of corev1.Pod.
type Pod struct {
	Metadata struct {
		Name            string            `json:"name" protobuf:"bytes,1,opt,name=name"`
		Namespace       string            `json:"namespace" protobuf:"bytes,3,opt,name=namespace"`
		UID             types.UID         `json:"uid" protobuf:"bytes,5,opt,name=uid"`
		ResourceVersion string            `json:"resourceVersion" protobuf:"bytes,6,opt,name=resourceVersion"`
		Labels          map[string]string `json:"labels" protobuf:"bytes,11,rep,name=labels"`
	} `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Spec struct {
		NodeName string `json:"nodeName" protobuf:"bytes,10,opt,name=nodeName"`
	} `json:"spec" protobuf:"bytes,2,opt,name=spec"`
	Status struct {
		Phase string `json:"phase" protobuf:"bytes,1,opt,name=phase"`
		PodIP string `json:"podIP" protobuf:"bytes,6,opt,name=podIP"`
	} `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// GetName returns the name.
func (p *Pod) GetName() string { return p.Metadata.Name }

// GetNamespace returns the namespace.
func (p *Pod) GetNamespace() string { return p.Metadata.Namespace }

// GetUID returns the UID.
func (p *Pod) GetUID() types.UID { return p.Metadata.UID }

// GetResourceVersion returns the version.
func (p *Pod) GetResourceVersion() string { return p.Metadata.ResourceVersion }

// Strip drops managedFields, as client-go's documentation recommends for a transform.
func Strip(o metav1.Object) { o.SetManagedFields(nil) }
