package cachedclient

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

// scope is the part of a collection that an informer caches, or that a DeleteCollection selects.
type scope[T api.Object] struct {
	namespace string // empty means all
	labels    labels.Selector
	fields    fields.Selector
	selects   func(T) bool // nil unless the source has objects of a shard only
	whole     bool         // T declares all fields that the objects may have
}

// labeled is an object with labels.
type labeled interface{ GetLabels() map[string]string }

// scopeOf returns the scope of an informer.
func scopeOf[T api.Object](i *informer.Informer[T]) scope[T] {
	o := i.Options()
	s := parseSelectors[T](o.Selector.Labels, o.Selector.Fields)
	s.namespace = i.ListerWatcher().Collection().Namespace
	if shard, ok := api.As[informer.Sharded[T]](i.ListerWatcher()); ok {
		s.selects = shard.Selects
	}
	return s
}

// parseSelectors returns the scope of two selectors. A selector that cannot be parsed selects everything, because the
// server rejects it anyway.
func parseSelectors[T api.Object](byLabels, byFields string) scope[T] {
	s := scope[T]{labels: labels.Everything(), fields: fields.Everything()}
	if parsed, err := labels.Parse(byLabels); err == nil {
		s.labels = parsed
	}
	if parsed, err := fields.ParseSelector(byFields); err == nil {
		s.fields = parsed
	}
	return s
}

// includesNamespace reports whether a namespace is in the scope. The empty namespace always is.
func (s scope[T]) includesNamespace(namespace string) bool {
	return s.namespace == "" || namespace == "" || s.namespace == namespace
}

// includes reports whether an object is in the scope. A selector matches if T does not declare its labels or fields, or
// if the object is masked: then a Gate may wait until its timeout, which is better than a read of a stale state.
func (s scope[T]) includes(object T) bool {
	if !s.includesNamespace(object.GetNamespace()) || s.selects != nil && !s.selects(object) {
		return false
	}
	if codec.RefuseMasked(object) != nil {
		return true
	}
	if l, ok := any(object).(labeled); ok && !s.labels.Matches(labels.Set(l.GetLabels())) {
		return false
	}
	return s.fields.Empty() || s.matchesFields(object)
}

// matchesFields reports whether the field selector matches. It takes the name of a field as the path in the JSON of the
// object, which is right for nearly all selectable fields. If T is whole, a missing field is empty, as on a server;
// otherwise its value is unknown and matches.
func (s scope[T]) matchesFields(object T) bool {
	tree, err := treeOf(object)
	if err != nil {
		return true
	}
	for _, requirement := range s.fields.Requirements() {
		value, declared := valueAt(tree, strings.Split(requirement.Field, "."))
		if (declared || s.whole) && (value == requirement.Value) == (requirement.Operator == selection.NotEquals) {
			return false
		}
	}
	return true
}

// valueAt returns the value at a path in the notation of a field selector. It does not find objects and lists.
func valueAt(tree map[string]any, path []string) (value string, found bool) {
	switch below := tree[path[0]].(type) {
	case nil, []any:
	case map[string]any:
		if len(path) > 1 {
			return valueAt(below, path[1:])
		}
	default:
		if len(path) == 1 {
			return fmt.Sprint(below), true
		}
	}
	return "", false
}
