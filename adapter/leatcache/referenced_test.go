package leatcache_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/referenced"
)

// byConfigMaps makes ConfigMaps refer to the Secrets whose names are their keys.
func byConfigMaps(live bool) map[client.Object]leatcache.References {
	return map[client.Object]leatcache.References{&corev1.Secret{}: {
		By: map[client.Object]func(client.Object) []client.ObjectKey{
			&corev1.ConfigMap{}: func(o client.Object) (keys []client.ObjectKey) {
				for name := range o.(*corev1.ConfigMap).Data {
					keys = append(keys, client.ObjectKey{Namespace: o.GetNamespace(), Name: name})
				}
				return keys
			},
		},
		ReadLive: live,
	}}
}

// TestReferenced reads Secrets of which one is referenced, in three forms, before and after it is referenced.
func TestReferenced(t *testing.T) {
	all(t, func(r *rig, own leatcache.Options) {
		for _, name := range []string{"used", "other"} {
			require.NoError(r, r.direct.Create(r.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"key": []byte(name)},
			}))
		}
		refers := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "refers"}, Data: map[string]string{"used": ""},
		}
		require.NoError(r, r.direct.Create(r.Context(), refers))
		own.Referenced = byConfigMaps(false)
		c := r.make(own, cache.Options{})
		r.start(c)
		used, other := client.ObjectKey{Namespace: "default", Name: "used"}, client.ObjectKey{Namespace: "default", Name: "other"}
		var secret corev1.Secret
		generic := &unstructured.Unstructured{}
		generic.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		for _, out := range []client.Object{&secret, generic} {
			require.NoError(r, c.Get(r.Context(), used, out))
			var unreferenced *referenced.NotReferencedError
			require.ErrorAs(r, c.Get(r.Context(), other, out), &unreferenced)
		}
		require.Equal(r, "used", string(secret.Data["key"]))
		require.ErrorContains(r, c.List(r.Context(), &corev1.SecretList{}), "leatcache: secrets are cached only if they are referenced")
		require.ErrorContains(r, c.IndexField(r.Context(), &corev1.Secret{}, "type", func(client.Object) []string { return nil }), "lists of them are refused")
		for _, o := range []client.Object{&corev1.Secret{}, refers} {
			require.ErrorContains(r, c.RemoveInformer(r.Context(), o), "cannot be removed, because Options.Referenced uses it")
		}
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
		require.NoError(r, c.List(r.Context(), metadata))
		require.Len(r, metadata.Items, 2)

		var added []string
		informer := must.Get(c.GetInformer(r.Context(), &corev1.Secret{}))(r)
		must.Get(informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
			added = append(added, o.(*corev1.Secret).Name)
		}}))(r)
		refers.Data = map[string]string{"other": "", "missing": ""}
		require.NoError(r, r.direct.Update(r.Context(), refers))
		synctest.Wait()
		require.Equal(r, []string{"used", "other"}, added)
		require.NoError(r, c.Get(r.Context(), other, &secret))
		require.True(r, apierrors.IsNotFound(c.Get(r.Context(), client.ObjectKey{Namespace: "default", Name: "missing"}, &secret)))
		require.ErrorContains(r, c.Get(r.Context(), used, &secret), "no object refers to it")

		own.Referenced = byConfigMaps(true)
		live := r.make(own, cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{"default": {}, "a": {}}},
		}})
		r.start(live)
		for _, key := range []client.ObjectKey{used, other} {
			require.NoError(r, live.Get(r.Context(), key, &secret))
			require.Equal(r, key.Name, string(secret.Data["key"]))
		}
		require.True(r, apierrors.IsNotFound(live.Get(r.Context(), client.ObjectKey{Namespace: "a", Name: "x"}, &secret)))
	})
}

// TestRefusedReferences checks that each wrong entry of Referenced is an error that names it.
func TestRefusedReferences(t *testing.T) {
	run(t, func(r *rig) {
		itself := byConfigMaps(false)
		for object := range itself {
			itself[object].By[&corev1.Secret{}] = nil
		}
		twice := byConfigMaps(false)
		for _, references := range byConfigMaps(false) {
			twice[&corev1.Secret{}] = references
		}
		for cause, wrong := range map[string]map[client.Object]leatcache.References{
			"Referenced[*v1.Secret].By is empty":                                  {&corev1.Secret{}: {}},
			"Referenced has two entries for Secret":                               twice,
			"Referenced[*v1.Secret].By[*v1.Secret]: Secret are in Referenced too": itself,
		} {
			_, err := leatcache.Options{Referenced: wrong}.New(r.cluster.Config(), cache.Options{})
			require.ErrorContains(r, err, cause)
		}
	})
}
