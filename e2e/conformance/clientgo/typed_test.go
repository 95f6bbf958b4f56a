package clientgo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

// typed is a group of the clientset.
type typed struct {
	rest.Interface
	scheme *runtime.Scheme
	codec  runtime.ParameterCodec
}

// typedClients returns the REST clients of the clientsets, which encode as the typed methods do.
func typedClients() map[string]typed {
	c := scheme.Scheme
	clients := map[string]typed{
		"apiextensions.k8s.io/v1": {
			apiextensions.NewForConfigOrDie(server.Config).ApiextensionsV1().RESTClient(),
			apiextensionsscheme.Scheme, apiextensionsscheme.ParameterCodec,
		},
	}
	for group, client := range map[string]rest.Interface{
		"v1":                              client.CoreV1().RESTClient(),
		"admissionregistration.k8s.io/v1": client.AdmissionregistrationV1().RESTClient(),
		"apps/v1":                         client.AppsV1().RESTClient(),
		"autoscaling/v1":                  client.AutoscalingV1().RESTClient(),
		"autoscaling/v2":                  client.AutoscalingV2().RESTClient(),
		"batch/v1":                        client.BatchV1().RESTClient(),
		"certificates.k8s.io/v1":          client.CertificatesV1().RESTClient(),
		"coordination.k8s.io/v1":          client.CoordinationV1().RESTClient(),
		"discovery.k8s.io/v1":             client.DiscoveryV1().RESTClient(),
		"events.k8s.io/v1":                client.EventsV1().RESTClient(),
		"flowcontrol.apiserver.k8s.io/v1": client.FlowcontrolV1().RESTClient(),
		"networking.k8s.io/v1":            client.NetworkingV1().RESTClient(),
		"node.k8s.io/v1":                  client.NodeV1().RESTClient(),
		"policy/v1":                       client.PolicyV1().RESTClient(),
		"rbac.authorization.k8s.io/v1":    client.RbacV1().RESTClient(),
		"resource.k8s.io/v1":              client.ResourceV1().RESTClient(),
		"scheduling.k8s.io/v1":            client.SchedulingV1().RESTClient(),
		"storage.k8s.io/v1":               client.StorageV1().RESTClient(),
	} {
		clients[group] = typed{client, c, scheme.ParameterCodec}
	}
	return clients
}

// TestTyped takes an object of each type through its life with the clientset.
func TestTyped(t *testing.T) {
	t.Parallel()
	clients := typedClients()
	for _, s := range allSamples(t) {
		if s.GroupVersionKind().Group == "apiregistration.k8s.io" {
			continue // client-go has no type for it; TestDynamic uses it
		}
		t.Run(s.label(), func(t *testing.T) { // one after the other, because objects name earlier ones
			require.NoError(t, s.missing)
			c, found := clients[s.GetAPIVersion()]
			require.True(t, found, s.GetAPIVersion())
			typedLife(t, c, s)
		})
	}
}

// typedObject is a resource of a typed client.
type typedObject struct {
	typed
	sample
	kind schema.GroupVersionKind
}

func (o typedObject) empty() metav1.Object {
	object, err := o.scheme.New(o.kind)
	if err != nil {
		panic(err)
	}
	return object.(metav1.Object)
}

// do sends a request and decodes the answer.
func (o typedObject) do(t *testing.T, request *rest.Request) (metav1.Object, error) {
	t.Helper()
	into := o.empty()
	err := request.UseProtobufAsDefault().NamespaceIfScoped(o.GetNamespace(), o.namespaced()).Resource(o.mapping.Resource.Resource).
		Do(t.Context()).Into(into.(runtime.Object))
	return into, err
}

