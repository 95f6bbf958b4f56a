package testkit_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
)

var guarded = testkit.Masks{
	"Pod":  {"metadata.name", "spec.nodeName", "spec.priority", "status.phase"},
	"Node": {"metadata.name", "spec.unschedulable"},
}

// copying writes a ConfigMap for each pod, with some fields of the pod and of its node.
func copying(k *testkit.Kit, masks testkit.Masks) {
	nodes := api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	configMaps := api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	priority := int32(7)
	testkit.Create(k, nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Unschedulable: true}})
	p := pod()
	p.Labels = map[string]string{"app": "shop"}
	p.Spec.NodeName, p.Spec.Priority, p.Spec.HostNetwork = "n1", &priority, true
	p.Status.Phase = corev1.PodRunning
	testkit.Create(k, pods, p)
	k.Start(func(ctx context.Context) error {
		podMask := must.Get(codec.NewMask[*corev1.Pod](masks["Pod"]...))(k.T)
		nodeMask := must.Get(codec.NewMask[*corev1.Node](masks["Node"]...))(k.T)
		allPods := informer.New(apiclient.NewMasked[*corev1.Pod](k.Client, pods, "", podMask), informer.Options[*corev1.Pod]{})
		allNodes := informer.New(apiclient.NewMasked[*corev1.Node](k.Client, nodes, "", nodeMask), informer.Options[*corev1.Node]{})
		writer := apiclient.NewTyped[*corev1.ConfigMap](k.Client, configMaps, "")
		c := controller.New("copy", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
			pod, ok := allPods.Cache().Get(key)
			<-allNodes.Synced()
			if !ok {
				return controller.Result{}, nil
			}
			data := map[string]string{"phase": string(pod.Status.Phase), "node": pod.Spec.NodeName, "app": pod.Labels["app"]}
			if pod.Spec.Priority != nil {
				data["priority"] = "set"
			}
			if node, ok := allNodes.Cache().Get(api.Key{Name: "n1"}); ok && node.Spec.Unschedulable {
				data["closed"] = "yes"
			}
			_, err := writer.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Data: data}, metav1.CreateOptions{})
			return controller.Result{}, err
		}), controller.Options{})
		c.Watch(controller.For(allPods))
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return allNodes.Run(ctx) })
		group.Go(func() error { return allPods.Run(ctx) })
		group.Go(func() error { return c.Run(ctx) })
		return group.Wait()
	})
	k.Idle()
}

// TestGuardMasks removes each path from masks that suffice. The guard must name it.
func TestGuardMasks(t *testing.T) {
	testkit.GuardMasks(t, testkit.Options{}, guarded, copying)
	require.Empty(t, testkit.CompareMasks(t, guarded, copying))
	for kind, paths := range guarded {
		for i, path := range paths {
			if path == "metadata.name" {
				continue // every mask keeps it, and all labels if it names none
			}
			t.Run(path, func(t *testing.T) {
				less := maps.Clone(guarded)
				less[kind] = slices.Delete(slices.Clone(paths), i, i+1)
				require.Contains(t, testkit.CompareMasks(t, less, copying),
					"the program reads "+path+", which the mask of "+kind+" leaves out")
			})
		}
	}
}

// TestGuardMasksNamesEveryField removes paths of several fields and kinds at once.
func TestGuardMasksNamesEveryField(t *testing.T) {
	got := testkit.CompareMasks(t, testkit.Masks{"Pod": {"spec.nodeName"}, "Node": {"metadata.name"}}, copying)
	require.Equal(t, []string{
		"the program reads spec.unschedulable, which the mask of Node leaves out",
		"the program reads spec.priority, which the mask of Pod leaves out",
		"the program reads status.phase, which the mask of Pod leaves out",
	}, got[1:])
	require.Equal(t, []string{"the server has no Service at the end; GuardMasks needs one of each kind that has a mask"},
		testkit.CompareMasks(t, testkit.Masks{"Pod": guarded["Pod"], "Node": guarded["Node"], "Service": {"spec"}}, copying))
}

// TestGuardMasksNamesTheObject shows what the guard says of an object that depends on a mask.
func TestGuardMasksNamesTheObject(t *testing.T) {
	got := testkit.CompareMasks(t, testkit.Masks{"Pod": guarded["Pod"], "Node": {"metadata.name"}}, copying)
	require.Len(t, got, 2)
	require.Regexp(t, `^ConfigMap default/web depends on the masks: with them it is \{.*\}, and without them \{.*"closed":"yes".*\}$`, got[0])
}
