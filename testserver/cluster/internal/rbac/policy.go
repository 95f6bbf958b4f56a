package rbac

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/leatproject/leat/testserver/cluster/internal/informers"
)

// Policy authorizes members of system:masters, and what roles and bindings allow.
type Policy struct {
	authorizer.Authorizer
	authorizer.RuleResolver

	rules  *validation.DefaultRuleResolver
	checks checks

	factory *informers.Factory
}

// New returns the policy of a server.
func New(f *informers.Factory) *Policy {
	v1 := f.Rbac().V1()
	source := source{
		roles: v1.Roles().Lister(), clusterRoles: v1.ClusterRoles().Lister(),
		bindings: v1.RoleBindings().Lister(), clusterBindings: v1.ClusterRoleBindings().Lister(),
	}
	roles := rbac.New(source, source, source, source)
	p := &Policy{
		Authorizer: authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
				return authorizer.DecisionAllow, "", nil
			}
			return roles.Authorize(ctx, a)
		}),
		RuleResolver: roles,
		rules:        validation.NewDefaultRuleResolver(source, source, source, source),
	}
	p.checks, p.factory = newChecks(p), f
	return p
}

// source gives the rules of Kubernetes access to roles and bindings.
type source struct {
	roles           listers.RoleLister
	clusterRoles    listers.ClusterRoleLister
	bindings        listers.RoleBindingLister
	clusterBindings listers.ClusterRoleBindingLister
}

// GetRole returns a role.
func (s source) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	return s.roles.Roles(namespace).Get(name)
}

// GetClusterRole returns a cluster role.
func (s source) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	return s.clusterRoles.Get(name)
}

// ListRoleBindings returns the bindings of a namespace.
func (s source) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return s.bindings.RoleBindings(namespace).List(labels.Everything())
}

// ListClusterRoleBindings returns the bindings without a namespace.
func (s source) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return s.clusterBindings.List(labels.Everything())
}
