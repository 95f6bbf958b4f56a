package cluster_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

// gadgets returns n definitions with a schema.
func gadgets(n int) (out []*apiextensionsv1.CustomResourceDefinition) {
	for i := range n {
		crd := wheels("v1", true)
		name := fmt.Sprintf("gadget%ds", i)
		crd.Name, crd.Spec.Names.Plural, crd.Spec.Names.Kind = name+".leat.example", name, fmt.Sprint("Gadget", i)
		for j := range crd.Spec.Versions {
			crd.Spec.Versions[j].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}},
				},
			}
		}
		out = append(out, crd)
	}
	return out
}

func gadget(i int) api.Resource {
	return api.Resource{
		Group: "leat.example", Version: "v1", Kind: fmt.Sprint("Gadget", i), Plural: fmt.Sprintf("gadget%ds", i), Namespaced: true,
	}
}

// prepared returns a cluster with 20 definitions and 500 objects, without controllers and with RBAC, as in envtest.
func prepared(t testing.TB, behaviour cluster.Behaviour) *cluster.Cluster {
	t.Helper()
	c := must.Get(cluster.New(cluster.Options{CRDs: gadgets(20), RBAC: true, Behaviour: behaviour}))(t)
	for i := range 500 {
		meta := map[string]any{"name": fmt.Sprint("o", i), "namespace": "default"}
		must.Get(c.Server.Create(gadget(i%20), map[string]any{"metadata": meta, "spec": map[string]any{"size": i}}))(t)
	}
	return c
}

var quiet = cluster.Behaviour{NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestAThousandForks measures forks that do nothing, and forks that are written to. Their memory returns.
func TestAThousandForks(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, c := range []struct {
		name       string
		behaviour  cluster.Behaviour
		n          int
		goroutines int // of a fork that was written to
	}{{"as in envtest", quiet, 1000, 8}, {"with controllers", cluster.Behaviour{}, 50, 60}} {
		t.Run(c.name, func(t *testing.T) { measureForks(t, prepared(t, c.behaviour), c.n, c.goroutines) })
	}
}

func measureForks(t *testing.T, c *cluster.Cluster, n, most int) {
	writeTo(t, c.Fork()) // builds what all forks share
	ctx, cancel := context.WithCancel(t.Context())
	before, goroutines, start := heap(), runtime.NumGoroutine(), time.Now()
	each := func() (bytes int64, started int) {
		return (heap() - before) / int64(n), (runtime.NumGoroutine() - goroutines) / n
	}
	var running sync.WaitGroup
	forks := make([]*cluster.Cluster, n)
	for i := range forks {
		forks[i] = c.Fork()
	}
	took := time.Since(start) / time.Duration(n)
	size, _ := each()
	t.Logf("%d forks: %v and %d bytes each", n, took, size)
	require.Less(t, size, int64(100<<10))
	for _, f := range forks {
		running.Go(func() { _ = f.Run(ctx) }) // other tests require that it ends without an error
	}
	size, started := each()
	t.Logf("running: %d bytes and %d goroutines each", size, started)
	require.LessOrEqual(t, started, 4)
	start = time.Now()
	for _, f := range forks {
		writeTo(t, f)
	}
	took = time.Since(start) / time.Duration(n)
	size, started = each()
	t.Logf("after 5 writes: %v, %d bytes and %d goroutines each; the process has %d MB", took, size, started, heap()>>20)
	require.Less(t, heap(), int64(2<<30))
	require.LessOrEqual(t, started, most)
	gone := weak.Make(forks[n/2].Server)
	cancel()
	running.Wait()
	clear(forks)
	require.Less(t, heap()-before, int64(5<<20))
	require.Nil(t, gone.Value())
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+5)
	runtime.KeepAlive(c)
}

// writeTo sends writes to a cluster.
func writeTo(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for i := range 5 {
		must.Get(c.Server.Create(gadget(i), map[string]any{"metadata": map[string]any{"name": "new", "namespace": "default"}}))(t)
	}
}

