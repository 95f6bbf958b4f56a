package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

// TestReplaceOfAMissingMember checks that a JSON patch may replace a member that the object does not have.
func TestReplaceOfAMissingMember(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		u := b.ok(http.MethodPatch, mapsPath+"/a", `[{"op":"replace","path":"/data/l","value":"w"},{"op":"replace","path":"/metadata/labels","value":{"x":"y"}}]`,
			"Content-Type", jsonPatch)
		require.Equal(b, doc{"k": "v", "l": "w"}, u.Object["data"])
		require.Equal(b, map[string]string{"x": "y"}, u.GetLabels())
		b.refused(422, http.MethodPatch, mapsPath+"/a", `[{"op":"replace","path":"/none/x","value":"w"}]`, "Content-Type", jsonPatch)

		b.Register(mills)
		b.ok(http.MethodPost, millsPath, doc{"apiVersion": "leat.example/v1", "kind": "Mill", "metadata": meta("m")})
		u = b.ok(http.MethodPatch, millsPath+"/m/status", `[{"op":"replace","path":"/status","value":{"ready":true}}]`, "Content-Type", jsonPatch)
		require.Equal(b, doc{"ready": true}, u.Object["status"])
	})
}

// TestPatchesOfTheWholeDocument checks that replace and test are the only operations on the whole object.
func TestPatchesOfTheWholeDocument(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		before := b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		const whole = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"l":"w"}}`
		for _, body := range []string{
			`[{"op":"add","path":"","value":` + whole + `}]`,
			`[{"op":"move","from":"/data","path":""}]`,
			`[{"op":"copy","from":"/data","path":""}]`,
			`[{"op":"copy","from":"","path":"/data"}]`,
			`[{"op":"remove","path":""}]`,
		} {
			b.refused(422, http.MethodPatch, mapsPath+"/a", body, "Content-Type", jsonPatch)
		}
		status := b.refused(422, http.MethodPatch, mapsPath+"/a", `[{"op":"replace","path":"","value":[1]}]`, "Content-Type", jsonPatch)
		require.Contains(b, status.Message, `patch: Invalid value: "[1]": couldn't get version/kind; json parse error: json: cannot unmarshal array`)
		require.Equal(b, before.Object, b.ok(http.MethodGet, mapsPath+"/a", nil).Object)
		u := b.ok(http.MethodPatch, mapsPath+"/a", `[{"op":"replace","path":"","value":`+whole+`}]`, "Content-Type", jsonPatch)
		require.Equal(b, doc{"l": "w"}, u.Object["data"])
	})
}

// TestPatchesThatTheLibraryPanicsFor checks that they are refused.
func TestPatchesThatTheLibraryPanicsFor(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		for _, body := range []string{
			`[{"op":"replace","path":""}]`,
			`[{"op":"test","path":""}]`,
			`[{"op":"add","path":"/x","value":[null]},{"op":"test","path":"/x","value":[null]}]`,
			`[{"op":"add","path":"/x","value":null},{"op":"copy","from":"/x","path":"/y"},{"op":"add","path":"/y/z","value":1}]`,
		} {
			b.refused(422, http.MethodPatch, mapsPath+"/a", body, "Content-Type", jsonPatch)
		}
		b.ok(http.MethodPatch, mapsPath+"/a", `[]`, "Content-Type", jsonPatch)
	})
}

// TestCopiesOfAPatchAreLimited checks the limit of 3 MiB, with copies that double what they copy and with large values.
func TestCopiesOfAPatchAreLimited(t *testing.T) {
	copies := func(from, to string, n int) string {
		var operations []doc
		for i := range n {
			operations = append(operations, doc{"op": "copy", "from": from, "path": fmt.Sprintf("%s%d", to, i)})
		}
		encoded, err := json.Marshal(operations)
		require.NoError(t, err)
		return string(encoded)
	}
	value := func(size, n int) string {
		add := fmt.Sprintf(`[{"op":"add","path":"/x","value":"%s"},`, strings.Repeat("x", size-2)) // without its quotes
		return add + strings.TrimPrefix(copies("/x", "/y", n), "[")
	}
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		b.refused(422, http.MethodPatch, mapsPath+"/a", copies("/metadata", "/metadata/k", 16), "Content-Type", jsonPatch)
		b.ok(http.MethodPatch, mapsPath+"/a?dryRun=All", value(1<<20, 3), "Content-Type", jsonPatch)
		b.refused(422, http.MethodPatch, mapsPath+"/a", value(1<<20, 4), "Content-Type", jsonPatch)
		b.refused(422, http.MethodPatch, mapsPath+"/a", value(1<<20+1, 3), "Content-Type", jsonPatch)
	})
}
