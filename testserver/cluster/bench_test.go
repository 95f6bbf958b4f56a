package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
)

// BenchmarkCreate sends creations, on the typed server and on the untyped one below it.
func BenchmarkCreate(b *testing.B) {
	configMap := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "m-"}, Data: map[string]string{"text": strings.Repeat("x", 1<<10)},
	}
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/main:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
	}
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "d-", Labels: map[string]string{"app": "web"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
	for _, c := range []struct {
		name, path string
		object     any
	}{
		{"configmaps", "/api/v1/namespaces/default/configmaps", configMap},
		{"pods", "/api/v1/namespaces/default/pods", pod},
		{"deployments", "/apis/apps/v1/namespaces/default/deployments", deployment},
	} {
		body, err := json.Marshal(c.object)
		require.NoError(b, err)
		typed, err := cluster.New(cluster.Options{})
		require.NoError(b, err)
		run(b, typed.Server)
		b.Run(c.name+"/typed", func(b *testing.B) { create(b, typed.Server, c.path, body) })
		untyped := testserver.New(testserver.Options{StrictNamespaces: true})
		run(b, untyped)
		b.Run(c.name+"/untyped", func(b *testing.B) { create(b, untyped, c.path, body) })
	}
}

// run runs the server until the benchmark with all its parts ends. With -count, each part runs several times on it: a
// client must not dial between two calls of Run, where nothing listens.
func run(b *testing.B, s *testserver.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-ended)
	})
}

func create(b *testing.B, s *testserver.Server, path string, body []byte) {
	client := s.Client()
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		res, err := client.Post(s.URL()+path, "application/json", bytes.NewReader(body))
		require.NoError(b, err)
		require.Equal(b, http.StatusCreated, res.StatusCode)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(b, err)
		require.NoError(b, res.Body.Close())
	}
}
