package documents_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/cluster/internal/documents"
	"github.com/leatproject/leat/testserver/internal/registry"
)

type keys struct{}

func (keys) Issuer() string { return "https://issuer.example" }
func (keys) KeySet() ([]byte, error) {
	return []byte(`{"keys":[{"alg":"ES256"},{"alg":"ES256"}]}`), nil
}

// ask returns the answer to a request; served is false if the path is not that of a document.
func ask(t *testing.T, method, url string, header ...string) (res *http.Response, body string, served bool) {
	r := httptest.NewRequestWithContext(t.Context(), method, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	served = documents.New(registry.Builtins, keys{}).Serve(w, r)
	content, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Result(), string(content), served
}

func TestTheIndexHasAllPaths(t *testing.T) {
	for _, path := range []string{"/", "/index.html"} {
		_, body, _ := ask(t, "POST", path)
		var index struct{ Paths []string }
		require.NoError(t, json.Unmarshal([]byte(body), &index))
		require.IsIncreasing(t, index.Paths)
		require.Subset(t, index.Paths, []string{
			"/api/v1", "/apis/", "/apis/apps", "/apis/apps/v1", "/readyz/informer-sync", "/livez/poststarthook/rbac/bootstrap-roles",
			"/openid/v1/jwks", "/.well-known/openid-configuration",
		})
	}
	for _, path := range []string{"/healthz", "/readyz", "/readyz/nothing", "/readyz/etcd/", "/api", "/openid/v1"} {
		_, _, served := ask(t, "GET", path)
		require.False(t, served, path)
	}
}

func TestEachCheckPasses(t *testing.T) {
	res, body, _ := ask(t, "GET", "/readyz/etcd?verbose")
	require.Equal(t, "ok", body)
	require.Empty(t, res.Header.Get("X-Content-Type-Options"))

	res, body, _ = ask(t, "GET", "/livez?verbose=1")
	require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
	require.True(t, strings.HasPrefix(body, "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]etcd ok\n"), body)
	require.True(t, strings.HasSuffix(body, "\nlivez check passed\n"), body)

	_, body, _ = ask(t, "GET", "/readyz?verbose&exclude=etcd&exclude=b&exclude=a&exclude=a")
	require.Contains(t, body, "[+]etcd excluded: ok\n[+]etcd-readiness ok\n")
	require.Contains(t, body, "warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nreadyz check passed\n")
}

func TestKeysArePublic(t *testing.T) {
	res, body, _ := ask(t, "GET", "http://host:1/.well-known/openid-configuration")
	require.Equal(t, "public, max-age=3600", res.Header.Get("Cache-Control"))
	require.JSONEq(t, `{"issuer":"https://issuer.example","jwks_uri":"http://host:1/openid/v1/jwks","response_types_supported":
		["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`, body)

	res, body, _ = ask(t, "GET", "/openid/v1/jwks")
	require.Equal(t, "application/jwk-set+json", res.Header.Get("Content-Type"))
	require.Contains(t, body, "ES256")
	res, body, _ = ask(t, "GET", "/openid/v1/jwks", "Accept", "application/json")
	require.Equal(t, 406, res.StatusCode)
	require.Contains(t, body, `Available representations: application/jwk-set+json`)
	res, _, _ = ask(t, "DELETE", "/openid/v1/jwks")
	require.Equal(t, 405, res.StatusCode)
}
