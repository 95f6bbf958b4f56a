package builtin

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// validateNew returns the errors of a new object. Most have none, and passes finds that out with less work.
func (s *rules) validateNew(x *operation, op registry.Operation, obj runtime.Object) field.ErrorList {
	if s.passes(x, op, obj) {
		return nil
	}
	return rest.ValidateCreate(x, obj, s.resource.strategy)
}

// handwritten hides the declarative validation of a strategy.
type handwritten struct{ rest.RESTCreateStrategy }

// passes reports whether a new object has no errors. It makes the checks of rest.ValidateCreate. That function also
// copies the whole object, in the version of the request, for the declarative ones.
func (s *rules) passes(x *operation, op registry.Operation, obj runtime.Object) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // ValidateCreate makes an error of it
		}
	}()
	if len(rest.ValidateCreate(x, obj, handwritten{s.resource.strategy})) > 0 {
		return false
	}
	declarative, ok := s.resource.strategy.(rest.DeclarativeValidationStrategy)
	if !ok {
		return true
	}
	spares := s.spares.of(s.kind(op.Target))
	versioned, err := spares.take()
	if err != nil {
		return false
	}
	defer spares.release(versioned)
	if legacyscheme.Scheme.Convert(obj, versioned, nil) != nil {
		return false
	}
	return len(legacyscheme.Scheme.Validate(x, declarative.DeclarativeValidationConfig(x, obj, nil).Options, versioned)) == 0
}

// spares are empty values of one kind, for those that are needed for a short time. A pod has more than 1 KiB without
// its parts.
type spares struct {
	kind schema.GroupVersionKind
	pool sync.Pool
}

// allSpares has the spares of the kinds of a resource.
type allSpares struct{ kinds sync.Map }

func (a *allSpares) of(kind schema.GroupVersionKind) *spares {
	known, ok := a.kinds.Load(kind)
	if !ok {
		known, _ = a.kinds.LoadOrStore(kind, &spares{kind: kind})
	}
	return known.(*spares)
}

func (s *spares) take() (runtime.Object, error) {
	if value, ok := s.pool.Get().(runtime.Object); ok {
		return value, nil
	}
	return legacyscheme.Scheme.New(s.kind)
}

// release ends the use of a value.
func (s *spares) release(value runtime.Object) {
	reflect.ValueOf(value).Elem().SetZero()
	s.pool.Put(value)
}
