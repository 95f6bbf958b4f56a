package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/definitions"
	"github.com/leatproject/leat/testserver/cluster/internal/openapi"
	"github.com/leatproject/leat/testserver/internal/registry"
)

type tree = map[string]any

func resources() []*registry.Definition {
	return append(builtin.Resources(), definitions.New(definitions.Options{}).Resource())
}

// get returns an answer of documents.
func get(t testing.TB, d *openapi.Documents, url string, header ...string) *http.Response {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	require.True(t, d.Serve(w, r))
	return w.Result()
}

func decode(t testing.TB, res *http.Response) tree {
	t.Helper()
	require.Equal(t, 200, res.StatusCode)
	var out tree
	require.NoError(t, json.NewDecoder(res.Body).Decode(&out))
	return out
}

// published is the folder of the documents that Kubernetes publishes with its source.
func published(t testing.TB) string {
	out := must.Get(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output())(t)
	return filepath.Join(strings.TrimSpace(string(out)), "api", "openapi-spec")
}

func read(t testing.TB, path string) tree {
	data := must.Get(os.ReadFile(path))(t)
	var out tree
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// TestDocumentsAreThoseOfKubernetes compares every document with the published one, which has all features on.
func TestDocumentsAreThoseOfKubernetes(t *testing.T) {
	folder := published(t)
	d := openapi.New(func() []*registry.Definition { return resources() })
	index := decode(t, get(t, d, "/openapi/v3"))["paths"].(tree)
	require.Greater(t, len(index), 40)
	for path := range index {
		t.Run(path, func(t *testing.T) {
			want := read(t, filepath.Join(folder, "v3", strings.ReplaceAll(path, "/", "__")+"_openapi.json"))
			equal(t, want, decode(t, get(t, d, "/openapi/v3/"+path)))
		})
	}
}

// TestVersion2 compares the definitions and paths of the document with the published ones, which has more resources.
func TestVersion2(t *testing.T) {
	d := openapi.New(func() []*registry.Definition { return resources() })
	want, got := read(t, filepath.Join(published(t), "swagger.json")), decode(t, get(t, d, "/openapi/v2"))
	for _, part := range []string{"definitions", "paths"} {
		require.Greater(t, len(got[part].(tree)), 250)
		for name := range want[part].(tree) {
			if got[part].(tree)[name] == nil {
				delete(want[part].(tree), name)
			}
		}
		equal(t, want[part], got[part])
	}
}
