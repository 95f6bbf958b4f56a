package cluster_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

// sample is an object of a built-in kind.
type sample struct {
	Path string         `json:"path"`
	Sent map[string]any `json:"sent"`
}

// samples returns an object of each kind, and some with embedded objects or fields that the server derives from others.
// e2e/compare sends the same ones to kube-apiserver.
func samples(t *testing.T) (out []sample) {
	for _, file := range []string{"internal/builtin/testdata/minimal.json", "testdata/embedded.json"} {
		text := must.Get(os.ReadFile(file))(t)
		var some []sample
		require.NoError(t, json.Unmarshal(text, &some))
		out = append(out, some...)
	}
	return out
}

// TestUpdatesWithoutAChangeMakeNoVersion updates each object with what a program in Go reads and sends again. Another
// manager has written meanwhile, so the order of the managers would also change.
func TestUpdatesWithoutAChangeMakeNoVersion(t *testing.T) {
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{NoServiceAccounts: true, NoDisruptionBudgets: true}}, func(w world) {
		all := samples(t)
		answers := make([]unstructured.Unstructured, len(all))
		for i, s := range all {
			answers[i] = w.as("operator", "POST", s.Path, s.Sent)
		}
		w.pass(time.Second)
		for i, s := range all {
			if answers[i].GetUID() != "" { // it is stored
				labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{"by": "another"}}}
				answers[i] = w.as("another", "PATCH", s.Path+"/"+answers[i].GetName(), labels)
			}
		}
		w.pass(time.Second)
		for i, s := range all {
			if answers[i].GetUID() == "" {
				continue
			}
			before := w.as("operator", "GET", s.Path+"/"+answers[i].GetName(), nil)
			sent := before.DeepCopy().Object
			withoutTypes(sent)
			after := w.as("operator", "PUT", s.Path+"/"+answers[i].GetName(), sent)
			require.Equal(t, before.GetResourceVersion(), after.GetResourceVersion(), s.Path)
			require.Equal(t, before.GetManagedFields(), after.GetManagedFields(), s.Path)
		}
	})
}

// withoutTypes removes kind and apiVersion from the objects within an object, whose types in Go do not need them.
func withoutTypes(value any) {
	drop := func(member any) {
		if o, ok := member.(map[string]any); ok && o["metadata"] != nil {
			delete(o, "kind")
			delete(o, "apiVersion")
		}
		withoutTypes(member)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if name != "data" { // of a ControllerRevision: the server does not know its type
				drop(member)
			}
		}
	case []any:
		for _, item := range v {
			drop(item)
		}
	}
}

// as sends a request that succeeds, in the name of a manager, and returns the object in the answer.
func (w world) as(manager, method, path string, body any) (out unstructured.Unstructured) {
	encoded := must.Get(json.Marshal(body))(w)
	request := must.Get(http.NewRequestWithContext(w.ctx, method, w.Server.URL()+path, bytes.NewReader(encoded)))(w)
	request.Header.Set("Authorization", "Bearer "+w.Config().BearerToken)
	request.Header.Set("User-Agent", manager)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response := must.Get(w.Server.Client().Do(request))(w)
	defer response.Body.Close()
	answer := must.Get(io.ReadAll(response.Body))(w)
	require.Less(w, response.StatusCode, 300, "%s %s: %s", method, path, answer)
	require.NoError(w, json.Unmarshal(answer, &out.Object))
	return out
}
