package collect

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// item is what the collector keeps of an object. It declares only metadata, so the server sends only metadata.
type item struct {
	Metadata metadata `json:"metadata"`
}

type metadata struct {
	Name              string                  `json:"name"`
	Namespace         string                  `json:"namespace"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	Finalizers        []string                `json:"finalizers"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
}

// GetNamespace returns the namespace of the object.
func (i *item) GetNamespace() string { return i.Metadata.Namespace }

// GetName returns the name of the object.
func (i *item) GetName() string { return i.Metadata.Name }

// GetUID returns the UID of the object.
func (i *item) GetUID() types.UID { return i.Metadata.UID }

// GetResourceVersion returns the version of the object.
func (i *item) GetResourceVersion() string { return i.Metadata.ResourceVersion }

// deleting reports whether the object is being deleted.
func (i *item) deleting() bool { return i.Metadata.DeletionTimestamp != nil }

// foreground reports whether the object is being deleted and waits for its dependents.
func (i *item) foreground() bool {
	return i.deleting() && slices.Contains(i.Metadata.Finalizers, metav1.FinalizerDeleteDependents)
}

// orphaning reports whether the object is being deleted and its dependents should stay.
func (i *item) orphaning() bool {
	return i.deleting() && slices.Contains(i.Metadata.Finalizers, metav1.FinalizerOrphanDependents)
}

// blocks reports whether the object blocks the deletion of an owner in the foreground.
func (i *item) blocks(owner types.UID) bool {
	return slices.ContainsFunc(i.Metadata.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == owner && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
}

// ownersOf returns the UIDs of the owners. It is an index function.
func ownersOf(i *item) []types.UID {
	var out []types.UID
	for _, r := range i.Metadata.OwnerReferences {
		if !slices.Contains(out, r.UID) {
			out = append(out, r.UID)
		}
	}
	return out
}

// id names an object of any resource.
type id struct {
	Resource schema.GroupResource
	Key      api.Key
}

// String formats an id as "pods default/web-0".
func (i id) String() string { return i.Resource.String() + " " + api.FormatKey(i.Key) }
