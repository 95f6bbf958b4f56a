package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
)

// allowed permits what the strategies of certificates and devices ask for besides the verb of the request. Package rbac
// has the checks that a server makes.
type allowed struct{}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (allowed) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// anyResource resolves the kinds of parameters of policies. The strategies need the resource only to ask whether the
// user may read the parameters, and without an authorizer they do not ask.
var anyResource resolver.ResourceResolverFunc = func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, nil
}

// adminNamespaces lets every namespace use devices in admin mode. The schemas do not see the labels of namespaces.
type adminNamespaces struct{ typedcorev1.NamespaceInterface }

// Get returns a namespace with the label that permits admin mode.
func (adminNamespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{resource.DRAAdminNamespaceLabelKey: "true"},
	}}, nil
}
