package openapi

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// typeCache has the types of the kinds that this process uses. Most servers use few of them, and all together would
// take 40 times as long as one.
var typeCache = struct {
	mu    sync.Mutex // guards the field below
	types map[schema.GroupVersionKind]typed.ParseableType
}{types: map[schema.GroupVersionKind]typed.ParseableType{}}

// TypeOf returns the type of a built-in kind; ok is false if there is no such kind. The first call in a process takes
// about 15 ms, because it builds all definitions; the first call for another kind takes about 1 ms.
func TypeOf(gvk schema.GroupVersionKind) (t typed.ParseableType, ok bool) {
	typeCache.mu.Lock()
	defer typeCache.mu.Unlock()
	if t, ok := typeCache.types[gvk]; ok {
		return t, true
	}
	schemas, err := Schemas(gvk)
	if err != nil {
		return t, false
	}
	parser, err := Parser(schemas)
	if err != nil {
		return t, false
	}
	sample, err := NewObject(gvk)
	if err != nil {
		return t, false
	}
	name, _ := configV3().GetDefinitionName(util.GetCanonicalTypeName(sample))
	t = parser.Type(name)
	typeCache.types[gvk] = t
	return t, true
}

// Schemas returns the definition of a built-in kind, with those that it refers to.
func Schemas(gvk schema.GroupVersionKind) (map[string]*spec.Schema, error) {
	sample, err := NewObject(gvk)
	if err != nil {
		return nil, err
	}
	return builder3.BuildOpenAPIDefinitionsForResources(configV3(), util.GetCanonicalTypeName(sample))
}

// Parser returns the types that schemas describe.
func Parser(schemas map[string]*spec.Schema) (*typed.Parser, error) {
	converted, err := schemaconv.ToSchemaFromOpenAPI(schemas, false)
	if err != nil {
		return nil, err
	}
	return &typed.Parser{Schema: smd.Schema{Types: converted.Types}}, nil
}
