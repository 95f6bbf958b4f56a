package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

const (
	podTemplate  = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"registry.example/app:1"}]}}`
	workloadBody = `{"spec":{"selector":{"matchLabels":{"app":"a"}},"template":` + podTemplate + `}}`
	jobBody      = `{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"registry.example/app:1"}]}}}}`
)

// TestMetadata compares a kube-apiserver with the test server: which metadata an update of an object's status changes,
// and which metadata metadata.generation counts.
func TestMetadata(t *testing.T) {
	apps := func(kind, plural string) api.Resource {
		return api.Resource{Group: "apps", Version: "v1", Kind: kind, Plural: plural, Namespaced: true}
	}
	mill := customResource(t, "Mill")
	s := testserver.New(testserver.Options{})
	fixture.Start(t, s.Run)
	s.Define(testserver.Definition{Resource: mill})
	for _, c := range []struct {
		resource api.Resource
		body     string
		want     string
	}{
		{deployments, workloadBody, "labels +0, annotations +1; with the status annotations finalizers ownerReferences +0"},
		{apps("ReplicaSet", "replicasets"), workloadBody, "labels +0, annotations +0; with the status annotations finalizers labels ownerReferences +0"},
		{apps("StatefulSet", "statefulsets"), workloadBody, "labels +0, annotations +0; with the status annotations finalizers labels ownerReferences +0"},
		{apps("DaemonSet", "daemonsets"), workloadBody, "labels +0, annotations +0; with the status annotations finalizers labels ownerReferences +0"},
		{api.Resource{Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true}, jobBody, "labels +0, annotations +0; with the status annotations finalizers labels ownerReferences +0"},
		{pods, podBody, "labels +0, annotations +0; with the status annotations finalizers labels +0"},
		{api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}, `{"spec":{"ports":[{"port":80}]}}`, "labels +0, annotations +0; with the status annotations finalizers labels ownerReferences +0"},
		{mill, `{"spec":{"color":"red"}}`, "labels +0, annotations +0; with the status +0"},
	} {
		t.Run(c.resource.Plural, func(t *testing.T) {
			all := newCollection(t, c.resource, c.body)
			require.Equal(t, c.want, probeMetadata(t, all, server.Must), "the API server")
			require.Equal(t, c.want, probeMetadata(t, all, func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
				return ask(ctx, s, method, path, body)
			}), "the test server")
		})
	}
}

// send makes one request; patches are merge patches.
type send func(ctx context.Context, method, path string, body []byte) ([]byte, error)

// ask is send for a test server.
func ask(ctx context.Context, s *testserver.Server, method, path string, body []byte) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, method, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := s.Client().Do(q)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d: %s", method, path, response.StatusCode, answer)
	}
	return answer, err
}

// probeMetadata creates an object and returns which changes incremented its generation, and which metadata a PUT of its
// status changed.
func probeMetadata(t *testing.T, all *collection, do send) string {
	t.Helper()
	write := func(method, path string, body map[string]any) (object, metadata map[string]any) {
		b := must.Get(json.Marshal(body))(t)
		answer := must.Get(do(t.Context(), method, path, b))(t)
		require.NoError(t, json.Unmarshal(answer, &object))
		return object, object["metadata"].(map[string]any)
	}
	number := func(metadata map[string]any) int {
		n, _ := metadata["generation"].(float64)
		return int(n)
	}
	body := map[string]any{
		"apiVersion": all.resource.GroupVersion().String(), "kind": all.resource.Kind, "metadata": map[string]any{"name": "x"},
	}
	for name, value := range all.body {
		body[name] = value
	}
	_, metadata := write(http.MethodPost, all.path(), body)
	generation := number(metadata)
	grown := func(metadata map[string]any) (by int) {
		by, generation = number(metadata)-generation, number(metadata)
		return by
	}
	_, metadata = write(http.MethodPatch, all.path("x"), map[string]any{"metadata": map[string]any{"labels": labelSet{"patched": "yes"}}})
	byLabels := grown(metadata)
	object, metadata := write(http.MethodPatch, all.path("x"), map[string]any{"metadata": map[string]any{"annotations": labelSet{"patched": "yes"}}})
	byAnnotations := grown(metadata)
	metadata["labels"], metadata["annotations"] = labelSet{"put": "yes"}, labelSet{"put": "yes"}
	metadata["finalizers"] = []string{"leat.example/put"}
	metadata["ownerReferences"] = []labelSet{{"apiVersion": "v1", "kind": "ConfigMap", "name": "put", "uid": "u"}}
	_, metadata = write(http.MethodPut, all.path("x", "status"), object)
	taken := ""
	for _, field := range []string{"annotations", "finalizers", "labels", "ownerReferences"} {
		if strings.Contains(fmt.Sprint(metadata[field]), "put") {
			taken += field + " "
		}
	}
	byStatus := grown(metadata)
	write(http.MethodPatch, all.path("x"), map[string]any{"metadata": map[string]any{"finalizers": nil}})
	return fmt.Sprintf("labels +%d, annotations +%d; with the status %s+%d", byLabels, byAnnotations, taken, byStatus)
}
