package rbac

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/rbac"
	clusterrole "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased"
	clusterrolebinding "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased"
	role "k8s.io/kubernetes/pkg/registry/rbac/role/policybased"
	rolebinding "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased"

	"github.com/leatproject/leat/testserver/cluster/internal/identity"
	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/extension"
)

// writes are the storages of Kubernetes that check writes of one resource before they store the object.
type writes interface {
	Create(context.Context, runtime.Object, rest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error)
	Update(context.Context, string, rest.UpdatedObjectInfo, rest.ValidateObjectFunc, rest.ValidateObjectUpdateFunc,
		bool, *metav1.UpdateOptions) (runtime.Object, bool, error)
}

// checks are the storages by resource.
type checks map[schema.GroupResource]func(rest.StandardStorage) writes

func newChecks(p *Policy) checks {
	return checks{
		rbac.Resource("roles"): func(s rest.StandardStorage) writes {
			return role.NewStorage(s, p.Authorizer, p.rules)
		},
		rbac.Resource("clusterroles"): func(s rest.StandardStorage) writes {
			return clusterrole.NewStorage(s, p.Authorizer, p.rules)
		},
		rbac.Resource("rolebindings"): func(s rest.StandardStorage) writes {
			return rolebinding.NewStorage(s, p.Authorizer, p.rules)
		},
		rbac.Resource("clusterrolebindings"): func(s rest.StandardStorage) writes {
			return clusterrolebinding.NewStorage(s, p.Authorizer, p.rules)
		},
	}
}

// unstored is a storage below the checks. It stores nothing.
type unstored struct {
	rest.StandardStorage // nil: the methods that the checks do not call
	old                  runtime.Object
}

// Create accepts an object that was checked.
func (unstored) Create(_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, nil
}

// Update runs the checks of an update.
func (u unstored) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	_ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, err := info.UpdatedObject(ctx, u.old)
	return obj, false, err
}

// CheckEscalation returns the error of kube-apiserver if a write of a role or a binding gives rights that the user does
// not have. Other writes pass.
func (p *Policy) CheckEscalation(ctx context.Context, a *extension.Attributes) error {
	if a.Resource == nil || a.Object == nil || a.Subresource != "" {
		return nil
	}
	check := p.checks[a.Resource.GroupResource()]
	if check == nil {
		return nil
	}
	obj, err := typed.Internal(a.Object)
	if err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	ctx = identity.Context(ctx, a)
	if a.Old == nil {
		_, err = check(unstored{}).Create(ctx, obj, nil, &metav1.CreateOptions{})
		return err
	}
	old, err := typed.Internal(a.Old)
	if err != nil {
		return fmt.Errorf("rbac: %w", err)
	}
	_, _, err = check(unstored{old: old}).Update(ctx, a.Key.Name, rest.DefaultUpdatedObjectInfo(obj), nil, nil, false,
		&metav1.UpdateOptions{})
	return err
}
