package api

import "k8s.io/apimachinery/pkg/types"

// ObjectReference names an object in a field of another object. It has the fields and the JSON of
// corev1.ObjectReference, so a conversion is enough: corev1.ObjectReference(api.ReferenceTo(pods, pod)).
type ObjectReference struct {
	Kind            string    `json:"kind,omitempty"`
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	APIVersion      string    `json:"apiVersion,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	FieldPath       string    `json:"fieldPath,omitempty"`
}

// ReferenceTo returns a reference to an object of a resource, with its UID and its version. It corresponds to
// reference.GetReference of client-go, which needs a scheme. The object must not be nil.
func ReferenceTo(r Resource, o Object) ObjectReference {
	return ObjectReference{
		Kind: r.Kind, APIVersion: r.GroupVersion().String(),
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}
