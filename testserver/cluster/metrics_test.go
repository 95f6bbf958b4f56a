package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

func TestRunningPodsHaveMetrics(t *testing.T) {
	const root = "/apis/metrics.k8s.io/v1beta1"
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{Nodes: &cluster.Nodes{Count: 1, Start: 10 * time.Second}}}, func(w world) {
		list := func(c *cluster.Cluster, path string) string {
			code, body := answer(w.T, c, root+path)
			require.Equal(w, 200, code, body)
			return body
		}
		for name, usage := range map[string]string{"half": "", "set": "cpu=1500m, memory=wrong"} {
			p := pod(name, "nginx")
			p.Labels["name"] = name
			p.Annotations = map[string]string{"leat.dev/usage": usage}
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("64Mi")}
			must.Get(w.CoreV1().Pods("default").Create(w.ctx, p, metav1.CreateOptions{}))(w)
		}
		w.pass(time.Second)
		require.Contains(w, list(w.Cluster, "/pods"), `"items":[]`, "no pod runs yet")
		w.pass(time.Minute)
		pods := list(w.Cluster, "/namespaces/default/pods")
		require.Contains(w, pods, `"containers":[{"name":"main","usage":{"cpu":"100m","memory":"32Mi"}}]`)
		require.Contains(w, pods, `"containers":[{"name":"main","usage":{"cpu":"1500m","memory":"32Mi"}}]`)
		require.NotContains(w, list(w.Cluster, "/pods?labelSelector=name%3Dset&limit=1"), `"100m"`)
		require.Contains(w, list(w.Cluster, "/namespaces/other/pods"), `"items":[]`)
		require.Contains(w, list(w.Cluster, "/nodes/node-0"), `"usage":{"cpu":"1600m","memory":"64Mi"}`)
		require.Contains(w, list(w.Cluster, ""), `"kind":"PodMetrics","verbs":["get","list"]`)
		require.Equal(w, "True Local Local APIServices are always available", condition(w.T, w.Cluster, "v1beta1.metrics.k8s.io"))

		for path, want := range map[string]int{
			"/nodes/other": http.StatusNotFound, "/nodes?watch=1": http.StatusMethodNotAllowed, "/things": http.StatusNotFound,
		} {
			code, body := answer(w.T, w.Cluster, root+path)
			require.Equal(w, want, code, body)
		}
		fork := w.StartFork(w)
		require.NoError(w, w.CoreV1().Pods("default").Delete(w.ctx, "set", metav1.DeleteOptions{}))
		w.pass(time.Minute)
		require.NotContains(w, list(w.Cluster, "/pods"), "1500m")
		require.Contains(w, list(fork, "/pods"), "1500m", "a fork reads its own pods")
	})
}

func TestMetricsNeedSimulatedNodes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster.Cluster) {
		for path, want := range map[string]int{
			"/apis/metrics.k8s.io": 404, "/api/v1/componentstatuses?watch=1": 405, "/api/v1/componentstatuses/x?watch=1": 404,
		} {
			code, body := answer(t, c, path)
			require.Equal(t, want, code, body)
		}
	})
}
