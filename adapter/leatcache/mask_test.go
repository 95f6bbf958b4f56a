package leatcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
)

var podFields = map[client.Object][]string{&corev1.Pod{}: {"spec.nodeName", `metadata.labels["app"]`}}

// TestFields reads masked pods, decoded and packed, before and after a change. Other forms of the same objects are
// whole, and a transform cannot remove the mark.
func TestFields(t *testing.T) {
	all(t, func(r *rig, own leatcache.Options) {
		own.Fields = podFields
		c := r.make(own, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
		r.start(c)
		key := client.ObjectKey{Namespace: "a", Name: "two"}
		masked := &corev1.Pod{}
		requireMasked := func() {
			require.NoError(r, c.Get(r.Context(), key, masked))
			require.Equal(r, "n1", masked.Spec.NodeName)
			require.Empty(r, masked.Spec.Containers)
			require.Equal(r, map[string]string{"app": "db"}, masked.Labels)
			fields, ok := codec.MaskOf(masked)
			require.True(r, ok)
			require.Equal(r, `metadata.labels["app"],spec.nodeName`, fields)
		}
		requireMasked()
		err := c.List(r.Context(), &corev1.PodList{}, client.HasLabels{"other"})
		require.ErrorContains(r, err, `the selector "other" needs the label other of Pod, which Options.Fields does not keep`)
		require.ElementsMatch(r, []string{"a/two", "c/one"}, r.names(c, client.MatchingLabels{"app": "db"}))

		whole := &corev1.Pod{}
		require.NoError(r, r.direct.Get(r.Context(), key, whole))
		whole.Labels["other"], whole.Spec.Containers[0].Image = "x", "changed"
		require.NoError(r, r.direct.Update(r.Context(), whole))
		synctest.Wait()
		requireMasked()
		require.Equal(r, whole.ResourceVersion, masked.ResourceVersion)

		generic := &unstructured.Unstructured{}
		generic.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		require.NoError(r, c.Get(r.Context(), key, generic))
		require.Equal(r, "x", generic.GetLabels()["other"])
	})
}

// TestMaskedWrites checks which writes of masked objects are refused without a request, and which reach the server.
func TestMaskedWrites(t *testing.T) {
	run(t, func(r *rig) {
		config := r.cluster.Config()
		httpClient := must.Get(rest.HTTPClientFor(config))(r)
		c := must.Get(leatcache.Options{Fields: podFields}.New(config, cache.Options{HTTPClient: httpClient}))(r)
		r.start(c)
		to := must.Get(leatcache.NewClient(config, client.Options{HTTPClient: httpClient}))(r)
		pod := &corev1.Pod{}
		require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, pod))
		changed := pod.DeepCopy()
		changed.Labels["more"] = "yes"
		refused := func(err error) {
			r.Helper()
			var masked *codec.MaskedError
			require.ErrorAs(r, err, &masked)
			require.Equal(r, `metadata.labels["app"],spec.nodeName`, masked.Fields)
		}
		refused(to.Update(r.Context(), changed.DeepCopy()))
		refused(to.Status().Update(r.Context(), changed.DeepCopy()))
		refused(to.Create(r.Context(), changed.DeepCopy()))
		refused(to.Patch(r.Context(), changed.DeepCopy(), client.MergeFrom(pod)))
		refused(to.Patch(r.Context(), changed.DeepCopy(), client.StrategicMergeFrom(pod)))
		refused(to.Status().Patch(r.Context(), changed.DeepCopy(), client.MergeFrom(pod)))

		alone := must.Get(leatcache.NewClient(config, client.Options{}))(r) // its HTTP client does not know the mask
		refused(alone.Create(r.Context(), changed.DeepCopy()))
		refused(alone.Update(r.Context(), changed.DeepCopy()))
		refused(alone.Status().Update(r.Context(), changed.DeepCopy()))

		require.NoError(r, to.Patch(r.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"raw":"yes"}}}`))))
		whole := &corev1.Pod{}
		require.NoError(r, to.Get(r.Context(), client.ObjectKeyFromObject(pod), whole))
		require.Equal(r, "yes", whole.Labels["raw"])
		whole.Labels["whole"] = "yes"
		require.NoError(r, to.Update(r.Context(), whole))
		require.NoError(r, to.Delete(r.Context(), changed))
	})
}

// TestRefusedFields checks that each wrong entry of Fields is an error that names it.
func TestRefusedFields(t *testing.T) {
	run(t, func(r *rig) {
		for cause, fields := range map[string]map[client.Object][]string{
			`Fields[*v1.Pod]: codec: the path "spec.nodName" in the mask of *v1.Pod: v1.PodSpec has no field "nodName"`: {&corev1.Pod{}: {"spec.nodName"}},
			"Fields[*v1.Pod]: codec: the mask of *v1.Pod has no path":                                                   {&corev1.Pod{}: {}},
			"Fields has two entries for Pod as *v1.Pod":                                                                 {&corev1.Pod{}: {"spec"}, &corev1.Pod{}: {"spec"}},
			"Fields[*unstructured.Unstructured]":                                                                        {&unstructured.Unstructured{}: {"spec"}},
		} {
			_, err := leatcache.Options{Fields: fields}.New(r.cluster.Config(), cache.Options{})
			require.ErrorContains(r, err, cause)
		}
	})
}

// TestGuard runs a program with masks and without, as testkit.GuardMasks does for any program.
func TestGuard(t *testing.T) {
	var network []bool
	testkit.GuardMasks(t, testkit.Options{}, testkit.Masks{"Pod": {"spec.nodeName"}}, func(k *testkit.Kit, masks testkit.Masks) {
		pods := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
		testkit.Create(k, pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: "n1", HostNetwork: true},
		})
		k.Start(func(ctx context.Context) error {
			config := &rest.Config{
				Host: k.Server.URL(), Transport: k.Server.Client().Transport, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
			}
			c, err := leatcache.Options{Fields: map[client.Object][]string{&corev1.Pod{}: masks["Pod"]}}.New(config, cache.Options{})
			if err != nil {
				return err
			}
			done := make(chan error, 1)
			go func() { done <- c.Start(ctx) }()
			pod := &corev1.Pod{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, pod); err != nil {
				return err
			}
			network = append(network, pod.Spec.HostNetwork)
			writer, err := client.New(config, client.Options{})
			if err == nil {
				err = writer.Create(ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Data: map[string]string{"node": pod.Spec.NodeName},
				})
			}
			return errors.Join(err, <-done)
		})
	})
	require.Equal(t, []bool{false, true}, network, "the first run has the mask")
}
