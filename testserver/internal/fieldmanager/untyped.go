package fieldmanager

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Untyped returns the managers of a kind without types.
func Untyped(k Kind) registry.Managers {
	return untypedManagers{New(k, Types{Of: func(schema.GroupVersionKind) (typed.ParseableType, bool) { return untyped(), true }})}
}

// untypedManagers keeps empty objects. Without types, the library makes them null, so the second of two equal
// configurations would change the object.
type untypedManagers struct{ registry.Managers }

// Applied implements registry.Managers.
func (m untypedManagers) Applied(by registry.Manager, live, configuration object.Tree, force bool) (object.Tree, error) {
	after, err := m.Managers.Applied(by, live, configuration, force)
	if err == nil {
		keepEmpty(after, configuration)
	}
	return after, err
}

// keepEmpty puts an empty object where a configuration has one and the result has null.
func keepEmpty(after, configuration object.Tree) {
	for name, value := range configuration {
		configured, ok := value.(object.Tree)
		if !ok {
			continue
		}
		if after[name] == nil {
			after[name] = object.Tree{}
		}
		if have, ok := after[name].(object.Tree); ok {
			keepEmpty(have, configured)
		}
	}
}

// untyped returns the type of objects of which only the metadata are known.
var untyped = sync.OnceValue(func() typed.ParseableType {
	parser, err := typed.NewParser(untypedSchema)
	if err != nil {
		panic(fmt.Sprintf("testserver: parse the type of objects without types: %v", err))
	}
	return parser.Type("object")
})

// untypedSchema has the lists of metadata as the OpenAPI document of Kubernetes describes them: finalizers are a set,
// and each owner is one value that its UID identifies. The last two types are what kube-apiserver uses for unknown
// fields.
const untypedSchema = `types:
- name: object
  map:
    fields:
    - name: metadata
      type: {namedType: metadata}
    elementType: {namedType: deduced}
- name: metadata
  map:
    fields:
    - name: finalizers
      type: {list: {elementType: {scalar: string}, elementRelationship: associative}}
    - name: ownerReferences
      type: {list: {elementType: {namedType: owner}, elementRelationship: associative, keys: [uid]}}
    elementType: {namedType: deduced}
- name: owner
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
- name: deduced
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: deduced}, elementRelationship: separable}
`
