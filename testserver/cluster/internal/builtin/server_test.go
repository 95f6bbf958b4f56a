package builtin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
)

// bubble is a running server of built-in resources, on fake time.
type bubble struct {
	*testing.T
	server *testserver.Server
}

func inBubble(t *testing.T, test func(bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := bubble{t, testserver.NewExtended(testserver.Options{}, extension.Extension{Resources: builtin.Resources()})}
		fixture.Start(t, b.server.Run)
		test(b)
	})
}

// send sends a request and returns the parsed answer.
func (b bubble) send(method, path, body string) (code int, answer object.Tree) {
	request := must.Get(http.NewRequestWithContext(b.Context(), method, b.server.URL()+path, strings.NewReader(body)))(b)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response := must.Get(b.server.Client().Do(request))(b)
	encoded := must.Get(io.ReadAll(response.Body))(b)
	require.NoError(b, response.Body.Close())
	require.NoError(b, json.Unmarshal(encoded, &answer), string(encoded))
	return response.StatusCode, answer
}

// must sends a request that succeeds.
func (b bubble) must(method, path, body string) object.Tree {
	code, answer := b.send(method, path, body)
	require.Less(b, code, 300, "%v", answer)
	return answer
}

func TestEventsOfBothGroupsAreOneCollection(t *testing.T) {
	inBubble(t, func(b bubble) {
		const core, group = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
		b.must("POST", core, `{"metadata":{"name":"a"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},
			"reason":"Killed","message":"gone","type":"Normal"}`)
		seen := b.must("GET", group+"/a", "")
		require.Equal(t, "events.k8s.io/v1", seen["apiVersion"])
		require.Equal(t, "gone", seen["note"])
		require.Equal(t, "p", object.TextAt(seen, "regarding", "name"))

		b.must("POST", group, `{"metadata":{"name":"b"},"regarding":{"kind":"Pod","name":"q","namespace":"default"},"reason":"R",
			"action":"A","type":"Normal","reportingController":"c","reportingInstance":"c-1","eventTime":"2026-01-01T00:00:00.000000Z"}`)
		require.Equal(t, "q", object.TextAt(b.must("GET", core+"/b", ""), "involvedObject", "name"))

		selected := b.must("GET", group+"?fieldSelector=regarding.name%3Dq", "")
		require.Len(t, selected["items"], 1)
		require.Equal(t, "events.k8s.io/v1", selected["apiVersion"])
		require.Len(t, b.must("GET", core+"?fieldSelector=involvedObject.name%3Dq", "")["items"], 1)
		code, status := b.send("GET", core+"?fieldSelector=regarding.name%3Dq", "")
		require.Equal(t, http.StatusBadRequest, code)
		require.Equal(t, "field label not supported: regarding.name", status["message"])
	})
}

func TestAutoscalersAreServedInTwoVersions(t *testing.T) {
	inBubble(t, func(b bubble) {
		const path = "/namespaces/default/horizontalpodautoscalers"
		b.must("POST", "/apis/autoscaling/v1"+path, `{"metadata":{"name":"a"},"spec":{"maxReplicas":3,
			"targetCPUUtilizationPercentage":70,"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"}}}`)
		new := b.must("GET", "/apis/autoscaling/v2"+path+"/a", "")
		metrics := object.SliceAt(object.MapAt(new, "spec"), "metrics")
		require.Len(t, metrics, 1)
		require.Equal(t, "70", object.TextAt(metrics[0].(object.Tree), "resource", "target", "averageUtilization"))
		old := b.must("GET", "/apis/autoscaling/v1"+path+"/a", "")
		require.Equal(t, "70", object.TextAt(old, "spec", "targetCPUUtilizationPercentage"))
	})
}

func TestBindings(t *testing.T) {
	inBubble(t, func(b bubble) {
		const pods = "/api/v1/namespaces/default/pods"
		for _, name := range []string{"a", "b"} {
			b.must("POST", pods, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		}
		answer := b.must("POST", "/api/v1/namespaces/default/bindings", `{"metadata":{"name":"a","annotations":{"x":"y"}},"target":{"name":"n"}}`)
		require.Equal(t, "Status", answer["kind"])
		bound := b.must("GET", pods+"/a", "")
		require.Equal(t, "n", object.TextAt(bound, "spec", "nodeName"))
		require.Equal(t, "y", object.TextAt(bound, "metadata", "annotations", "x"))
		for _, c := range []struct {
			path, body string
			code       int
			message    string
		}{
			{pods + "/a/binding", `{"metadata":{"name":"a"},"target":{"name":"n"}}`, 409, `pod a is already assigned to node "n"`},
			{pods + "/b/binding", `{"metadata":{"name":"b"}}`, 500, "target.name: Required value"},
			{pods + "/b/binding", `{"metadata":{"name":"a"},"target":{"name":"n"}}`, 400, "name in URL does not match name in Binding object"},
			{pods + "/b/binding", `{"metadata":{"name":"b","uid":"other"},"target":{"name":"n"}}`, 409, "UID in precondition: other"},
			{"/api/v1/namespaces/default/bindings", `{"metadata":{"name":"none"},"target":{"name":"n"}}`, 404, `pods "none" not found`},
		} {
			code, answer := b.send("POST", c.path, c.body)
			require.Equal(t, c.code, code, "%v", answer)
			require.Contains(t, answer["message"], c.message)
		}
		code, _ := b.send("GET", "/api/v1/namespaces/default/bindings", "")
		require.Equal(t, 405, code)
	})
}

// TestErrorsOfUpdatesHaveEachCauseOnce: the declarative rules of Kubernetes remove causes that its older rules repeat.
func TestErrorsOfUpdatesHaveEachCauseOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		const maps = "/api/v1/namespaces/default/configmaps"
		b.must("POST", maps, `{"metadata":{"name":"a"}}`)
		code, answer := b.send("PUT", maps+"/a", `{"metadata":{"name":"a","labels":{"a b":"c"}}}`)
		require.Equal(t, 422, code)
		require.Len(t, object.SliceAt(object.MapAt(answer, "details"), "causes"), 1)
	})
}

