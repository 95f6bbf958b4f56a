package definitions_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster/internal/definitions"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// widgets is a definition with one version and every kind of rule.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, uid: d, creationTimestamp: "2026-01-02T03:04:05Z"}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    selectableFields: [{jsonPath: .spec.colour}]
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 10}
              colour: {type: string, enum: [red, green], default: red}
              replicas: {type: integer, default: 1}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, n: {type: integer}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
              amount: {x-kubernetes-int-or-string: true}
              when: {type: string, format: date-time}
              note: {type: string, nullable: true, maxLength: 5, pattern: "^[a-z]*$"}
            x-kubernetes-validations:
            - {rule: "!has(self.note) || self.size < 9", message: big ones have no note}
            - {rule: self.size >= oldSelf.size, message: it may not shrink}
          status: {type: object, properties: {replicas: {type: integer}, selector: {type: string}, phase: {type: string}}}
`

// create returns a CustomResourceDefinition as a server stores it, with all names accepted.
func create(t testing.TB, text string) object.Tree {
	t.Helper()
	tree := submit(t, text)
	for next := definitions.Settle(tree, nil, false); next != nil; next = definitions.Settle(tree, nil, false) {
		tree = next
	}
	return tree
}

// submit returns a CustomResourceDefinition as a client creates it.
func submit(t testing.TB, text string) object.Tree {
	t.Helper()
	schema := newDefinitions(t).Resource().Schema
	tree, problems, err := schema.Decode(registry.Target{Served: "v1"}, "application/yaml", []byte(text))
	require.NoError(t, err)
	require.Empty(t, problems)
	tree, _, err = schema.Create(registry.Operation{Target: registry.Target{Served: "v1"}}, tree)
	require.NoError(t, err)
	return tree
}

func newDefinitions(t testing.TB) *definitions.Definitions {
	t.Helper()
	d := definitions.New(definitions.Options{})
	t.Cleanup(d.Close)
	return d
}

func resource(t testing.TB, text string) *registry.Definition {
	t.Helper()
	d := must.Get(newDefinitions(t).Definition(create(t, text)))(t)
	return d
}

// written decodes a body and creates the object.
func written(d *registry.Definition, version, body string) (stored object.Tree, problems, warnings []string, err error) {
	to := registry.Target{Served: version}
	tree, problems, err := d.Schema.Decode(to, "application/json", []byte(body))
	if err != nil {
		return nil, problems, nil, err
	}
	meta := object.Metadata(tree)
	if d.Namespaced {
		object.SetDefault(meta, "namespace", "default")
	}
	meta["uid"], meta["creationTimestamp"] = "u", "2026-01-02T03:04:05Z"
	stored, warnings, err = d.Schema.Create(registry.Operation{Target: to}, tree)
	return stored, problems, warnings, err
}

func widget(spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":` + spec + `}`
}

func text(t testing.TB, tree any) string {
	t.Helper()
	encoded := must.Get(json.Marshal(tree))(t)
	return string(encoded)
}

func TestCreateSetsDefaultsAndRemovesUnknownFields(t *testing.T) {
	d := resource(t, widgets)
	stored, problems, _, err := written(d, "v1", `{"apiVersion":"example.com/v1","kind":"Widget",
		"metadata":{"name":"a","odd":1},"top":1,
		"spec":{"size":3,"size":4,"unknown":{"x":1},"free":{"any":"thing"},"note":null,"when":null,
			"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","odd":2},"spec":{"deep":1}}},
		"status":{"phase":"ignored"}}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"Widget",
		"metadata":{"name":"a","namespace":"default","uid":"u","creationTimestamp":"2026-01-02T03:04:05Z","generation":1},
		"spec":{"size":4,"colour":"red","replicas":1,"free":{"any":"thing"},"note":null,
			"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{}}}}`, text(t, stored))
	require.Equal(t, []string{
		`duplicate field "spec.size"`, `unknown field "metadata.odd"`, `unknown field "spec.template.spec.deep"`,
		`unknown field "spec.unknown"`, `unknown field "top"`, `unknown field "spec.template.metadata.odd"`,
	}, problems)
}

func TestMessagesOfInvalidObjects(t *testing.T) {
	d := resource(t, widgets)
	for _, c := range []struct{ name, body, want string }{
		{
			"replicas", widget(`{"size":1,"replicas":-1}`),
			`422 Widget.example.com "a" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer`,
		},
		{
			"not JSON", `{"a":`,
			`400 the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input ({"a":)`,
		},
		{
			"no object", `[1]`,
			`400 the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b315d)`,
		},
		{
			"nothing", ``,
			`400 the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, err := written(d, "v1", c.body)
			require.Error(t, err)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			require.Equal(t, c.want, fmt.Sprint(status.Status().Code)+" "+err.Error())
		})
	}
}
