package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec"
)

type (
	justObjectMeta struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	metaAndType struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	metaTypeAndSpec struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct{} `json:"spec"`
	}
	ownMetadata struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	noMetadata struct {
		Kind string `json:"kind"`
	}
	ignoredRest struct {
		metav1.ObjectMeta `json:"metadata"`
		Parsed            any `json:"-"`
	}
	decodesItself struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	wrappedPod struct {
		*corev1.Pod
		Extra int `json:"extra"`
	}
)

func (d *decodesItself) UnmarshalJSON([]byte) error { return nil }

func TestPlanProperties(t *testing.T) {
	for name, test := range map[string]struct {
		protobuf, metadataOnly bool
		got                    interface {
			Protobuf() bool
			MetadataOnly() bool
		}
	}{
		"pod":            {true, false, podCodec},
		"pod list":       {true, false, codec.New[*corev1.PodList](codec.Options{})},
		"status":         {true, false, codec.New[*metav1.Status](codec.Options{})},
		"metadata":       {true, true, metadataCodec},
		"unstructured":   {false, false, unstructuredCodec},
		"projection":     {false, false, smallCodec},
		"just metadata":  {false, true, codec.New[*justObjectMeta](codec.Options{})},
		"meta and type":  {false, true, codec.New[*metaAndType](codec.Options{})},
		"with spec":      {false, false, codec.New[*metaTypeAndSpec](codec.Options{})},
		"own metadata":   {false, true, codec.New[*ownMetadata](codec.Options{})},
		"no metadata":    {false, false, codec.New[*noMetadata](codec.Options{})},
		"ignored rest":   {false, true, codec.New[*ignoredRest](codec.Options{})},
		"decodes itself": {false, false, codec.New[*decodesItself](codec.Options{})},
		"wrapped pod":    {false, false, codec.New[*wrappedPod](codec.Options{})},
	} {
		require.Equal(t, test.protobuf, test.got.Protobuf(), name)
		require.Equal(t, test.metadataOnly, test.got.MetadataOnly(), name)
	}
}

func TestForPanicsUnlessPointerToStruct(t *testing.T) {
	require.PanicsWithValue(t, "codec: v1.Pod is no pointer to a struct", func() { codec.New[corev1.Pod](codec.Options{}) })
	require.PanicsWithValue(t, "codec: *int is no pointer to a struct", func() { codec.New[*int](codec.Options{}) })
	require.PanicsWithValue(t, "codec: interface {} is no pointer to a struct", func() { codec.New[any](codec.Options{}) })
	require.PanicsWithValue(t, "codec: map[string]interface {} is no pointer to a struct", func() { codec.New[map[string]any](codec.Options{}) })
}

func TestAccept(t *testing.T) {
	const (
		one  = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		list = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		drop = ";drop=metadata.managedFields"
	)
	for _, test := range []struct {
		want, got string
	}{
		{asProtobuf + "," + asJSON, podCodec.Accept(codec.AcceptOptions{})},
		{asJSON, podCodec.Accept(codec.AcceptOptions{JSON: true, List: true})},
		{asProtobuf + drop + "," + asJSON + drop + "," + asProtobuf + "," + asJSON, podCodec.Accept(codec.AcceptOptions{DropManagedFields: true})},
		{asJSON, unstructuredCodec.Accept(codec.AcceptOptions{})},
		{asJSON + drop + "," + asJSON, smallCodec.Accept(codec.AcceptOptions{DropManagedFields: true})},
		{asProtobuf + one + "," + asJSON + one + "," + asProtobuf + "," + asJSON, metadataCodec.Accept(codec.AcceptOptions{})},
		{asProtobuf + list + "," + asJSON + list + "," + asProtobuf + "," + asJSON, metadataCodec.Accept(codec.AcceptOptions{List: true})},
		{asJSON + list + "," + asJSON, codec.New[*justObjectMeta](codec.Options{}).Accept(codec.AcceptOptions{List: true})},
	} {
		require.Equal(t, test.want, test.got)
	}
}
