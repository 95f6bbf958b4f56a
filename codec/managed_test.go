package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

type (
	metadataBehindPointer struct {
		Metadata *metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			ManagedFields string `json:"managedFields"`
		} `json:"spec"`
	}
	metadataInMap struct {
		Metadata map[string]any `json:"metadata"`
	}
	metadataRaw struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	metadataByItself struct{ text string }
	metadataUnnamed  struct {
		Metadata *struct{ readsX } `json:"metadata"`
	}
	metadataEmbedded struct {
		metadataBehindPointer
	}
)

func (m *metadataByItself) UnmarshalJSON(b []byte) error {
	m.text = string(b)
	return nil
}

// only decodes the single item of a list without its managedFields.
func only[T any](t *testing.T, item string) T {
	t.Helper()
	items, _, err := collect(codec.New[T](codec.Options{}), `{"items":[`+item+`]}`, asJSON, api.Resource{}, api.Options[T]{DropManagedFields: true})
	require.NoError(t, err)
	return items[0]
}

// managedFields are skipped wherever a type has its metadata. Other fields of that name are kept.
func TestDropsManagedFieldsOfEveryType(t *testing.T) {
	const item = `{"spec":{"managedFields":"x"},"metadata":{"managedFields":[{"manager":"a,}]"}],"name":"a","labels":{"managedFields":"y"}}}`
	pointer := only[*metadataBehindPointer](t, item)
	require.Equal(t, &metav1.ObjectMeta{Name: "a", Labels: map[string]string{"managedFields": "y"}}, pointer.Metadata)
	require.Equal(t, "x", pointer.Spec.ManagedFields)
	require.Equal(t, pointer.Metadata, only[*metadataEmbedded](t, item).Metadata)
	labels := map[string]any{"name": "a", "labels": map[string]any{"managedFields": "y"}}
	require.Equal(t, labels, only[*metadataInMap](t, item).Metadata)
	require.JSONEq(t, `{"name":"a","labels":{"managedFields":"y"}}`, string(only[*metadataRaw](t, item).Metadata))
	require.JSONEq(t, strings.Replace(item, `"managedFields":[{"manager":"a,}]"}],`, "", 1), only[*metadataByItself](t, item).text)
	require.JSONEq(t, `{"name":"a","labels":{"managedFields":"y"}}`, only[*metadataUnnamed](t, item).Metadata.Text)

	for _, odd := range []string{`{}`, `{"metadata":null}`, `{"metadata":7}`, `{"metadata":{}}`, `{"metadata":{"managedFields":null}}`, `{"metadata":{"m\u0061nagedFields":[1]},"metadata":{"managedFields":{}}}`} {
		require.NotContains(t, only[*metadataByItself](t, odd).text, "anagedFields", odd)
	}
	kept, _, err := collect(codec.New[*metadataRaw](codec.Options{}), `{"items":[`+item+`]}`, asJSON, api.Resource{}, api.Options[*metadataRaw]{})
	require.NoError(t, err)
	require.Contains(t, string(kept[0].Metadata), `"manager":"a,}]"`)
}

// Protobuf skips them too, whether the metadata is in the object or behind a pointer.
func TestDropsManagedFieldsFromProtobuf(t *testing.T) {
	type pointing struct {
		Metadata *metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	}
	c := codec.New[*pointing](codec.Options{})
	for _, drop := range []bool{true, false} {
		items, _, err := collect(c, string(podList(1, asProtobuf)), asProtobuf, pods, api.Options[*pointing]{DropManagedFields: drop})
		require.NoError(t, err)
		require.Equal(t, newPod(0).Name, items[0].Metadata.Name)
		require.Equal(t, drop, len(items[0].Metadata.ManagedFields) == 0)
	}
}
