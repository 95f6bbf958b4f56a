package controller

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Owned is an object that names its owners.
type Owned interface {
	api.Object
	GetOwnerReferences() []metav1.OwnerReference
}

// Owns returns a source that adds the key of an object's owner whenever the owned object is added, updated or deleted.
// The owner is the one whose reference is marked as the controller, if its group and kind are those of the owners'
// informer, in any version. An object may have several owners, but only its controller manages it; the others only keep
// it from being deleted. If an update changes the owner, the old owner is added too. Deletes that were noticed later
// count too.
//
// Owns ignores a reference if the owners' cache has another object with that name (the UIDs differ): the remains of a
// deleted owner do not concern its successor. It adds an owner that is not in the cache, because it may arrive later,
// or may be deleted with work left. If the cache is behind and the reference names an owner that will arrive later,
// only the addition of that owner adds its key. So watch the owners too, with For, and without a predicate that drops
// additions. Owns does not compare UIDs in tombstones and for the old owner in an update, because there the reference
// may have changed without an event.
//
// Keyed gives the source keys of another type. The source is synced only when the owners' cache is synced too. It
// corresponds to EnqueueRequestForOwner with OnlyControllerOwner of controller-runtime, which does not compare UIDs.
func Owns[O api.Object, T Owned](owners Informer[O], owned Informer[T]) InformerSource[T, api.Key] {
	mustHave(owners, "Owns")
	mustHave(owned, "Owns")
	r := owners.Resource()
	m := ownerMatcher{
		kind: schema.GroupKind{Group: r.Group, Kind: r.Kind}, namespaced: r.Namespaced,
		uid: func(key api.Key) types.UID {
			if owner, found := owners.Cache().Get(key); found {
				return owner.GetUID()
			}
			return ""
		},
	}
	return InformerSource[T, api.Key]{
		informer: owned,
		owners:   owners,
		resource: r,
		name:     owned.Resource().String() + " (owned by " + r.String() + ")",
		keys: func(dst []api.Key, n api.Change[T]) []api.Key {
			return m.owners(dst, n.Object, n.FinalStateUnknown)
		},
		left: func(dst []api.Key, n api.Change[T]) []api.Key {
			return m.left(dst, n.Old, n.Object)
		},
		nonBlocking: true,
	}
}

// ownerMatcher finds the owners of an object that have one kind.
type ownerMatcher struct {
	kind       schema.GroupKind
	namespaced bool
	// uid returns the UID of a live owner, or "" if the cache has no owner or no UID.
	uid func(api.Key) types.UID
}

// owners appends the keys of the owners that an object names: all, or only those that may be alive.
func (m *ownerMatcher) owners(dst []api.Key, object Owned, all bool) []api.Key {
	for _, ref := range object.GetOwnerReferences() {
		key, ok := m.match(object, &ref)
		if ok && (all || m.mayLive(key, ref.UID)) {
			dst = append(dst, key)
		}
	}
	return dst
}

// left appends the keys of the owners that the old state names and the new state does not.
func (m *ownerMatcher) left(dst []api.Key, before, after Owned) []api.Key {
	now := after.GetOwnerReferences()
	for _, ref := range before.GetOwnerReferences() {
		key, ok := m.match(before, &ref)
		if ok && !slices.ContainsFunc(now, func(other metav1.OwnerReference) bool {
			_, counts := m.match(after, &other)
			return counts && other.Name == ref.Name && other.UID == ref.UID
		}) {
			dst = append(dst, key)
		}
	}
	return dst
}

// match returns the key of the owner that a reference names, if the owner has the right kind.
func (m *ownerMatcher) match(object api.Object, ref *metav1.OwnerReference) (key api.Key, ok bool) {
	if ref.Kind != m.kind.Kind || ref.Controller == nil || !*ref.Controller {
		return key, false
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != m.kind.Group {
		return key, false
	}
	key.Name = ref.Name
	if m.namespaced {
		key.Namespace = object.GetNamespace()
	}
	// A reference has no namespace. The owner is in the namespace of the object, which must have one if the owner's
	// kind does.
	return key, !m.namespaced || key.Namespace != ""
}

// mayLive reports whether the cache has no other object with the owner's name.
func (m *ownerMatcher) mayLive(key api.Key, uid types.UID) bool {
	live := m.uid(key)
	return live == "" || uid == "" || live == uid
}
