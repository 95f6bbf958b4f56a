package cluster_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
)

// TestEqualRequestsGetEqualBytes sends the same requests to clusters with equal options. Service accounts are off,
// because their controller creates objects at the same time as others, so the order of UIDs would be another one.
func TestEqualRequestsGetEqualBytes(t *testing.T) {
	const (
		core   = "/api/v1/namespaces/default/"
		wrong  = `"labels":{"z z":"1","a a":"2","m m":"3"}`
		spec   = `"spec":{"containers":[{"name":"c","image":"i"}]}`
		cow    = `"group":"leat.example","scope":"Namespaced","names":{"plural":"cows","kind":"Cow"}`
		schema = `{"type":"object","properties":{"z":{"type":"x"},"a":{"type":"x"},"m":{"type":"x"},"q":{"type":"x"}}}`
		good   = `{"type":"object","required":["z","a","m"],"properties":{"z":{"type":"string"},"a":{"type":"string"},"m":{"type":"string"}}}`
	)
	crd := func(schema string) string {
		return `{"metadata":{"name":"cows.leat.example"},"spec":{` + cow +
			`,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
	}
	requests := []struct{ method, path, body string }{
		{"POST", core + "pods", `{"metadata":{"generateName":"a-"},` + spec + `}`},
		{"POST", core + "pods", `{"metadata":{"name":"b",` + wrong + `},` + spec + `}`},
		{"POST", core + "services", `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`},
		{"POST", core + "configmaps", `{"metadata":{"name":"m"},"data":{"z":"1","a":"2","m":"3"}}`},
		{"PATCH", core + "configmaps/m", `{"metadata":{` + wrong + `}}`},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(schema)},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(good)},
		{"POST", "/apis/leat.example/v1/namespaces/default/cows", `{"apiVersion":"leat.example/v1","kind":"Cow","metadata":{"name":"c"},"y":1,"x":2}`},
		{"POST", "/apis/leat.example/v1/namespaces/default/cows", `{"apiVersion":"leat.example/v1","kind":"Cow","metadata":{"name":"C_",` + wrong + `}}`},
		{"DELETE", core + "configmaps/m", ""},
		{"GET", "/api/v1/pods", ""},
		{"GET", "/api/v1/services", ""},
		{"GET", "/apis", ""},
		{"GET", "/apis/leat.example/v1", ""},
		{"GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ""},
		{"GET", "/api/v1/configmaps", ""},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", ""},
		{"GET", "/openapi/v3", ""},
		{"GET", "/openapi/v3/apis/leat.example/v1", ""},
	}
	answers := func() (out []string) {
		synctest.Test(t, func(t *testing.T) {
			c := cluster.Start(t, cluster.Options{Server: testserver.Options{Seed: 7}, RBAC: true, Behaviour: cluster.Behaviour{NoServiceAccounts: true}})
			synctest.Wait()
			for _, r := range requests {
				request := must.Get(http.NewRequestWithContext(t.Context(), r.method, c.Server.URL()+r.path, strings.NewReader(r.body)))(t)
				request.Header.Set("Authorization", "Bearer "+c.Config().BearerToken)
				if request.Header.Set("Content-Type", "application/json"); r.method == "PATCH" {
					request.Header.Set("Content-Type", "application/merge-patch+json")
				}
				answer := must.Get(c.Server.Client().Do(request))(t)
				body := must.Get(io.ReadAll(answer.Body))(t)
				answer.Body.Close()
				out = append(out, fmt.Sprintf("%s %s: %s\n%s", r.method, r.path, answer.Status, body))
				synctest.Wait()
			}
		})
		return out
	}
	first := answers()
	for range 3 {
		for i, again := range answers() {
			require.Equal(t, first[i], again)
		}
	}
}
