package controller

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// Owned is an object that names its owners.
type Owned interface {
	api.Object
	GetOwnerReferences() []metav1.OwnerReference
}

// Owns returns a source that adds the key of the owner of every owned object that something happens to. The owner is
// the one that the object names as its controller, if that is of the group and kind of the owners' informer, in any
// version. In an update the owner that is left behind is added as well, and deletions that were missed count, too.
//
// A reference to another incarnation of an owner that is in the owners' cache (the UIDs differ) is ignored: what is
// left of an owner is none of the business of the one that has taken its name. An owner that is not in the cache is
// added, for it may not have come yet, or be gone with work left. If it is the cache that is behind, and the reference
// names an incarnation still to come, the owner's own addition is what adds it: so watch the owners too, with For and
// without a predicate that drops additions. UIDs are not compared where a reference may have changed unseen: in a
// deletion that was missed, and for an owner that is left behind.
//
// The source is synced when the owners' cache is, too.
// It corresponds to EnqueueRequestForOwner with OnlyControllerOwner of controller-runtime, which looks at no UID.
func Owns[O api.Object, T Owned](owners Informer[O], owned Informer[T]) InformerSource[T, api.Key] {
	return owns(owners, owned, false)
}

// OwnsAny is Owns for every owner that an object names, not only its controller.
func OwnsAny[O api.Object, T Owned](owners Informer[O], owned Informer[T]) InformerSource[T, api.Key] {
	return owns(owners, owned, true)
}

func owns[O api.Object, T Owned](owners Informer[O], owned Informer[T], every bool) InformerSource[T, api.Key] {
	mustHave(owners, "Owns")
	mustHave(owned, "Owns")
	r := owners.Resource()
	m := ownerMatcher{
		kind: schema.GroupKind{Group: r.Group, Kind: r.Kind}, namespaced: r.Namespaced, every: every,
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
		keysOf:   r,
		name:     owned.Resource().String() + " (owned by " + r.String() + ")",
		keys: func(dst []api.Key, n informer.Notification[T]) []api.Key {
			return m.owners(dst, n.Object, n.FinalStateUnknown)
		},
		left: func(dst []api.Key, n informer.Notification[T]) []api.Key {
			return m.left(dst, n.Old, n.Object)
		},
	}
}

// ownerMatcher finds the owners of an object among those of one kind.
type ownerMatcher struct {
	kind       schema.GroupKind
	namespaced bool
	every      bool // every owner, not only the controller
	// uid returns the UID of a live owner; empty if there is none, or none is known.
	uid func(api.Key) types.UID
}

// owners appends the keys of the owners that an object names: those that are not known to be gone, or all.
func (m *ownerMatcher) owners(dst []api.Key, object Owned, all bool) []api.Key {
	for _, ref := range object.GetOwnerReferences() {
		key, ok := m.match(object, &ref)
		if ok && (all || m.mayLive(key, ref.UID)) {
			dst = append(dst, key)
		}
	}
	return dst
}

// left appends the keys of the owners that an object named and does not name any more.
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

// match returns the key of the owner that a reference names, if it is of the kind.
func (m *ownerMatcher) match(object api.Object, ref *metav1.OwnerReference) (key api.Key, ok bool) {
	controls := ref.Controller != nil && *ref.Controller
	if ref.Kind != m.kind.Kind || !controls && !m.every {
		return key, false
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != m.kind.Group {
		return key, false
	}
	key.Name = ref.Name
	if m.namespaced {
		key.Namespace = object.GetNamespace()
	}
	// A reference has no namespace: it is that of the object, which must have one if the owner does.
	return key, !m.namespaced || key.Namespace != ""
}

// mayLive says that no other incarnation of an owner is known to live.
func (m *ownerMatcher) mayLive(key api.Key, uid types.UID) bool {
	live := m.uid(key)
	return live == "" || uid == "" || live == uid
}
