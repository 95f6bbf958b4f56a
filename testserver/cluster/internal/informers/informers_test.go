package informers_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/internal/extension"
)

var configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

func newServer() (*testserver.Server, *informers.Factory) {
	factory := informers.New()
	return testserver.NewExtended(testserver.Options{}, extension.Extension{
		Connect: factory.Connect, Resources: builtin.Resources(),
	}), factory
}

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"value": value}},
		Data:       map[string]string{"a": value},
	}
}

func TestListersShowEveryWrite(t *testing.T) {
	server, factory := newServer()
	lister := factory.Core().V1().ConfigMaps().Lister()
	_, err := lister.ConfigMaps("default").Get("a")
	require.True(t, apierrors.IsNotFound(err))
	for _, namespace := range []string{"default", "kube-public"} {
		_, err = server.Create(configMaps, configMap(namespace, "a", "1"))
		require.NoError(t, err)
	}
	first, err := lister.ConfigMaps("default").Get("a")
	require.NoError(t, err)
	require.Equal(t, "1", first.Data["a"])
	again, err := lister.ConfigMaps("default").Get("a")
	require.NoError(t, err)
	require.Same(t, first, again, "decoded once")
	all, err := lister.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 2)
	_, err = server.Update(configMaps, configMap("default", "a", "2"))
	require.NoError(t, err)
	selected, err := lister.ConfigMaps("default").List(labels.SelectorFromSet(labels.Set{"value": "2"}))
	require.NoError(t, err)
	require.Len(t, selected, 1)
	require.NoError(t, server.Delete(configMaps, api.Key{Namespace: "default", Name: "a"}))
	_, err = lister.ConfigMaps("default").Get("a")
	require.True(t, apierrors.IsNotFound(err))
}

func TestForResource(t *testing.T) {
	server, factory := newServer()
	_, err := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "none"})
	require.EqualError(t, err, "informers: the server does not have the resource /v1, Resource=none")
	generic, err := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	require.NoError(t, err)
	require.True(t, generic.Informer().HasSynced())
	_, err = server.Create(configMaps, configMap("default", "a", "1"))
	require.NoError(t, err)
	o, err := generic.Lister().ByNamespace("default").Get("a")
	require.NoError(t, err)
	require.Equal(t, "ConfigMap", o.(*corev1.ConfigMap).Kind)
	require.Equal(t, "v1", o.(*corev1.ConfigMap).APIVersion)

	mills := api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills"}
	server.Register(mills)
	_, err = server.Create(mills, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}})
	require.NoError(t, err)
	generic, namespaced, err := factory.ForKind(mills.GroupVersionKind())
	require.NoError(t, err)
	require.False(t, namespaced)
	o, err = generic.Lister().Get("a")
	require.NoError(t, err)
	require.Equal(t, "Mill", o.(*unstructured.Unstructured).GetKind())
}

func TestRefreshCallsHandlers(t *testing.T) {
	server, factory := newServer()
	var seen []string
	informer := factory.Core().V1().ConfigMaps().Informer()
	must.Get(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { seen = append(seen, "add "+o.(*corev1.ConfigMap).Data["a"]) },
		UpdateFunc: func(old, o any) {
			seen = append(seen, "update "+old.(*corev1.ConfigMap).Data["a"]+" "+o.(*corev1.ConfigMap).Data["a"])
		},
		DeleteFunc: func(o any) { seen = append(seen, "delete "+o.(*corev1.ConfigMap).Data["a"]) },
	}))(t)
	factory.Refresh()
	require.Empty(t, seen)
	must.Get(server.Create(configMaps, configMap("default", "a", "1")))(t)
	factory.Refresh()
	factory.Refresh()
	must.Get(server.Update(configMaps, configMap("default", "a", "2")))(t)
	factory.Refresh()
	require.NoError(t, server.Delete(configMaps, api.Key{Namespace: "default", Name: "a"}))
	factory.Refresh()
	require.Equal(t, []string{"add 1", "update 1 2", "delete 2"}, seen)
}

func TestEmpty(t *testing.T) {
	resource := configMaps.GroupVersionResource()
	require.True(t, informers.New().Empty(resource), "without a server")
	server, factory := newServer()
	require.True(t, factory.Empty(resource))
	require.True(t, factory.Empty(schema.GroupVersionResource{Resource: "unknown"}))
	must.Get(server.Create(configMaps, configMap("default", "a", "1")))(t)
	require.False(t, factory.Empty(resource))
	require.NoError(t, server.Delete(configMaps, api.Key{Namespace: "default", Name: "a"}))
	require.True(t, factory.Empty(resource))
}
