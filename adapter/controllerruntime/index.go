package leatcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	leat "github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
)

// fieldValue is a value of a field in a namespace, or in all namespaces if namespace is empty.
type fieldValue struct{ namespace, value string }

// fieldIndex is the index of a field in each scope.
type fieldIndex struct {
	scopes map[*scope]*leat.Index[client.Object, fieldValue]
}

// indexField adds the index of a field.
func (of *collection) indexField(field string, values client.IndexerFunc) error {
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.fields[field] != nil {
		return fmt.Errorf("leatcache: the field %q of %s has an index already", field, of.resource)
	}
	if of.removed.Err() != nil {
		return of.errStopped()
	}
	index := &fieldIndex{map[*scope]*leat.Index[client.Object, fieldValue]{}}
	for _, s := range of.scopes {
		index.scopes[s] = informer.AddIndex(s.informer, func(object client.Object) []fieldValue {
			namespace := object.GetNamespace()
			var found []fieldValue
			for _, value := range values(object) {
				found = append(found, fieldValue{"", value})
				if namespace != "" {
					found = append(found, fieldValue{namespace, value})
				}
			}
			return found
		})
	}
	of.fields[field] = index
	return nil
}

// requirement is a value that an object must have.
type requirement struct {
	index *fieldIndex
	exact string
}

func (r requirement) value(namespace string) fieldValue { return fieldValue{namespace, r.exact} }

// requirements returns what a selector requires. Each term needs an index.
func (of *collection) requirements(selector fields.Selector) ([]requirement, error) {
	if selector == nil {
		return nil, nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	var wanted []requirement
	for _, r := range selector.Requirements() {
		if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil, fmt.Errorf("leatcache: the field selector %q has another operator than =; a cache finds only exact values", selector)
		}
		index := of.fields[r.Field]
		if index == nil {
			return nil, fmt.Errorf("leatcache: the field %q of %s has no index; add it with IndexField", r.Field, of.resource)
		}
		wanted = append(wanted, requirement{index, r.Value})
	}
	return wanted, nil
}
