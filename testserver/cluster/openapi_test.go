package cluster_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

func widgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
						Type: "object", Description: "what it should be", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size": {Type: "integer"},
						},
					}},
				}},
			}},
		},
	}
}

// TestOpenAPI reads the documents with client-go, before and after a definition is created.
func TestOpenAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{})
		client := must.Get(discovery.NewDiscoveryClientForConfig(c.Config()))(t)
		paths := must.Get(client.OpenAPIV3().Paths())(t)
		require.Contains(t, paths, "apis/apps/v1")
		require.NotContains(t, paths, "apis/example.com/v1")
		before := paths["apis/apps/v1"].ServerRelativeURL()

		must.Get(c.Server.Create(api.Resource{
			Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
		}, widgets()))(t)
		paths = must.Get(client.OpenAPIV3().Paths())(t)
		require.Equal(t, before, paths["apis/apps/v1"].ServerRelativeURL(), "the hash of another group changed")
		document := must.Get(paths["apis/example.com/v1"].Schema("application/json"))(t)
		require.Contains(t, string(document), "what it should be")
		protobuf := must.Get(paths["apis/example.com/v1"].Schema("application/com.github.proto-openapi.spec.v3@v1.0+protobuf"))(t)
		require.Contains(t, string(protobuf), "what it should be")

		whole := must.Get(client.OpenAPISchema())(t)
		names := map[string]bool{}
		for _, d := range whole.Definitions.AdditionalProperties {
			names[d.Name] = true
		}
		require.True(t, names["com.example.v1.Widget"])
		require.True(t, names["io.k8s.api.core.v1.Pod"])
	})
}

// TestDocumentsAreCached holds what clients need for their caches: tags, hashes and redirects.
func TestDocumentsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{})
		client := c.Server.Client()
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		get := func(path string, header ...string) *http.Response {
			r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, c.Server.URL()+path, nil))(t)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			res := must.Get(client.Do(r))(t)
			must.Get(io.Copy(io.Discard, res.Body))(t)
			require.NoError(t, res.Body.Close())
			return res
		}
		res := get("/openapi/v3/apis/batch/v1")
		require.Equal(t, 200, res.StatusCode)
		tag := res.Header.Get("Etag")
		require.Equal(t, 304, get("/openapi/v3/apis/batch/v1", "If-None-Match", tag).StatusCode)
		hashed := "/openapi/v3/apis/batch/v1?hash=" + tag[1:len(tag)-1]
		require.Equal(t, "public, immutable", get(hashed).Header.Get("Cache-Control"))
		old := get("/openapi/v3/apis/batch/v1?hash=old")
		require.Equal(t, 301, old.StatusCode)
		require.Equal(t, hashed, old.Header.Get("Location"))
		require.Equal(t, 406, get("/openapi/v2", "Accept", "text/html").StatusCode)
		require.Equal(t, "application/json", get("/openapi/v2", "Accept", "text/html, */*;q=0.1").Header.Get("Content-Type"))
		require.Equal(t, 404, get("/openapi/v3/apis/none/v1").StatusCode)
	})
}
