package builtin

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/leatproject/leat/testserver/cluster/internal/causes"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// operation is the context of a strategy. It collects the warnings.
type operation struct {
	context.Context
	warnings []string
}

// context returns what a strategy reads from its context: the request, the namespace and the user.
func (s *rules) context(op registry.Operation, verb string, obj runtime.Object) *operation {
	m := metaOf(obj)
	x := &operation{}
	ctx := request.WithNamespace(context.Background(), m.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: s.definition.Group, APIVersion: op.Served,
		Resource: s.definition.Plural, Subresource: op.Subresource, Namespace: m.GetNamespace(), Name: m.GetName(),
	})
	ctx = request.WithUser(ctx, &user.DefaultInfo{
		Name: op.User.Name, UID: op.User.UID, Groups: op.User.Groups, Extra: op.User.Extra,
	})
	x.Context = warning.WithWarningRecorder(ctx, x)
	return x
}

// AddWarning implements warning.Recorder.
func (x *operation) AddWarning(_, text string) { x.warnings = append(x.warnings, text) }

func (x *operation) warn(texts []string) { x.warnings = append(x.warnings, texts...) }

// plainContext is the context of questions that do not depend on a request.
func plainContext(d *registry.Definition) context.Context {
	return request.WithRequestInfo(context.Background(), &request.RequestInfo{
		IsResourceRequest: true, APIGroup: d.Group, APIVersion: d.Version, Resource: d.Plural,
	})
}

func (s *rules) invalid(obj runtime.Object, errs field.ErrorList) error {
	kind := s.stored.GroupKind()
	return causes.Order(apierrors.NewInvalid(kind, metaOf(obj).GetName(), errs))
}

// direct is the strategy of an update by a method in Go, which writes the status with the rest.
type direct struct {
	rest.RESTUpdateStrategy
	status status
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (d direct) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	d.RESTUpdateStrategy.PrepareForUpdate(ctx, obj, old)
	d.status.restore(obj)
}
