package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/leatproject/leat/e2e/compare"
	"github.com/leatproject/leat/internal/fixture/must"
	typed "github.com/leatproject/leat/testserver/cluster"
)

// sampleFiles have an object of each built-in kind, and some with embedded objects or fields that the server derives.
var sampleFiles = []string{
	"../../testserver/cluster/internal/builtin/testdata/minimal.json", "../../testserver/cluster/testdata/embedded.json",
}

// sample is an object of a built-in kind.
type sample struct {
	Path string         `json:"path"`
	Sent map[string]any `json:"sent"`
}

// TestUnchanged updates an object of each kind on both servers, after other managers have written to it and to its
// status: with what a program in Go reads and sends again, with and without its Go type, and with what it created. Both
// servers must make a new version in the same cases, and keep the managers in the same order.
func TestUnchanged(t *testing.T) {
	var all []sample
	for _, file := range sampleFiles {
		text := must.Get(os.ReadFile(file))(t)
		var some []sample
		require.NoError(t, json.Unmarshal(text, &some))
		all = append(all, slices.DeleteFunc(some, func(s sample) bool {
			return strings.HasPrefix(s.Path, "/apis/flowcontrol") // kube-apiserver itself writes their status
		})...)
	}
	test := startTestServer(t, typed.Behaviour{
		NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true,
	})
	want := unchanged(t, startCluster(t), all)
	have := unchanged(t, test, all)
	for i, s := range all {
		assert.Equal(t, want[i], have[i], "%s %v", s.Path, s.Sent["metadata"])
	}
}

// unchanged returns what the updates of each sample do to a server.
func unchanged(t *testing.T, target *compare.Target, all []sample) []string {
	out := make([]string, len(all))
	each := func(do func(path string, s sample) string) {
		for i, s := range all {
			out[i] += do(fmt.Sprintf("%s/%s", s.Path, s.Sent["metadata"].(map[string]any)["name"]), s)
		}
		<-time.After(time.Second) // managedFields count in seconds
	}
	send := func(manager, method, path string, body any) (int, unstructured.Unstructured) {
		return sendAs(t, target, manager, method, path, body)
	}
	update := func(path string, change func(before unstructured.Unstructured) map[string]any) string {
		code, before := send("operator", "GET", path, nil)
		if code != http.StatusOK {
			return fmt.Sprintf(" get: %d", code)
		}
		code, after := send("operator", "PUT", path, change(before))
		if code != http.StatusOK {
			return fmt.Sprintf(" put: %d", code)
		}
		return fmt.Sprintf(" put: same version %t, managers %s", before.GetResourceVersion() == after.GetResourceVersion(), managers(after))
	}
	each(func(_ string, s sample) string {
		code, _ := send("operator", "POST", s.Path, s.Sent)
		return fmt.Sprint("post: ", code)
	})
	each(func(path string, _ sample) string {
		code, _ := send("another", "PATCH", path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"by": "another"}}})
		return fmt.Sprint(" patch: ", code)
	})
	each(func(path string, _ sample) string {
		code, _ := send("controller", "PATCH", path+"/status", map[string]any{"status": map[string]any{
			"observedGeneration": 1, "conditions": []any{map[string]any{
				"type": "Seen", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}})
		return fmt.Sprint(" status: ", code)
	})
	for _, again := range []func(unstructured.Unstructured) map[string]any{
		func(before unstructured.Unstructured) map[string]any {
			sent := before.DeepCopy().Object
			withoutTypes(sent)
			return sent
		},
		func(before unstructured.Unstructured) map[string]any { return throughGo(t, before) },
	} {
		each(func(path string, _ sample) string { return update(path, again) })
	}
	each(func(path string, s sample) string {
		return update(path, func(before unstructured.Unstructured) map[string]any {
			again := unstructured.Unstructured{Object: s.Sent}
			sent := again.DeepCopy()
			sent.SetResourceVersion(before.GetResourceVersion())
			sent.SetLabels(before.GetLabels())
			return sent.Object
		})
	})
	return out
}

// throughGo returns what a typed client sends again: an object that was decoded into its Go type.
func throughGo(t *testing.T, of unstructured.Unstructured) (sent map[string]any) {
	into, err := scheme.Scheme.New(of.GroupVersionKind())
	if err != nil {
		return of.Object // an APIService or a definition
	}
	require.NoError(t, json.Unmarshal(must.Get(json.Marshal(of.Object))(t), into))
	require.NoError(t, json.Unmarshal(must.Get(json.Marshal(into))(t), &sent))
	return sent
}

// managers returns the managers of an object in their order, with their fields.
func managers(of unstructured.Unstructured) string {
	var out []string
	entries, _, _ := unstructured.NestedSlice(of.Object, "metadata", "managedFields")
	for _, m := range entries {
		m := m.(map[string]any)
		fields, err := json.Marshal(m["fieldsV1"])
		out = append(out, fmt.Sprintf("%v %v %s %v", m["manager"], m["operation"], fields, err))
	}
	return fmt.Sprint(out)
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

// sendAs sends a request in the name of a manager.
func sendAs(t *testing.T, target *compare.Target, manager, method, path string, body any) (code int, out unstructured.Unstructured) {
	encoded := must.Get(json.Marshal(body))(t)
	request := must.Get(http.NewRequestWithContext(t.Context(), method, target.URL+path, bytes.NewReader(encoded)))(t)
	request.Header.Set("User-Agent", manager)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response := must.Get(target.Do(request))(t)
	defer response.Body.Close()
	answer := must.Get(io.ReadAll(response.Body))(t)
	require.NoError(t, json.Unmarshal(answer, &out.Object), string(answer))
	return response.StatusCode, out
}
