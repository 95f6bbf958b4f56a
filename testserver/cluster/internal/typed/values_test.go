package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

func pod(t *testing.T) object.Tree {
	tree := must.Get(object.Decode([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","labels":{"a":"b"},
		"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:spec":{}}}]},"spec":{"containers":[{"name":"c","resources":{}}]}}`)))(t)
	return tree
}

func TestAValueIsTakenOnceWithTheMetadataOfItsTree(t *testing.T) {
	for _, left := range []bool{false, true} {
		v := &registry.Values{}
		sent := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "from the value"}}
		sent.SetGroupVersionKind(podKind)
		sent.Name, sent.Annotations = "old", map[string]string{"old": ""}
		v.Sent = sent
		if left {
			internal := &core.Pod{Spec: core.PodSpec{NodeName: "from the value"}}
			internal.Name, internal.Annotations = "old", map[string]string{"old": ""}
			typed.Leave(v, podKind, internal)
		}
		first := must.Get(typed.Take(v, podKind, pod(t)))(t)
		require.Nil(t, v.Sent)
		got := first.(*core.Pod)
		require.Equal(t, "from the value", got.Spec.NodeName)
		require.Equal(t, "new", got.Name)
		require.Equal(t, map[string]string{"a": "b"}, got.Labels)
		require.Nil(t, got.Annotations)
		require.Equal(t, "m", got.ManagedFields[0].Manager)
		second := must.Get(typed.Take(v, podKind, pod(t)))(t)
		require.NotSame(t, first, second)
		require.Empty(t, second.(*core.Pod).Spec.NodeName)
	}
	typed.Leave(nil, podKind, &core.Pod{}) // without effect
}

func TestAValueOfAnotherKindIsNotTaken(t *testing.T) {
	v := &registry.Values{Sent: &corev1.Binding{}}
	got := must.Get(typed.Take(v, podKind, pod(t)))(t)
	require.Equal(t, "c", got.(*core.Pod).Spec.Containers[0].Name)
	require.Nil(t, v.Sent)

	typed.Leave(v, corev1.SchemeGroupVersion.WithKind("Binding"), &core.Binding{})
	got = must.Get(typed.Take(v, podKind, pod(t)))(t)
	require.Equal(t, "c", got.(*core.Pod).Spec.Containers[0].Name)
	require.Nil(t, v.Sent)
}

func TestUntypedPutsTheSetsOfFieldsBack(t *testing.T) {
	tree := pod(t)
	value := versioned(t, tree)
	require.Nil(t, value.ManagedFields[0].FieldsV1)
	require.Equal(t, pod(t), tree, "Take does not change its tree")
	value.Spec.NodeName = "n"
	got := must.Get(typed.Untyped(value, podKind, tree))(t)
	require.Equal(t, object.Metadata(pod(t))["managedFields"], object.Metadata(got)["managedFields"])
	require.Equal(t, "n", object.TextAt(got, "spec", "nodeName"))

	value.ManagedFields = nil
	got = must.Get(typed.Untyped(value, podKind, tree))(t)
	require.NotContains(t, object.Metadata(got), "managedFields")
}

// versioned returns what Take returns for a tree, in the version of the tree.
func versioned(t *testing.T, tree object.Tree) *corev1.Pod {
	value := must.Get(typed.Take(nil, podKind, tree))(t)
	out := must.Get(legacyscheme.Scheme.ConvertToVersion(value, corev1.SchemeGroupVersion))(t)
	return out.(*corev1.Pod)
}

func TestATreeWithAWrongTypeIsAnError(t *testing.T) {
	tree := pod(t)
	object.Metadata(tree)["labels"] = "text"
	sent := &corev1.Pod{}
	sent.SetGroupVersionKind(podKind)
	_, err := typed.Take(&registry.Values{Sent: sent}, podKind, tree)
	require.ErrorContains(t, err, "typed: decode a Pod: ")
}
