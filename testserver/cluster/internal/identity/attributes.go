package identity

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// Info returns a user as the libraries of Kubernetes know it.
func Info(u registry.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// userOf is the inverse of Info.
func userOf(i user.Info) registry.User {
	return registry.User{Name: i.GetName(), UID: i.GetUID(), Groups: i.GetGroups(), Extra: i.GetExtra()}
}

// Attributes returns what an authorizer sees of a request.
func Attributes(a *extension.Attributes) authorizer.Attributes {
	out := authorizer.AttributesRecord{User: Info(a.User), Verb: a.Verb, Path: a.Path}
	if !aboutResource(a) {
		return out
	}
	out.ResourceRequest = true
	out.APIGroup, out.APIVersion, out.Resource = a.Group, a.Served, a.Plural
	out.Subresource, out.Namespace, out.Name = a.Subresource, a.Key.Namespace, a.Key.Name
	return out
}

// aboutResource reports whether a path names a version, and not only a group. The name of its resource may be empty:
// kube-apiserver does not take /api/v1/namespaces/a//secrets for a document either.
func aboutResource(a *extension.Attributes) bool { return a.Served != "" }

// Context returns a context with what the libraries of Kubernetes read from the contexts of requests.
func Context(ctx context.Context, a *extension.Attributes) context.Context {
	info := &request.RequestInfo{Path: a.Path, Verb: a.Verb}
	if aboutResource(a) {
		info.IsResourceRequest = true
		info.APIGroup, info.APIVersion, info.Resource = a.Group, a.Served, a.Plural
		info.Subresource, info.Namespace, info.Name = a.Subresource, a.Key.Namespace, a.Key.Name
	}
	ctx = request.WithRequestInfo(request.WithUser(ctx, Info(a.User)), info)
	return request.WithNamespace(ctx, a.Key.Namespace)
}

// Authorize returns the function that a server calls for an authorizer. The error is that of kube-apiserver.
func Authorize(by authorizer.UnconditionalAuthorizer) func(context.Context, *extension.Attributes) error {
	return func(ctx context.Context, a *extension.Attributes) error {
		attributes := Attributes(a)
		decision, reason, err := by.Authorize(Context(ctx, a), attributes)
		if decision == authorizer.DecisionAllow {
			return nil
		}
		if err != nil {
			return err
		}
		return responsewriters.ForbiddenStatusError(attributes, reason)
	}
}
