package cachedclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
)

// scope is what of a collection an informer holds.
type scope[T api.Object] struct {
	namespace string // empty for all
	labels    labels.Selector
	fields    fields.Selector
	whole     bool // T declares everything that an object may hold
}

// scopeOf asks an informer.
func scopeOf[T api.Object](i *informer.Informer[T]) scope[T] {
	o := i.Options()
	s := selecting[T](o.LabelSelector, o.FieldSelector)
	if confined, ok := i.ListerWatcher().(interface{ Namespace() string }); ok {
		s.namespace = confined.Namespace()
	}
	return s
}

// selecting reads selectors. One that cannot be parsed excludes nothing here; the server refuses it anyway.
func selecting[T api.Object](byLabels, byFields string) scope[T] {
	s := scope[T]{labels: labels.Everything(), fields: fields.Everything()}
	if parsed, err := labels.Parse(byLabels); err == nil {
		s.labels = parsed
	}
	if parsed, err := fields.ParseSelector(byFields); err == nil {
		s.fields = parsed
	}
	return s
}

// reaches tells whether a namespace is held; the empty one stands for whatever is.
func (s scope[T]) reaches(namespace string) bool {
	return s.namespace == "" || namespace == "" || s.namespace == namespace
}

// holds tells whether an object belongs into the cache. What T does not declare cannot be asked for and counts as
// selected, because to wait in vain is bounded, and to read a stale state is not.
func (s scope[T]) holds(object T) bool {
	if !s.reaches(object.GetNamespace()) {
		return false
	}
	if labeled, ok := any(object).(cache.Labeled); ok && !s.labels.Matches(labels.Set(labeled.GetLabels())) {
		return false
	}
	return s.fields.Empty() || s.selectsFields(object)
}

// selectsFields takes the name of a field for the path to it, as nearly all are. A field that is left out is empty, as
// on a server, if T declares everything; otherwise nothing is known of it.
func (s scope[T]) selectsFields(object T) bool {
	written, err := json.Marshal(object)
	var tree map[string]any
	if err != nil || json.Unmarshal(written, &tree) != nil {
		return true
	}
	for _, requirement := range s.fields.Requirements() {
		value, declared := valueAt(tree, strings.Split(requirement.Field, "."))
		if (declared || s.whole) && (value == requirement.Value) == (requirement.Operator == "!=") {
			return false
		}
	}
	return true
}

// valueAt returns the value of a field as a selector writes it.
func valueAt(tree map[string]any, path []string) (value string, found bool) {
	switch below := tree[path[0]].(type) {
	case nil, []any:
		return "", false
	case map[string]any:
		if len(path) == 1 {
			return "", false
		}
		return valueAt(below, path[1:])
	default:
		return fmt.Sprint(below), len(path) == 1
	}
}
