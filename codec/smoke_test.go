package codec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

var pods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

func TestSmoke(t *testing.T) {
	c := codec.For[*corev1.Pod](codec.Options{})
	u := codec.For[*unstructured.Unstructured](codec.Options{})
	body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","managedFields":[{"manager":"x"}],"namespace":"b"}},{"metadata":{"name":"c","namespace":"b"}, "spec":{"nodeName":"n"}}]}`
	var names []string
	m, err := c.DecodeList(strings.NewReader(body), "application/json", pods, api.Options[*corev1.Pod]{DropManagedFields: true}, func(p *corev1.Pod) error {
		names = append(names, p.Kind+p.Namespace+p.Name+p.Spec.NodeName)
		require.Empty(t, p.ManagedFields)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "7", m.ResourceVersion)
	require.Equal(t, []string{"Podba", "Podbcn"}, names)
	m, err = u.DecodeList(strings.NewReader(body), "application/json", api.Resource{}, api.Options[*unstructured.Unstructured]{DropManagedFields: true}, func(p *unstructured.Unstructured) error {
		names = append(names, p.GetKind()+p.GetNamespace()+p.GetName())
		require.Empty(t, p.GetManagedFields())
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "7", m.ResourceVersion)
	require.Equal(t, []string{"Podba", "Podbcn", "Podba", "Podbc"}, names)
}
