package testserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

var boxes = api.Resource{Group: "leat.example", Version: "v1", Kind: "Box", Plural: "boxes", Namespaced: true}

// plainSchema accepts every object. during runs inside the next Update, as if it took long.
type plainSchema struct{ during func() }

func (*plainSchema) Decode(_ registry.Target, _ string, body []byte) (object.Tree, []string, error) {
	tree, err := object.Decode(body)
	return tree, nil, err
}

func (*plainSchema) Create(_ registry.Operation, tree object.Tree) (object.Tree, []string, error) {
	return tree, []string{"a new box"}, nil
}

func (s *plainSchema) Update(_ registry.Operation, _, tree object.Tree) (object.Tree, []string, error) {
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	if tree["size"] == "too large" {
		return nil, nil, apierrors.NewBadRequest("too large")
	}
	return tree, nil, nil
}

func (*plainSchema) Convert(served string, stored object.Tree) (object.Tree, error) {
	tree := runtime.DeepCopyJSON(stored)
	tree["kind"], tree["apiVersion"] = boxes.Kind, boxes.Group+"/"+served
	return tree, nil
}

func (*plainSchema) Encode(string, object.Tree) ([]byte, error) { panic("only JSON is offered") }
func (*plainSchema) MediaTypes() []string                       { return []string{"application/json"} }

// typedServer returns a running server with a resource that has a Schema, and one object of it.
func typedServer(t *testing.T) (*testserver.Server, *plainSchema) {
	schema := &plainSchema{}
	d := &registry.Definition{Settings: registry.Settings{Resource: boxes}, Schema: schema}
	s := testserver.NewExtended(testserver.Options{}, extension.Extension{Resources: append(registry.Builtins(), d)})
	go func() { _ = s.Run(t.Context()) }()
	must.Get(s.Create(boxes, &unstructured.Unstructured{Object: object.Tree{
		"metadata": object.Tree{"namespace": "default", "name": "a"}, "size": "small",
	}}))(t)
	return s, schema
}

// send returns the status code of a request for the box.
func send(t *testing.T, s *testserver.Server, method, mediaType, body string) int {
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/apis/leat.example/v1/namespaces/default/boxes/a", strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", mediaType)
	res, err := s.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}

func TestTypedWriteBeginsAgainWhenTheObjectChanged(t *testing.T) {
	s, schema := typedServer(t)
	key := api.Key{Namespace: "default", Name: "a"}
	label := func() {
		must.Get(s.Edit(boxes, key, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"by": "another"}) }))(t)
	}
	schema.during = label
	require.Equal(t, http.StatusOK, send(t, s, http.MethodPatch, "application/merge-patch+json", `{"size":"large"}`))
	box := must.Get(s.Get(boxes, key))(t)
	require.Equal(t, "large", box.Object["size"])
	require.Equal(t, map[string]string{"by": "another"}, box.GetLabels(), "the patch must not undo the other write")

	schema.during = func() {
		must.Get(s.Edit(boxes, key, func(u *unstructured.Unstructured) { u.SetLabels(nil) }))(t)
	}
	box.Object["size"] = "medium"
	body := must.Get(box.MarshalJSON())(t)
	require.Equal(t, http.StatusConflict, send(t, s, http.MethodPut, "application/json", string(body)))
}

func TestTypedWriteThatIsRefusedStoresNothing(t *testing.T) {
	s, _ := typedServer(t)
	before := s.ResourceVersion()
	require.Equal(t, http.StatusBadRequest, send(t, s, http.MethodPatch, "application/merge-patch+json", `{"size":"too large"}`))
	require.Equal(t, http.StatusUnsupportedMediaType, send(t, s, http.MethodPut, "application/yaml", `size: x`))
	require.Equal(t, before, s.ResourceVersion())
}

func TestTypedWriteThatChangesNothingStoresNothing(t *testing.T) {
	s, _ := typedServer(t)
	before := s.ResourceVersion()
	require.Equal(t, http.StatusOK, send(t, s, http.MethodPatch, "application/merge-patch+json", `{"size":"small"}`))
	require.Equal(t, before, s.ResourceVersion())
}
