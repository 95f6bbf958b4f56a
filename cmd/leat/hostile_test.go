package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hostile has a character of each kind that changes a terminal, or ends a line or a column.
const (
	hostile        = "a\x1b[2J\a\x00\x7f\u009b\u202e\u2066\r\n\tz"
	hostileVisible = `a\u001b[2J\u0007\u0000\u007f\u009b\u202e\u2066\r\n\tz`
	hostileError   = `a\u001b[2J\u0007\u0000\u007f\u009b\u202e\u2066; z` // an error joins its lines
)

// requireVisible fails if a text has a character that a terminal executes.
func requireVisible(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }), "%q", text)
}

// hostileServer is a server whose texts are hostile: names, versions, the names of resources, and messages. The
// resource broken answers with an error. The commands of the test have no kubeconfig of their own.
func hostileServer(t *testing.T) (url string) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": hostile, "namespace": "n" + hostile, "resourceVersion": "7" + hostile, "uid": "u"},
		"data":     map[string]any{hostile: hostile}, "status": map[string]any{"phase": hostile},
	}
	list := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMapList",
		"metadata": map[string]any{"resourceVersion": "9" + hostile}, "items": []any{object},
	}
	resource := func(plural string) map[string]any {
		return map[string]any{
			"name": plural, "singularName": "", "namespaced": true, "kind": "ConfigMap", "verbs": []string{"list", "watch", hostile},
			"shortNames": []string{hostile},
		}
	}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]any{
		"/api":               map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis":              map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"/api/v1":            map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{resource("configmaps"), resource("broken")}},
		"/api/v1/configmaps": list,
		"/api/v1/broken": map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
			"message": "because " + hostile,
		},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			code, refused := answer.(map[string]any)["code"].(int)
			if refused {
				w.WriteHeader(code)
			}
			if refused || r.URL.Query().Get("watch") == "" {
				_ = json.NewEncoder(w).Encode(answer)
				return
			}
			frames := json.NewEncoder(w)
			_ = frames.Encode(map[string]any{"type": "ADDED", "object": object})
			_ = frames.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"resourceVersion": "9", "annotations": map[string]string{"k8s.io/initial-events-end": "true"}},
			}})
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config}"), 0o600))
	t.Setenv("KUBECONFIG", kubeconfig)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// hostileRecording records a hostile server.
func hostileRecording(t *testing.T, url string) (path string) {
	path = filepath.Join(t.TempDir(), "hostile.rec")
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := newOutput(), newOutput()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"record", "configmaps", "-A", "-o", path, "--server", url}, out, errs)
	}()
	errs.await(t, "leat: recording 1 configmaps; ")
	cancel()
	require.Zero(t, <-ended, errs)
	requireVisible(t, errs.String())
	return path
}

// TestHostileTextsAreVisible runs each command that prints texts of a cluster or of a recording.
func TestHostileTextsAreVisible(t *testing.T) {
	url := hostileServer(t)
	file := hostileRecording(t, url)
	key := "n" + hostileVisible + "/" + hostileVisible
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"watch configmaps -A --once --server URL", 0, fmt.Sprintf("%-9s %-60s %s\n", "ADDED", key, "7"+hostileVisible)},
		{"watch configmaps -A --once --paged -o name --server URL", 0, key + "\n"},
		{"watch broken -A --paged --server URL", 1, "because " + hostileError + "\n"},
		{"watch podz" + hostile + " --server URL", 1, `unknown resource "podz`},
		{"record broken -A -o " + file + "2 --server URL", 1, "because " + hostileError},
		{"show FILE", 0, "configmaps   ConfigMap   1 "},
		{"show FILE configmaps", 0, "n" + hostileVisible + "   " + hostileVisible + "   7" + hostileVisible + "   before\n"},
		{"show FILE configmaps -o name", 0, key + "\n"},
		{"show FILE configmaps --at +0s", 0, "n" + hostileVisible + "   " + hostileVisible + "   7" + hostileVisible},
		{"show FILE configmaps --diff +0s +0s", 0, "Nothing changed.\n"},
		{"show FILE configmaps --object n" + hostile + "/" + hostile, 0, "version 7" + hostileVisible + "  (in the first list)\n"},
		{"show FILE x" + hostile, 2, "the recording has no x" + hostileError + "; it has configmaps\n"},
		{"show FILE" + hostile, 1, hostileError},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Split(strings.NewReplacer("URL", url, "FILE", file).Replace(c.args), " ")
			out, errs := leat(t, c.code, args...)
			requireVisible(t, out+errs)
			require.Contains(t, out+errs, c.want)
		})
	}
}

// TestJSONOutputIsVisibleAndKeepsItsValues decodes what the commands print as JSON.
func TestJSONOutputIsVisibleAndKeepsItsValues(t *testing.T) {
	url := hostileServer(t)
	file := hostileRecording(t, url)

	out, _ := leat(t, 0, "watch", "configmaps", "-A", "--once", "-o", "json", "--server", url)
	requireVisible(t, out)
	var event struct{ Object unstructured.Unstructured }
	require.NoError(t, json.NewDecoder(strings.NewReader(out)).Decode(&event))
	require.Equal(t, hostile, event.Object.GetName())

	out, _ = leat(t, 0, "show", file, "configmaps", "-o", "json")
	requireVisible(t, out)
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Equal(t, hostile, list.Items[0].GetName())
	require.Equal(t, map[string]any{hostile: hostile}, list.Items[0].Object["data"])
}

// TestCommandsPrintVisibly finds a command that prints past package visible.
func TestCommandsPrintVisibly(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(file string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(source), "fmt.Fprint", file)
		require.NotContains(t, string(source), "fmt.Print", file)
		return nil
	}))
}
