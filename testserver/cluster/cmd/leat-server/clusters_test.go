package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// send sends a request that must succeed, and returns the answer.
func send(t *testing.T, client *http.Client, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Less(t, answer.StatusCode, 300, string(text))
	return string(text)
}

// state returns a state with 20 definitions and 500 objects.
func state(t *testing.T) string {
	var items []any
	for i := range 20 {
		plural := fmt.Sprintf("gadget%ds", i)
		items = append(items, map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + ".leat.example"},
			"spec": map[string]any{
				"group": "leat.example", "scope": "Namespaced",
				"names": map[string]any{"plural": plural, "kind": fmt.Sprint("Gadget", i)},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "properties": map[string]any{"spec": map[string]any{
							"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}},
						}},
					}},
				}},
			},
		})
	}
	for i := range 500 {
		items = append(items, gadget(i%20, fmt.Sprint("o", i)))
	}
	encoded, err := json.Marshal(map[string]any{"kind": "List", "apiVersion": "v1", "items": items})
	require.NoError(t, err)
	return string(encoded)
}

func gadget(kind int, name string) map[string]any {
	return map[string]any{
		"apiVersion": "leat.example/v1", "kind": fmt.Sprint("Gadget", kind),
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": kind},
	}
}

// TestClusters uses a cluster below /clusters as client-go does: discovery, OpenAPI, watches and users. It ends while a
// watch is open.
func TestClusters(t *testing.T) {
	config, admin := startServer(t, "--envtest", "--admin", "127.0.0.1:0")
	ctx := t.Context()
	send(t, http.DefaultClient, "PUT", admin+"/clusters/base", "")
	send(t, http.DefaultClient, "PUT", admin+"/clusters/base/state", state(t))
	send(t, http.DefaultClient, "PUT", admin+"/clusters/a?from=base", "")
	written, err := clientcmd.RESTConfigFromKubeConfig([]byte(send(t, http.DefaultClient, "GET", admin+"/clusters/a/kubeconfig", "")))
	require.NoError(t, err)
	require.Equal(t, config.Host+"/clusters/a", written.Host)
	a, err := kubernetes.NewForConfig(written)
	require.NoError(t, err)
	main, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	resources, err := a.Discovery().ServerResourcesForGroupVersion("leat.example/v1")
	require.NoError(t, err)
	require.Len(t, resources.APIResources, 20)

	for _, group := range []string{"leat.example", ""} {
		spec, err := openapi3.NewRoot(a.Discovery().OpenAPIV3()).GVSpec(schema.GroupVersion{Group: group, Version: "v1"})
		require.NoError(t, err)
		require.NotEmpty(t, spec.Paths.Paths, group)
	}
	old, err := a.Discovery().RESTClient().Get().AbsPath("/openapi/v3/api/v1").Param("hash", "OLD").DoRaw(ctx)
	require.NoError(t, err, "a redirect")
	require.Contains(t, string(old), "openapi")
	issuer, err := a.Discovery().RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	require.NoError(t, err)
	require.Contains(t, string(issuer), `"jwks_uri":"`+written.Host+`/openid/v1/jwks"`)

	maps := a.CoreV1().ConfigMaps("default")
	events, err := maps.Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, watch.Added, (<-events.ResultChan()).Type)
	_, err = main.CoreV1().ConfigMaps("default").Get(ctx, "m", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	page, err := maps.List(ctx, metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Empty(t, page.Continue)

	anonymous := rest.AnonymousClientConfig(written)
	nobody, err := kubernetes.NewForConfig(anonymous)
	require.NoError(t, err)
	_, err = nobody.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	send(t, http.DefaultClient, "DELETE", admin+"/clusters/a", "")
	_, open := <-events.ResultChan()
	require.False(t, open)
	_, err = maps.Get(ctx, "m", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	require.ErrorContains(t, err, `clusters "a" not found`)
	send(t, http.DefaultClient, "PUT", admin+"/clusters/a", "")
	maps = main.CoreV1().ConfigMaps("default")
	_, err = maps.Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestAThousandClusters measures clusters that are created, written to and deleted over HTTP.
func TestAThousandClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const n = 1000
	config, admin := startServer(t, "--envtest", "--max-clusters", "1001", "--admin", "127.0.0.1:0")
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	write := func(cluster string) {
		for i := range 5 {
			body, err := json.Marshal(gadget(i, "new"))
			require.NoError(t, err)
			send(t, client, "POST", fmt.Sprintf("%s/clusters/%s/apis/leat.example/v1/namespaces/default/gadget%ds", config.Host, cluster, i), string(body))
		}
	}
	send(t, http.DefaultClient, "PUT", admin+"/clusters/base", "")
	send(t, http.DefaultClient, "PUT", admin+"/clusters/base/state", state(t))
	send(t, http.DefaultClient, "PUT", admin+"/clusters/first?from=base", "")
	write("first") // builds what all forks share
	send(t, http.DefaultClient, "DELETE", admin+"/clusters/first", "")
	before, goroutines := heap(), runtime.NumGoroutine()
	measure := func(what string, do func(name string)) {
		start := time.Now()
		for i := range n {
			do(fmt.Sprint("c", i))
		}
		took := time.Since(start) / n
		t.Logf("%s: %v, %d bytes and %d goroutines each; the process has %d MB", what, took, (heap()-before)/n,
			(runtime.NumGoroutine()-goroutines)/n, heap()>>20)
	}
	measure("created", func(name string) { send(t, http.DefaultClient, "PUT", admin+"/clusters/"+name+"?from=base", "") })
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+4*n)
	measure("after 5 writes", write)
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+10*n)
	require.Less(t, heap(), int64(300<<20))
	measure("deleted", func(name string) { send(t, http.DefaultClient, "DELETE", admin+"/clusters/"+name, "") })
	require.Less(t, heap()-before, int64(5<<20))
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+5)
}
