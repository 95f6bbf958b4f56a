package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// TestPatchesThatTheLibraryPanicsFor checks that they are refused.
func TestPatchesThatTheLibraryPanicsFor(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, mapsPath, configMap("a", "k", "v"))
		for _, body := range []string{
			`[{"op":"replace","path":""}]`,
			`[{"op":"test","path":""}]`,
			`[{"op":"add","path":""}]`,
			`[{"op":"copy","from":"/data/none"}]`,
			`[{"op":"copy","from":"/data/none","path":"/none/x"}]`,
			`[{"op":"replace","path":"","value":7},{"op":"copy","from":"/a","path":"/b"}]`,
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
		encoded := must.Get(json.Marshal(operations))(t)
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
