package fieldmanager

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// Untyped returns the managers of a kind without types.
func Untyped(k Kind) registry.Managers {
	return New(k, Types{Of: func(schema.GroupVersionKind) (typed.ParseableType, bool) { return untyped(), true }})
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