// TestForkInABubble forks a cluster from outside of the bubble, and compares what depends on more than objects.
func TestForkInABubble(t *testing.T) {
	base := must.Get(cluster.New(cluster.Options{CRDs: gadgets(2), RBAC: true}))(t)
	ip := "10.0.0.99"
	service := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	bob := base.ConfigFor(cluster.User{Name: "bob"}).BearerToken
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		a, b := base.StartFork(t), base.StartFork(t)
		ca, cb := kubernetes.NewForConfigOrDie(a.Config()), kubernetes.NewForConfigOrDie(b.Config())
		create := func(c kubernetes.Interface, s *corev1.Service) error {
			_, err := c.CoreV1().Services("default").Create(ctx, s, metav1.CreateOptions{})
			return err
		}
		require.NoError(t, create(ca, service("s")))
		require.ErrorContains(t, create(ca, service("other")), "already allocated")
		require.NoError(t, create(cb, service("other")), "the forks have addresses of their own")
		c := a.StartFork(t)
		cc := kubernetes.NewForConfigOrDie(c.Config())
		require.ErrorContains(t, create(cc, service("other")), "already allocated", "a fork knows the addresses of its parent")

		// The behaviour runs in each fork.
		_, err := ca.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		_, err = ca.CoreV1().ServiceAccounts("x").Get(ctx, "default", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = cb.CoreV1().Namespaces().Get(ctx, "x", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
		require.NoError(t, ca.CoreV1().Namespaces().Delete(ctx, "x", metav1.DeleteOptions{}))
		synctest.Wait()
		_, err = ca.CoreV1().Namespaces().Get(ctx, "x", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))

		// Definitions: a fork has them, and another one does not see its own.
		require.NoError(t, a.Server.Delete(definitionResource, api.Key{Name: "gadget0s.leat.example"}))
		_, err = a.Server.Create(definitionResource, wheels("v1", true))
		require.NoError(t, err)
		synctest.Wait()
		for _, c := range []struct {
			client   kubernetes.Interface
			resource string
		}{{ca, "gadget1s,wheels"}, {cb, "gadget0s,gadget1s"}} {
			list := must.Get(c.client.Discovery().ServerResourcesForGroupVersion("leat.example/v1"))(t)
			var names []string
			for _, r := range list.APIResources {
				names = append(names, r.Name)
			}
			require.Equal(t, c.resource, strings.Join(names, ","))
			document := must.Get(c.client.Discovery().OpenAPISchema())(t)
			require.Equal(t, c.client == ca, strings.Contains(document.String(), "Wheel"))
		}
		_, err = b.Server.Create(gadget(0), map[string]any{
			"metadata": map[string]any{"name": "g", "namespace": "default"}, "spec": map[string]any{"size": "large"},
		})
		require.ErrorContains(t, err, "spec.size")

		// Users.
		config := b.Config()
		config.BearerToken = bob
		_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		require.ErrorContains(t, err, `User "bob" cannot list`)
	})
}

// TestForkWithWebhooks forks a cluster whose admission and whose definition call webhooks.
func TestForkWithWebhooks(t *testing.T) {
	crd := wheels("v1", true)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	e := &cluster.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
	_, err := e.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Stop()) }()
	none := admissionregistrationv1.SideEffectClassNone
	client := kubernetes.NewForConfigOrDie(e.Config)
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook.leat.example", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/validate")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	user, err := e.AddUser(cluster.User{Name: "ann", Groups: []string{"system:masters"}}, nil)
	require.NoError(t, err)

	f := e.Fork(t)
	require.NotEqual(t, e.Config.Host, f.Config.Host)
	config := user.Config()
	config.Host = f.Config.Host
	fork := kubernetes.NewForConfigOrDie(config)
	_, err = fork.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.ErrorContains(t, err, `failed calling webhook "hook.leat.example"`)
	require.NoError(t, fork.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "hook", metav1.DeleteOptions{}))
	_, err = fork.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	wheel := f.Cluster.Server
	resource := api.Resource{Group: "leat.example", Version: "v1", Kind: "Wheel", Plural: "wheels", Namespaced: true}
	_, err = wheel.Create(resource, map[string]any{"metadata": map[string]any{"name": "w", "namespace": "default"}})
	require.NoError(t, err)
	err = fork.RESTClient().Get().AbsPath("/apis/leat.example/v2/namespaces/default/wheels/w").Do(t.Context()).Error()
	require.ErrorContains(t, err, "conversion webhook for leat.example/v1, Kind=Wheel failed")
	require.NoError(t, f.Stop())
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "m", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "the parent goes on")
	require.Panics(t, func() { e.Cluster.Server.Fork() })
}
