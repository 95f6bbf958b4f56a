package testserver_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestPretty compares indented answers with those for programs. Texts contain what may be taken for brackets.
func TestPretty(t *testing.T) {
	inBubble(t, testserver.Options{Compress: true}, func(b *bench) {
		const maps = "/api/v1/namespaces/default/configmaps"
		b.ok(http.MethodPost, maps, configMap("a", "k", `{"x\\":[1,"y"]}\`, "empty", ""))
		b.ok(http.MethodPost, maps, configMap("large", "k", strings.Repeat("[{", 100_000)))
		const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
		for _, tc := range []struct {
			path, accept, agent string
			pretty              bool
		}{
			{maps + "/a", "", "", false},
			{maps + "/a?pretty=true", "", "", true},
			{maps + "/a?pretty=1", "", "", true},
			{maps + "/a?pretty=false", "", "curl/8.0", false},
			{maps + "/a?pretty=maybe", "", "curl/8.0", false},
			{maps + "/a?pretty=", "", "curl/8.0", true},
			{maps + "/a", "", "curl/8.0", true},
			{maps + "/a", "", "Mozilla/5.0 (X11)", true},
			{maps + "/a", "application/json;pretty=1", "", true},
			{maps + "/a", "application/json; pretty=0", "", false},
			{"/apis/none.example/v1/x", "", "curl/8.0", false}, // a text
			{maps + "/large", "", "curl/8.0", true},
			{maps, "", "curl/8.0", true},
			{maps + "?labelSelector=none", "", "curl/8.0", true},
			{maps, table, "curl/8.0", true},
			{maps + "/none", "", "curl/8.0", true},
			{maps + "?timeout=x", "", "curl/8.0", true},
			{"/api/v1", "", "curl/8.0", true},
			{"/apis", "", "curl/8.0", true},
			{"/healthz", "", "curl/8.0", false},
		} {
			plainPath, _, _ := strings.Cut(tc.path, "?pretty")
			want := b.do(http.MethodGet, plainPath, nil, "Accept", tc.accept)
			got := b.do(http.MethodGet, tc.path, nil, "Accept", tc.accept, "User-Agent", tc.agent, "Accept-Encoding", "gzip")
			require.Equal(b, want.code, got.code)
			require.Equal(b, want.header.Get("Content-Type"), got.header.Get("Content-Type"))
			if tc.pretty {
				var indented bytes.Buffer
				require.NoError(b, json.Indent(&indented, bytes.TrimSpace(want.body), "", "  "))
				require.Equal(b, indented.String(), string(got.body), tc.path)
				continue
			}
			require.Equal(b, string(want.body), string(got.body), tc.path)
		}
		s := b.watch(maps, "pretty=true")
		must.Get(s.next())(b)
		s.close()
	})
}

// TestErrorsThatAreAlwaysIndented: kube-apiserver indents an error whose media type it cannot negotiate.
func TestErrorsThatAreAlwaysIndented(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
		b.ok(http.MethodPost, mapsPath, configMap("a"))
		for _, tc := range []struct {
			path, accept string
			code         int
			indented     bool
		}{
			{mapsPath + "/a", "text/plain", 406, true},
			{mapsPath + "?watch=true", "text/plain", 406, true},
			{mapsPath + "/none", table, 404, true},
			{mapsPath + "/none", table + ",application/json", 404, false},
			{mapsPath + "/a", table, 200, false},
			{mapsPath + "/none", "", 404, false},
		} {
			a := b.do(http.MethodGet, tc.path, nil, "Accept", tc.accept)
			require.Equal(b, tc.code, a.code, tc.path)
			require.Equal(b, tc.indented, bytes.HasPrefix(a.body, []byte("{\n  ")), "%s: %s", tc.path, a.body)
		}
	})
}

// TestPrettyFaults checks that a fault finds the answer that it affects: a list that does not end, and half an object.
func TestPrettyFaults(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		const maps = "/api/v1/namespaces/default/configmaps"
		b.ok(http.MethodPost, maps, configMap("a"))
		b.Inject(faults.Fault{Times: 1, Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.EndlessList{}})
		res := must.Get(b.client.Do(b.request(http.MethodGet, maps+"?pretty=true", nil)))(b)
		defer res.Body.Close()
		some := make([]byte, 100_000)
		n := must.Get(res.Body.Read(some))(b)
		require.Contains(b, string(some[:n]), "\n  \"")
	})
}
