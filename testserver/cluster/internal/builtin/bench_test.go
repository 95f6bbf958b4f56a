package builtin_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/extension"
)

// bodies are objects as a client sends them.
var bodies = []struct{ name, path, body string }{
	{
		"configmap", "/api/v1/namespaces/default/configmaps",
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"generateName":"m-"},"data":{"text":"` + strings.Repeat("x", 1<<10) + `"}}`,
	},
	{
		"pod", "/api/v1/namespaces/default/pods",
		`{"kind":"Pod","apiVersion":"v1","metadata":{"generateName":"p-","labels":{"app":"web","pod-template-hash":"5d8c9"}},
		"spec":{"containers":[{"name":"web","image":"nginx:1.29","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],
		"resources":{"requests":{"cpu":"100m","memory":"64Mi"}},"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
		"volumes":[{"name":"v","emptyDir":{}}]}}`,
	},
	{
		"deployment", "/apis/apps/v1/namespaces/default/deployments",
		`{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"generateName":"d-","labels":{"app":"web"}},"spec":{"replicas":3,
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[
		{"name":"web","image":"nginx:1.29","ports":[{"containerPort":80}]}]}}}}`,
	},
}

// BenchmarkCreate compares creations over HTTP with those of the server without types.
func BenchmarkCreate(b *testing.B) {
	for _, s := range []struct {
		name   string
		server *testserver.Server
	}{
		{"untyped", testserver.New(testserver.Options{})},
		{"typed", testserver.NewExtended(testserver.Options{}, extension.Extension{Resources: builtin.Resources()})},
	} {
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- s.server.Run(ctx) }()
		client := s.server.Client()
		for _, body := range bodies {
			b.Run(body.name+"/"+s.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					res, err := client.Post(s.server.URL()+body.path, "application/json", strings.NewReader(body.body))
					require.NoError(b, err)
					answer, err := io.ReadAll(res.Body)
					require.NoError(b, err)
					require.NoError(b, res.Body.Close())
					require.Equal(b, http.StatusCreated, res.StatusCode, string(answer))
				}
			})
		}
		cancel()
		require.NoError(b, <-done)
	}
}
