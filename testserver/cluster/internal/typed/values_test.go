package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

func pod(t *testing.T) object.Tree {
	tree, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","labels":{"a":"b"},
		"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:spec":{}}}]},"spec":{"containers":[{"name":"c","resources":{}}]}}`))
	require.NoError(t, err)
	return tree
}

func TestAValueIsTakenOnceWithTheMetadataOfItsTree(t *testing.T) {
	sent := &corev1.Pod{}
	sent.SetGroupVersionKind(podKind)
	sent.Name, sent.Annotations, sent.Spec.NodeName = "old", map[string]string{"old": ""}, "from the value"
	v := &registry.Values{Sent: sent}
	first, err := typed.Take(v, podKind, pod(t))
	require.NoError(t, err)
	require.Same(t, sent, first)
	require.Nil(t, v.Sent)
	require.Equal(t, "from the value", sent.Spec.NodeName)
	require.Equal(t, "new", sent.Name)
	require.Equal(t, map[string]string{"a": "b"}, sent.Labels)
	require.Nil(t, sent.Annotations)
	require.Equal(t, "m", sent.ManagedFields[0].Manager)
	second, err := typed.Take(v, podKind, pod(t))
	require.NoError(t, err)
	require.NotSame(t, sent, second)
	require.Empty(t, second.(*corev1.Pod).Spec.NodeName)
}

func TestAValueOfAnotherKindIsNotTaken(t *testing.T) {
	v := &registry.Values{Sent: &corev1.Binding{}}
	got, err := typed.Take(v, podKind, pod(t))
	require.NoError(t, err)
	require.Equal(t, "c", got.(*corev1.Pod).Spec.Containers[0].Name)
	require.Nil(t, v.Sent)
}

func TestUntypedPutsTheSetsOfFieldsBack(t *testing.T) {
	tree := pod(t)
	value, err := typed.Take(nil, podKind, tree)
	require.NoError(t, err)
	require.Nil(t, value.(*corev1.Pod).ManagedFields[0].FieldsV1)
	require.Equal(t, pod(t), tree, "Take does not change its tree")
	value.(*corev1.Pod).Spec.NodeName = "n"
	got, err := typed.Untyped(value, podKind, tree)
	require.NoError(t, err)
	require.Equal(t, object.Metadata(pod(t))["managedFields"], object.Metadata(got)["managedFields"])
	require.Equal(t, "n", object.TextAt(got, "spec", "nodeName"))

	value.(*corev1.Pod).ManagedFields = nil
	got, err = typed.Untyped(value, podKind, tree)
	require.NoError(t, err)
	require.NotContains(t, object.Metadata(got), "managedFields")
}

func TestATreeWithAWrongTypeIsAnError(t *testing.T) {
	tree := pod(t)
	object.Metadata(tree)["labels"] = "text"
	sent := &corev1.Pod{}
	sent.SetGroupVersionKind(podKind)
	_, err := typed.Take(&registry.Values{Sent: sent}, podKind, tree)
	require.ErrorContains(t, err, "typed: decode a Pod: ")
}
