package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	configMaps  = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	pods        = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	deployments = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
)

const (
	configMapBody = `{"data":{"a":"b"}}`
	podBody       = `{"spec":{"nodeName":"n1","containers":[{"name":"c","image":"registry.example/app:1"}]}}`
	deployBody    = `{"spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"template":
		{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"registry.example/app:1"}]}}}}`
)

type labelSet = map[string]string

// collection is the objects of one resource in a namespace of its own. It is written and listed with only net/http and
// encoding/json, so that leat is never compared with itself.
type collection struct {
	resource  api.Resource
	namespace string
	body      map[string]any // of every object, without its metadata
	marks     atomic.Int64
	markLabel labelSet // of the marks, which must match the followed selection
}

var namespaces atomic.Int64

// newCollection creates a namespace for objects of a resource. The JSON of body is the content of each object.
func newCollection(t *testing.T, resource api.Resource, body string) *collection {
	t.Helper()
	c := &collection{resource: resource, namespace: fmt.Sprintf("leat-%d", namespaces.Add(1))}
	require.NoError(t, json.Unmarshal([]byte(body), &c.body))
	must.Get(server.Must(t.Context(), http.MethodPost, "/api/v1/namespaces", namespaceBody(c.namespace)))(t)
	return c
}

func namespaceBody(name string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name)
}

// path returns the path of the collection, of an object, or of a subresource. Empty parts are skipped.
func (c *collection) path(name ...string) string {
	prefix := "/api/" + c.resource.Version
	if c.resource.Group != "" {
		prefix = "/apis/" + c.resource.Group + "/" + c.resource.Version
	}
	return path.Join(append([]string{prefix, "namespaces", c.namespace, c.resource.Plural}, name...)...)
}

// create creates an object and returns its version.
func (c *collection) create(ctx context.Context, name string, labels labelSet) (version string, err error) {
	object := maps.Clone(c.body)
	object["apiVersion"], object["kind"] = c.resource.GroupVersion().String(), c.resource.Kind
	object["metadata"] = map[string]any{"name": name, "labels": labels}
	return c.write(ctx, http.MethodPost, c.path(), object)
}

// annotate changes an object and returns its version.
func (c *collection) annotate(ctx context.Context, name, value string) (version string, err error) {
	return c.patch(ctx, name, map[string]any{"metadata": map[string]any{"annotations": labelSet{"leat.example/value": value}}})
}

// patch merges v into an object and returns its version.
func (c *collection) patch(ctx context.Context, name string, v any) (version string, err error) {
	return c.write(ctx, http.MethodPatch, c.path(name), v)
}

// delete deletes an object without a grace period.
func (c *collection) delete(ctx context.Context, name string) error {
	_, err := server.Must(ctx, http.MethodDelete, c.path(name), []byte(`{"gracePeriodSeconds":0}`))
	return err
}

func (c *collection) write(ctx context.Context, method, path string, body any) (version string, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	answer, err := server.Must(ctx, method, path, b)
	if err != nil {
		return "", err
	}
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.Unmarshal(answer, &object)
	return object.Metadata.ResourceVersion, err
}

// mark creates one more object and returns its version. A cache with this version has all earlier changes.
func (c *collection) mark(t *testing.T) (version string) {
	t.Helper()
	name := fmt.Sprintf("mark-%d", c.marks.Add(1))
	require.NoError(t, eventually(t.Context(), func() (err error) {
		version, err = c.create(t.Context(), name, c.markLabel)
		return err
	}))
	return version
}

// list returns the objects that match the selectors, from one consistent list without pages.
func (c *collection) list(t *testing.T, labels, fields string) []json.RawMessage {
	t.Helper()
	return must.Get(c.items(t.Context(), url.Values{"labelSelector": {labels}, "fieldSelector": {fields}}))(t)
}

func (c *collection) items(ctx context.Context, query url.Values) ([]json.RawMessage, error) {
	answer, err := server.Must(ctx, http.MethodGet, c.path()+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []json.RawMessage }
	err = json.Unmarshal(answer, &list)
	return list.Items, err
}

// customResource defines a resource of the group example.leat. Its spec accepts anything, its status is a subresource,
// and spec.color can be selected by field.
func customResource(t *testing.T, kind string) api.Resource {
	t.Helper()
	r := api.Resource{Group: "e2e.leat.example", Version: "v1", Kind: kind, Plural: strings.ToLower(kind) + "s", Namespaced: true}
	definition := fmt.Sprintf(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%[2]s.%[1]s"},
		"spec": {"group": %[1]q, "scope": "Namespaced", "names": {"plural": %[2]q, "singular": %[4]q, "kind": %[3]q},
			"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
				"selectableFields": [{"jsonPath": ".spec.color"}],
				"schema": {"openAPIV3Schema": {"type": "object", "properties": {
					"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
						"properties": {"color": {"type": "string"}, "size": {"type": "integer"}}},
					"status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}`,
		r.Group, r.Plural, kind, strings.ToLower(kind))
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	_, err := server.Must(t.Context(), http.MethodPost, definitions, []byte(definition))
	if !hasCode(err, http.StatusConflict) { // it remains from an earlier test
		require.NoError(t, err)
	}
	require.NoError(t, eventually(t.Context(), func() error {
		_, err := server.Must(t.Context(), http.MethodGet, "/apis/"+r.Group+"/v1/"+r.Plural, nil)
		return err
	}))
	return r
}