func typedLife(t *testing.T, c typed, s sample) {
	t.Helper()
	o := typedObject{c, s, s.GroupVersionKind()}
	name := s.GetName()
	object := o.empty()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(s.Object, object, true))
	object.SetLabels(map[string]string{"by": "create"})

	created := must.Get(o.do(t, c.Post().VersionedParams(&metav1.CreateOptions{FieldValidation: "Strict"}, c.codec).Body(object)))(t)
	require.NotEmpty(t, created.GetUID())
	require.NotEmpty(t, created.GetManagedFields())
	_, err := o.do(t, c.Post().Body(object))
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	options := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	list, err := c.Get().UseProtobufAsDefault().NamespaceIfScoped(s.GetNamespace(), s.namespaced()).Resource(s.mapping.Resource.Resource).
		VersionedParams(&options, c.codec).Do(t.Context()).Get()
	require.NoError(t, err)
	require.Equal(t, 1, meta.LenList(list))
	listed := must.Get(meta.ListAccessor(list))(t)

	options.ResourceVersion, options.Watch, options.AllowWatchBookmarks = listed.GetResourceVersion(), true, true
	watching, err := c.Get().UseProtobufAsDefault().NamespaceIfScoped(s.GetNamespace(), s.namespaced()).Resource(s.mapping.Resource.Resource).
		VersionedParams(&options, c.codec).Watch(t.Context())
	require.NoError(t, err)
	defer watching.Stop()

	typedWrites(t, o)

	background := metav1.DeletePropagationBackground
	err = c.Delete().UseProtobufAsDefault().NamespaceIfScoped(s.GetNamespace(), s.namespaced()).Resource(s.mapping.Resource.Resource).Name(name).
		Body(&metav1.DeleteOptions{PropagationPolicy: &background}).Do(t.Context()).Error()
	require.NoError(t, err)
	requireEnd(t, watching)
}

// typedWrites updates and patches the object in every way.
func typedWrites(t *testing.T, o typedObject) {
	t.Helper()
	name := o.GetName()
	read := must.Get(o.do(t, o.Get().Name(name)))(t)
	old := read.GetResourceVersion()
	read.SetLabels(map[string]string{"by": "update"})
	updated := must.Get(o.do(t, o.Put().Name(name).Body(read)))(t)
	require.NotEqual(t, old, updated.GetResourceVersion())
	require.Equal(t, "update", updated.GetLabels()["by"])
	if o.GetKind() != "EndpointSlice" { // kube-apiserver counts labels of these
		require.Equal(t, read.GetGeneration(), updated.GetGeneration(), "labels do not count as a change of the desired state")
	}
	read.SetResourceVersion(old)
	read.SetLabels(nil)
	_, err := o.do(t, o.Put().Name(name).Body(read))
	require.True(t, apierrors.IsConflict(err), "%v", err)

	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"replace","path":"/metadata/labels/by","value":"patch"}]`,
		types.MergePatchType:          `{"metadata":{"labels":{"by":"patch"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"by":"patch"}}}`,
	} {
		patched, err := o.do(t, o.Patch(kind).Name(name).Body([]byte(patch)))
		require.NoError(t, err, kind)
		require.Equal(t, "patch", patched.GetLabels()["by"], kind)
	}
	apply := must.Get(json.Marshal(map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
		"metadata": map[string]any{"name": name, "labels": map[string]any{"applied": "yes"}},
	}))(t)
	applied, err := o.do(t, o.Patch(types.ApplyPatchType).Name(name).
		VersionedParams(&metav1.PatchOptions{FieldManager: "conformance"}, o.codec).Body(bytes.Clone(apply)))
	require.NoError(t, err)
	require.Equal(t, "yes", applied.GetLabels()["applied"])
	requireRest(t, applied.GetResourceVersion(), func() (metav1.Object, error) {
		return o.do(t, o.Patch(types.ApplyPatchType).Name(name).
			VersionedParams(&metav1.PatchOptions{FieldManager: "conformance"}, o.codec).Body(apply))
	})
}

// requireRest applies until the version stays the same. A controller of the server may still write the status of a new
// object.
func requireRest(t *testing.T, version string, apply func() (metav1.Object, error)) {
	t.Helper()
	harness.Wait(t, "an apply that changes nothing", func() error {
		object, err := apply()
		if err != nil {
			return err
		}
		before := version
		version = object.GetResourceVersion()
		if version != before {
			return fmt.Errorf("version %s after %s", version, before)
		}
		return nil
	})
}

// requireEnd reads a watch until the object is deleted, or waits for its finalizers.
func requireEnd(t *testing.T, w watch.Interface) {
	t.Helper()
	modified := 0
	for event := range w.ResultChan() {
		object, err := meta.Accessor(event.Object)
		require.NoError(t, err, "%v", event)
		switch {
		case event.Type == watch.Modified:
			modified++
		case event.Type == watch.Bookmark:
			continue
		case event.Type != watch.Deleted:
			require.Fail(t, fmt.Sprintf("a %s event", event.Type))
		}
		if event.Type == watch.Deleted || object.GetDeletionTimestamp() != nil {
			require.GreaterOrEqual(t, modified, 3, "the watch shows each write")
			return
		}
	}
	require.Fail(t, "the watch ended")
}