// TestConnectionsWithoutAKubelet holds the answers of subresources that kube-apiserver forwards.
func TestConnectionsWithoutAKubelet(t *testing.T) {
	inBubble(t, func(b bubble) {
		const core = "/api/v1/namespaces/default/"
		for _, p := range []string{`"a"},"spec":{`, `"b"},"spec":{"nodeName":"n",`, `"c"},"spec":{"nodeName":"none",`} {
			b.must("POST", core+"pods", `{"metadata":{"name":`+p+`"containers":[{"name":"c","image":"i"}]}}`)
		}
		b.must("POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`)
		b.must("POST", core+"services", `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)
		for _, c := range []struct {
			method, path string
			code         int
			message      string
		}{
			{"GET", core + "pods/zz/exec?command=ls", 404, `pods "zz" not found`},
			{"POST", core + "pods/a/attach", 400, "pod a does not have a host assigned"},
			{"GET", core + "pods/a/exec?container=d", 400, "container d is not valid for pod a"},
			{"GET", core + "pods/b/portforward", 500, "error dialing backend: node n has no kubelet"},
			{"GET", core + "pods/c/exec", 404, `pods "none" not found`},
			{"PUT", core + "pods/b/exec", 405, "the server does not allow this method on the requested resource"},
			{"GET", core + "pods/c/log", 404, `pods "none" not found`},
			{"GET", core + "pods/a/log?tailLines=-1", 422, `PodLogOptions "a" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0`},
			{"GET", core + "pods/a:80/proxy/path", 400, "address not allowed"},
			{"GET", core + "pods/zz/proxy", 404, `pods "zz" not found`},
			{"DELETE", core + "services/s/proxy/a/b", 503, `no endpoints available for service "s"`},
			{"GET", core + "services/s:81/proxy", 503, `no service port 81 found for service "s"`},
			{"GET", "/api/v1/nodes/zz/proxy/logs", 404, `nodes "zz" not found`},
			{"GET", "/api/v1/nodes/n/proxy", 503, "error trying to reach service: nothing listens in this cluster"},
		} {
			code, answer := b.send(c.method, c.path, "")
			require.Equal(t, c.code, code, "%s: %v", c.path, answer)
			require.Equal(t, c.message, answer["message"], c.path)
		}
	})
}

// TestLargeObjectsAreMeasuredInProtobuf: JSON of many small numbers is longer than what etcd gets.
func TestLargeObjectsAreMeasuredInProtobuf(t *testing.T) {
	inBubble(t, func(b bubble) {
		const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		code, answer := b.send("POST", leases, `{"metadata":{"name":"a"},"spec":{"holderIdentity":"`+strings.Repeat("x", 2_000_000)+`"}}`)
		require.Equal(t, 500, code)
		require.Equal(t, "etcdserver: request is too large", answer["message"])
		quoted := strings.Repeat(`\"`, 1_000_000) // half as long in protobuf
		b.must("POST", leases, `{"metadata":{"name":"b"},"spec":{"holderIdentity":"`+quoted+`"}}`)
		version := object.TextAt(b.must("GET", leases+"/b", ""), "metadata", "resourceVersion")
		code, answer = b.send("PUT", leases+"/b", `{"metadata":{"name":"b","resourceVersion":"`+version+`"},"spec":{"holderIdentity":"`+strings.Repeat("x", 2_000_000)+`"}}`)
		require.Equal(t, 500, code, answer)
		const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		definition := `{"metadata":{"name":"wheels.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
			"names":{"plural":"wheels","kind":"Wheel"},"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","description":"%s"}}}]}}`
		b.must("POST", definitions, fmt.Sprintf(definition, "short"))
		b.must("DELETE", definitions+"/wheels.example.com", "")
		code, answer = b.send("POST", definitions, fmt.Sprintf(definition, quoted))
		require.Equal(t, 500, code, "definitions are stored in JSON")
		require.Equal(t, "etcdserver: request is too large", answer["message"])
	})
}
