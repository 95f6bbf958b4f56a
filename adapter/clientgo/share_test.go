package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/testkit"
)

// TestATransformChangesOneObject changes the labels of objects whose labels are equal.
func TestATransformChangesOneObject(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		for _, name := range []string{"c", "d", "e"} {
			p := pod(name)
			p.Labels = map[string]string{"app": "the-same-long-value-for-all-of-them"}
			testkit.Create(k, pods, p)
		}
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		require.NoError(k, i.SetTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod)
			if p.Labels == nil {
				p.Labels = map[string]string{}
			}
			p.Labels["me"] = p.Name
			return p, nil
		}))
		start(k, i)
		require.Len(k, i.GetStore().List(), 5)
		for _, obj := range i.GetStore().List() {
			require.Equal(k, obj.(*corev1.Pod).Name, obj.(*corev1.Pod).Labels["me"])
		}
	})
}
