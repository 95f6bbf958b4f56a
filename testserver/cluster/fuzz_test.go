package cluster_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/faults"
)

// inProtobuf encodes an object as clients send it.
func inProtobuf(f *testing.F, o runtime.Object) string {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobufType)
	require.True(f, ok)
	encoded := must.Get(runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), o))(f)
	return string(encoded)
}

// seeds are requests: method, path, query, Accept, Content-Type and body.
func seeds(f *testing.F) [][6]string {
	const (
		core        = "/api/v1/namespaces/default"
		pods        = core + "/pods"
		deployments = "/apis/apps/v1/namespaces/default/deployments"
		wheels      = "/apis/leat.example/v1/namespaces/default/wheels"
		merge       = "application/merge-patch+json"
		strategic   = "application/strategic-merge-patch+json"
		jsonPatch   = "application/json-patch+json"
		apply       = "application/apply-patch+yaml"
		pod         = `{"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	)
	message := inProtobuf(f, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	})
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	return [][6]string{
		{"POST", pods, "", jsonType, jsonType, pod},
		{"POST", pods, "dryRun=All&fieldValidation=Strict", jsonType, jsonType, pod[:len(pod)-1] + `,"x":1,"x":2}`},
		{"POST", pods, "", protobufType, protobufType, message},
		{"POST", pods, "", protobufType, protobufType, message[:len(message)-3]},
		{"POST", pods, "", protobufType, protobufType, message[:4] + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		{"POST", pods, "", "application/yaml", "application/yaml", "metadata: {name: b}\nspec: &a {containers: [*a]}"},
		{"POST", pods, "", "", "application/yaml", "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]"},
		{"POST", pods, "", "", jsonType, "{"},
		{"POST", pods, "", "", jsonType, "null"},
		{"POST", pods, "", "", jsonType, `{"metadata":7}`},
		{"POST", pods, "", "", jsonType, `{"metadata":{"name":"b","managedFields":[{"manager":"m","fieldsV1":7}]},"spec":{"containers":[null]}}`},
		{"POST", pods, "", "", jsonType, deep},
		{"POST", pods, "", "", jsonType, `{"data":"` + strings.Repeat("x", 4<<20) + `"}`},
		{"POST", core + "/services", "", "", jsonType, `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":-1}]}}`},
		{"PUT", core + "/configmaps/a", "", "", jsonType, `{"metadata":{"name":"a","resourceVersion":"x"},"data":{"k":"w"}}`},
		{"PATCH", core + "/configmaps/a", "", "", merge, `{"data":{"k":null},"metadata":null}`},
		{"PATCH", core + "/configmaps/a", "", "", merge, "[]"},
		{"PATCH", core + "/configmaps/a", "", "", strategic, `{"metadata":{"$patch":"delete","ownerReferences":[{"$patch":"x"}]}}`},
		{"PATCH", core + "/configmaps/a", "", "", strategic, `{"$setElementOrder/metadata":[1],"$retainKeys":7}`},
		{"PATCH", core + "/configmaps/a", "", "", jsonPatch, `[{"op":"move","from":"/metadata","path":"/metadata/x"},{"op":"test","path":"/~2"}]`},
		{"PATCH", core + "/configmaps/a", "", "", jsonPatch, `[{"op":"remove","path":"/metadata/name"}]`},
		{"PATCH", core + "/configmaps/a", "", "", jsonPatch, "{}"},
		{"PATCH", core + "/configmaps/a", "fieldManager=m&force=1", "", apply, "apiVersion: v1\nkind: ConfigMap\ndata: {k: x}"},
		{"PATCH", core + "/configmaps/a", "fieldManager=m", "", apply, "apiVersion: v1\nkind: ConfigMap\nmetadata: [a]\ndata: 7"},
		{"PATCH", core + "/configmaps/new", "fieldManager=m", "", apply, "apiVersion: v2\nkind: Pod\nmetadata: {managedFields: [{}]}"},
		{"PATCH", deployments + "/d/scale", "", "", merge, `{"spec":{"replicas":-1}}`},
		{"POST", deployments, "", "", jsonType, `{"metadata":{"name":"d"},"spec":{"replicas":99999999999999999999}}`},
		{"POST", wheels, "", "", jsonType, `{"apiVersion":"leat.example/v1","kind":"Wheel","metadata":{"name":"w"},"spec":[{}]}`},
		{"PATCH", wheels + "/w", "fieldManager=m", "", apply, "apiVersion: leat.example/v2\nkind: Wheel\nspec: {l: [1, 1]}"},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", "", jsonType, `{"metadata":{"name":"xs.y"},"spec":{"group":"y","scope":"Cluster","names":{"plural":"xs","kind":"X"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[{"rule":"self."}]}}}]}}`},
		{"DELETE", core + "/configmaps/a", "propagationPolicy=x", "", jsonType, `{"preconditions":{"uid":7},"gracePeriodSeconds":-1}`},
		{"DELETE", core + "/configmaps", "labelSelector=,,", "", protobufType, "k8s\x00"},
		{"GET", core + "/configmaps", "labelSelector=a in (&limit=-1&continue=x", "", "", ""},
		{"GET", core + "/configmaps", "fieldSelector=a==b,c&resourceVersionMatch=Exact", protobufType, "", ""},
		{"GET", core + "/configmaps", "resourceVersion=0", "application/json;as=Table;g=meta.k8s.io;v=v1", "", ""},
		{"GET", "/api/v1/watch/namespaces/default/configmaps/a", "timeoutSeconds=x", "", "", ""},
		{"GET", "/api/v1/namespaces//pods/%2e%2e/", "", "application/yaml;q=x,;,", "", ""},
		{"GET", "/openapi/v3/apis/apps/v1", "hash=x", "*/*", "", ""},
		{"POST", core + "/pods/a/eviction", "", "", jsonType, "7"},
		{"POST", core + "/serviceaccounts/a/token", "", "", jsonType, `{"spec":{"expirationSeconds":-1}}`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "", jsonType, "{}"},
		{"OPTIONS", "", "", "", "", ""},
	}
}

