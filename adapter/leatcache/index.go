package leatcache

import (
	"fmt"
	"sync"

	"go.uber.org/zap"
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
	var logged sync.Once
	for _, s := range of.scopes {
		index.scopes[s] = informer.AddIndex(s.informer, func(object client.Object) []fieldValue {
			defer func() {
				if p := recover(); p != nil {
					logged.Do(func() { of.cache.indexFailed(of, field, object, p) })
					panic(p) // the index leaves the object out
				}
			}()
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

// indexFailed logs the first panic of an index function. The others would mostly repeat it.
func (c *Cache) indexFailed(of *collection, field string, object client.Object, reason any) {
	err := fmt.Errorf("the index function panicked: %v", reason)
	const message = "reads by a field lack an object"
	key := client.ObjectKeyFromObject(object).String()
	if log := c.own.Logger; log != nil {
		log.Error(message, zap.NamedError("err", err), zap.Stringer("resource", of.resource), zap.String("field", field), zap.String("key", key))
		return
	}
	logger.Error(err, message, "kind", of.key.gvk.String(), "field", field, "object", key)
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
