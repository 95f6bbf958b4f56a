package identity

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/authentication"
	"k8s.io/kubernetes/pkg/apis/authorization"
	"k8s.io/kubernetes/pkg/registry/authentication/selfsubjectreview"
	"k8s.io/kubernetes/pkg/registry/authentication/tokenreview"
	"k8s.io/kubernetes/pkg/registry/authorization/localsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview"
	"k8s.io/kubernetes/pkg/registry/authorization/subjectaccessreview"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// reviews returns the actions of the resources that answer questions about tokens and access.
func (i *Identity) reviews() map[schema.GroupResource]registry.Action {
	by, scheme := i.options.Authorizer, legacyscheme.Scheme
	storages := map[schema.GroupResource]rest.Creater{
		authentication.Resource("tokenreviews"):             tokenreview.NewREST(i.tokens, []string{i.options.Issuer}),
		authentication.Resource("selfsubjectreviews"):       selfsubjectreview.NewREST(),
		authorization.Resource("subjectaccessreviews"):      subjectaccessreview.NewREST(by, scheme),
		authorization.Resource("selfsubjectaccessreviews"):  selfsubjectaccessreview.NewREST(by, scheme),
		authorization.Resource("localsubjectaccessreviews"): localsubjectaccessreview.NewREST(by, scheme),
		authorization.Resource("selfsubjectrulesreviews"):   selfsubjectrulesreview.NewREST(i.options.Rules),
	}
	out := map[schema.GroupResource]registry.Action{}
	for gr, storage := range storages {
		out[gr] = act(gr, storage)
	}
	return out
}

// act returns the action of a storage of Kubernetes.
func act(gr schema.GroupResource, storage rest.Creater) registry.Action {
	return func(ctx context.Context, a registry.Act) (object.Tree, error) {
		obj, err := typed.Internal(a.Tree)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		ctx = Context(ctx, &extension.Attributes{
			Group: gr.Group, Served: a.Served, Plural: gr.Resource, Verb: "create", Key: a.Key, User: a.User,
		})
		admit := func(context.Context, runtime.Object) error { return a.Validate() }
		answer, err := storage.Create(ctx, obj, admit, &metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return typed.Tree(answer, schema.GroupVersion{Group: gr.Group, Version: a.Served})
	}
}
