package owner_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reconcile/owner"
)

var (
	sets  = api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	nodes = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
)

func object(namespace, name, uid string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), ResourceVersion: "7"}
}

func TestSetController(t *testing.T) {
	web, pod := object("shop", "web", "u1"), object("shop", "web-1", "p1")
	require.NoError(t, owner.SetController(web, sets, pod))
	yes := true
	require.Equal(t, []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u1", Controller: &yes, BlockOwnerDeletion: &yes,
	}}, pod.OwnerReferences)
	require.True(t, owner.Controls(web, pod))

	other := object("shop", "other", "u2")
	err := owner.SetController(other, sets, pod)
	require.ErrorIs(t, err, owner.ErrAlreadyOwned)
	require.EqualError(t, err, "owner: shop/web-1 is already controlled by ReplicaSet web")
	var already *owner.AlreadyOwnedError
	require.ErrorAs(t, err, &already)
	require.Equal(t, types.UID("u1"), already.Owner.UID)
	require.Len(t, pod.OwnerReferences, 1, "the object must not be changed")

	again := object("shop", "web", "u9") // another object with the name, after the first was deleted
	require.ErrorIs(t, owner.SetController(again, sets, pod), owner.ErrAlreadyOwned)
	require.False(t, owner.Controls(again, pod))

	require.NoError(t, owner.Set(other, sets, pod), "an owner must be possible beside a controller")
	require.Len(t, pod.OwnerReferences, 2)
	require.False(t, owner.Controls(other, pod))
	require.True(t, owner.Remove(web, pod))
	require.False(t, owner.Remove(web, pod))
	require.NoError(t, owner.SetController(other, sets, pod), "a plain owner becomes the controller")
	require.Len(t, pod.OwnerReferences, 1)
	require.True(t, owner.Controls(other, pod))
}

func TestSetAgain(t *testing.T) {
	web, pod := object("shop", "web", "u1"), object("shop", "web-1", "p1")
	older := sets
	older.Version = "v1beta2"
	require.NoError(t, owner.SetController(web, older, pod))
	require.NoError(t, owner.Set(object("shop", "other", "u2"), sets, pod))
	before := pod.OwnerReferences
	require.NoError(t, owner.SetController(web, sets, pod))
	require.Len(t, pod.OwnerReferences, 2)
	require.Equal(t, "apps/v1", pod.OwnerReferences[0].APIVersion)
	require.Equal(t, "apps/v1beta2", before[0].APIVersion, "a shared slice must not be changed")
	after := pod.DeepCopy()
	require.NoError(t, owner.SetController(web, sets, pod))
	require.Equal(t, after.OwnerReferences, pod.OwnerReferences)
}

func TestInvalidReferences(t *testing.T) {
	for name, c := range map[string]struct {
		owner, object *metav1.ObjectMeta
		resource      api.Resource
		says          string
	}{
		"another namespace":          {object("shop", "web", "u"), object("bar", "p", "v"), sets, `bar/p and its owner ReplicaSet shop/web are in different namespaces`},
		"cluster-scoped object":      {object("shop", "web", "u"), object("", "n", "v"), sets, `n has no namespace, and its owner ReplicaSet is in namespace "shop"`},
		"never stored":               {object("shop", "web", ""), object("shop", "p", "v"), sets, "ReplicaSet web has no UID"},
		"a resource without kind":    {object("shop", "web", "u"), object("shop", "p", "v"), api.Resource{Version: "v1", Namespaced: true}, "lacks a kind"},
		"a resource without version": {object("shop", "web", "u"), object("shop", "p", "v"), api.Resource{Kind: "X", Namespaced: true}, "lacks a kind or a version"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, set := range []func(api.Object, api.Resource, metav1.Object) error{owner.Set, owner.SetController} {
				err := set(c.owner, c.resource, c.object)
				require.ErrorIs(t, err, owner.ErrImpossible)
				require.ErrorContains(t, err, c.says)
				require.Empty(t, c.object.OwnerReferences)
			}
		})
	}
	pod := object("shop", "p", "v")
	require.NoError(t, owner.SetController(object("", "n1", "u"), nodes, pod), "a cluster-scoped owner may own any object")
}

func TestControllerOf(t *testing.T) {
	boss, child := object("a", "boss", "1"), object("a", "child", "2")
	require.Empty(t, owner.ControllerOf(child))
	require.NoError(t, owner.Set(boss, sets, child))
	require.Empty(t, owner.ControllerOf(child), "an owner that is not the controller")
	require.NoError(t, owner.SetController(boss, sets, child))
	require.Equal(t, boss.UID, owner.ControllerOf(child))
}