// FuzzHandle sends arbitrary requests to the typed server. Each gets an answer, and no handler panics. Only an answer
// with a reason is a 500. A request that fails changes nothing, and what other requests store can be dumped and loaded,
// which checks every object again.
func FuzzHandle(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s[0], s[1], s[2], s[3], s[4], s[5])
	}
	c, err := cluster.New(cluster.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{wheels("v1", true)}})
	require.NoError(f, err)
	_, err = c.Server.Create(mapsResource, map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}, "data": map[string]any{"k": "v"}})
	require.NoError(f, err)
	start := c.Server.Snapshot()
	before := string(c.Server.Dump())
	f.Fuzz(func(t *testing.T, method, path, query, accept, contentType, body string) {
		r := (&http.Request{
			Method: method, URL: &url.URL{Scheme: "http", Host: "testserver", Path: path, RawQuery: query}, Header: http.Header{},
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader([]byte(body))),
		}).WithContext(t.Context())
		for name, value := range map[string]string{"Accept": accept, "Content-Type": contentType} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		answer := must.Get(c.Server.ControlPlane().RoundTrip(r))(t)
		streams := strings.Contains(path+query, "watch") || strings.Contains(query, "follow")
		if !streams || answer.StatusCode >= 300 {
			text := must.Get(io.ReadAll(answer.Body))(t)
			checkFailure(t, answer, text)
		}
		require.NoError(t, answer.Body.Close())
		after := string(c.Server.Dump())
		if answer.StatusCode >= 300 && method != http.MethodDelete || strings.Contains(query, "dryRun=All") {
			require.Equal(t, before, after)
		}
		if before == after {
			return
		}
		require.NoError(t, c.Server.Load([]byte(after)))
		c.Server.Inject(faults.Fault{Effect: faults.Restore{To: start}}).Remove()
		require.Equal(t, before, string(c.Server.Dump()))
	})
}

// checkFailure requires that a 500 says what failed, and that its text is not that of a bug.
func checkFailure(t *testing.T, answer *http.Response, text []byte) {
	if answer.StatusCode < 500 {
		return
	}
	var status metav1.Status
	if strings.HasPrefix(answer.Header.Get("Content-Type"), jsonType) {
		require.NoError(t, json.Unmarshal(text, &status), "%s", text)
	}
	require.NotEmpty(t, status.Message+string(text))
	for _, bug := range []string{"runtime error", "testserver: encode", "panic", "interface conversion"} {
		require.NotContains(t, string(text), bug)
	}
}
