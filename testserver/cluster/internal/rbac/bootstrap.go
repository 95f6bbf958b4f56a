package rbac

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// Bootstrap returns the roles and bindings that kube-apiserver creates when it starts, aggregated. They have no kind
// and no apiVersion.
func Bootstrap() []runtime.Object {
	var clusterRoles []*rbacv1.ClusterRole
	for _, r := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()) {
		clusterRoles = append(clusterRoles, &r)
	}
	for changed := Aggregated(clusterRoles); len(changed) > 0; changed = Aggregated(clusterRoles) {
		for i, r := range clusterRoles {
			if n := slices.IndexFunc(changed, func(c *rbacv1.ClusterRole) bool { return c.Name == r.Name }); n >= 0 {
				clusterRoles[i] = changed[n]
			}
		}
	}
	var out []runtime.Object
	for _, r := range clusterRoles {
		out = append(out, r)
	}
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		out = append(out, &b)
	}
	roles, bindings := bootstrappolicy.NamespaceRoles(), bootstrappolicy.NamespaceRoleBindings()
	for _, namespace := range slices.Sorted(maps.Keys(roles)) {
		for _, r := range roles[namespace] {
			out = append(out, &r)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(bindings)) {
		for _, b := range bindings[namespace] {
			out = append(out, &b)
		}
	}
	return out
}

// Plural returns the plural name of the resource of a role or a binding.
func Plural(o runtime.Object) string {
	switch o.(type) {
	case *rbacv1.Role:
		return "roles"
	case *rbacv1.RoleBinding:
		return "rolebindings"
	case *rbacv1.ClusterRole:
		return "clusterroles"
	default:
		return "clusterrolebindings"
	}
}
