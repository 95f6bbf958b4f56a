package cluster_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

var (
	apiServices = api.Resource{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Plural: "apiservices"}
	definitions = api.Resource{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
	}
)

const gearDefinition = `{"metadata":{"name":"gears.x.example"},"spec":{"group":"x.example","scope":"Namespaced",
	"names":{"plural":"gears","kind":"Gear"},"versions":[
	{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
	{"name":"v1beta1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(text), &u.Object))
	return u
}

// condition returns status, reason and message of the first condition of an APIService.
func condition(t *testing.T, c *cluster.Cluster, name string) string {
	u, err := c.Server.Get(apiServices, api.Key{Name: name})
	require.NoError(t, err)
	all, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	require.NoError(t, err)
	require.Len(t, all, 1)
	first := all[0].(map[string]any)
	return strings.Join([]string{first["status"].(string), first["reason"].(string), first["message"].(string)}, " ")
}

// answer returns the code and the body of an answer.
func answer(t *testing.T, c *cluster.Cluster, path string) (int, string) {
	client := c.Server.Client()
	defer client.CloseIdleConnections()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, c.Server.URL()+path, nil))(t)
	req.Header.Set("Authorization", "Bearer "+c.Config().BearerToken)
	res := must.Get(client.Do(req))(t)
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(body)
}

// transition returns the time of the condition of an APIService.
func transition(t *testing.T, c *cluster.Cluster, name string) any {
	t.Helper()
	u, err := c.Server.Get(apiServices, api.Key{Name: name})
	require.NoError(t, err)
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	require.NoError(t, err)
	require.Len(t, conditions, 1)
	return conditions[0].(map[string]any)["lastTransitionTime"]
}

// inCluster runs a function in a bubble with a running cluster.
func inCluster(t *testing.T, run func(*testing.T, *cluster.Cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := must.Get(cluster.New(cluster.Options{}))(t)
		fixture.Start(t, c.Run)
		run(t, c)
	})
}

func TestEveryVersionHasAnAPIService(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster.Cluster) {
		require.Equal(t, "True Local Local APIServices are always available", condition(t, c, "v1."))
		_, err := c.Server.Create(definitions, parsed(t, gearDefinition))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "True Local Local APIServices are always available", condition(t, c, "v1.x.example"))
		_, err = c.Server.Get(apiServices, api.Key{Name: "v1beta1.x.example"})
		require.ErrorContains(t, err, "not found", "the version is not served")

		require.NoError(t, c.Server.Delete(apiServices, api.Key{Name: "v1.x.example"}))
		require.NoError(t, c.Server.Delete(apiServices, api.Key{Name: "v1.apps"}))
		synctest.Wait()
		_, err = c.Server.Get(apiServices, api.Key{Name: "v1.x.example"})
		require.NoError(t, err, "restored")
		_, err = c.Server.Get(apiServices, api.Key{Name: "v1.apps"})
		require.ErrorContains(t, err, "not found", "created only when a server starts")

		require.NoError(t, c.Server.Delete(definitions, api.Key{Name: "gears.x.example"}))
		synctest.Wait()
		_, err = c.Server.Get(apiServices, api.Key{Name: "v1.x.example"})
		require.ErrorContains(t, err, "not found")
	})
}

func TestGroupsOfServicesAreUnavailable(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster.Cluster) {
		code, _ := answer(t, c, "/apis/metrics.example/v1/things")
		require.Equal(t, 404, code)
		must.Get(c.Server.Create(apiServices, parsed(t, `{"metadata":{"name":"v1.metrics.example"},"spec":{"group":"metrics.example",
			"version":"v1","groupPriorityMinimum":100,"versionPriority":10,"insecureSkipTLSVerify":true,
			"service":{"namespace":"default","name":"m"}}}`)))(t)
		synctest.Wait()
		require.Equal(t, `False ServiceNotFound service/m in "default" is not present`, condition(t, c, "v1.metrics.example"))
		for _, path := range []string{"/apis/metrics.example/v1", "/apis/metrics.example/v1/things", "/apis/metrics.example/v1/namespaces/a/b/c"} {
			code, body := answer(t, c, path)
			require.Equal(t, 503, code, path)
			require.Equal(t, "service unavailable\n", body)
		}
		code, body := answer(t, c, "/apis/metrics.example")
		require.Equal(t, 200, code)
		require.Contains(t, body, `"preferredVersion":{"groupVersion":"metrics.example/v1","version":"v1"}`)
		_, body = answer(t, c, "/apis")
		require.Contains(t, body, `"name":"metrics.example"`)

		since := transition(t, c, "v1.metrics.example")
		<-time.After(time.Minute)
		services := api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}
		must.Get(c.Server.Create(services, parsed(t, `{"metadata":{"name":"m","namespace":"default"},"spec":{"ports":[{"port":80}]}}`)))(t)
		synctest.Wait()
		require.Equal(t, `False ServicePortError service/m in "default" is not listening on port 443`, condition(t, c, "v1.metrics.example"))
		require.Equal(t, since, transition(t, c, "v1.metrics.example"), "another reason is no transition")
		must.Get(c.Server.Edit(services, api.Key{Namespace: "default", Name: "m"}, func(u *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"port": int64(443)}}, "spec", "ports"))
		}))(t)
		synctest.Wait()
		require.Equal(t, `False EndpointsNotFound cannot find endpointslices for service/m in "default"`, condition(t, c, "v1.metrics.example"))

		require.NoError(t, c.Server.Delete(apiServices, api.Key{Name: "v1.metrics.example"}))
		synctest.Wait()
		code, _ = answer(t, c, "/apis/metrics.example/v1")
		require.Equal(t, 404, code)
	})
}
