package testserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

func TestFieldValidation(t *testing.T) {
	const doubled = `{"metadata":{"name":"a","labels":{"x":"1"},"labels":{"x":"2"}},"data":{"k":"v","k":"w"},"more":[{"n":1},{"n":1,"n":2}]}`
	const path = mapsPath + "?dryRun=All"
	inBubble(t, testserver.Options{}, func(b *bench) {
		warnings := func(query string) []string {
			a := b.do(http.MethodPost, path+query, doubled)
			require.Equal(b, 201, a.code, "%s", a.body)
			return a.header.Values("Warning")
		}
		want := []string{`299 - "duplicate field \"metadata.labels\""`, `299 - "duplicate field \"data.k\""`, `299 - "duplicate field \"more[1].n\""`}
		require.Equal(b, want, warnings(""))
		require.Equal(b, want, warnings("&fieldValidation=Warn"))
		require.Empty(b, warnings("&fieldValidation=Ignore"))

		status := b.refused(400, http.MethodPost, path+"&fieldValidation=Strict", doubled)
		require.Equal(b, `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: `+
			`duplicate field "metadata.labels", duplicate field "data.k", duplicate field "more[1].n"`, status.Message)
		a := b.do(http.MethodPost, path+"&fieldValidation=Strict", configMap("a", "k", "v"))
		require.Equal(b, 201, a.code, "%s", a.body)
		b.refused(422, http.MethodPost, path+"&fieldValidation=Some", configMap("a"))
	})
}

func TestDryRunOfSubresources(t *testing.T) {
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, podsPath, pod("p"))
		b.ok(http.MethodPost, deploymentsPath, doc{"metadata": meta("d"), "spec": doc{"replicas": 2}})
		b.ok(http.MethodPost, accounts, doc{"metadata": meta("s")})
		before := b.ResourceVersion()
		for _, w := range []struct {
			method, path string
			body         any
			code         int
		}{
			{http.MethodPost, podsPath + "/p/eviction?dryRun=All", doc{"metadata": meta("p")}, 201},
			{http.MethodPost, podsPath + "/p/eviction", doc{"metadata": meta("p"), "deleteOptions": doc{"dryRun": []string{"All"}}}, 201},
			{http.MethodPost, podsPath + "/p/binding?dryRun=All", doc{"metadata": meta("p"), "target": doc{"name": "n1"}}, 201},
			{http.MethodPut, podsPath + "/p/status?dryRun=All", doc{"metadata": meta("p"), "status": doc{"phase": "Running"}}, 200},
			{http.MethodPut, deploymentsPath + "/d/scale?dryRun=All", doc{"metadata": meta("d"), "spec": doc{"replicas": 5}}, 200},
			{http.MethodPost, accounts + "/s/token?dryRun=All", doc{}, 201},
		} {
			a := b.do(w.method, w.path, w.body)
			require.Equal(b, w.code, a.code, "%s: %s", w.path, a.body)
			require.Equal(b, before, b.ResourceVersion(), w.path)
			if wrong := strings.Replace(w.path, "dryRun=All", "dryRun=Some", 1); wrong != w.path {
				b.refused(422, w.method, wrong, w.body)
			}
		}
	})
}
