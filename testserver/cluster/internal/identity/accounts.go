package identity

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/authentication"
	"k8s.io/kubernetes/pkg/apis/authentication/validation"
	core "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// getter finds the objects that tokens name.
type getter struct{ factory *informers.Factory }

// GetServiceAccount returns a service account.
func (g getter) GetServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	account, err := g.factory.Core().V1().ServiceAccounts().Lister().ServiceAccounts(namespace).Get(name)
	return account, missing("serviceaccounts", name, err)
}

// GetPod returns a pod.
func (g getter) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	return g.factory.Core().V1().Pods().Lister().Pods(namespace).Get(name)
}

// GetSecret returns a secret.
func (g getter) GetSecret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return g.factory.Core().V1().Secrets().Lister().Secrets(namespace).Get(name)
}

// GetNode returns a node.
func (g getter) GetNode(_ context.Context, name string) (*corev1.Node, error) {
	return g.factory.Core().V1().Nodes().Lister().Get(name)
}

// GetValidatingWebhookConfiguration returns a configuration.
func (g getter) GetValidatingWebhookConfiguration(_ context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return g.factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Lister().Get(name)
}

// GetMutatingWebhookConfiguration returns a configuration.
func (g getter) GetMutatingWebhookConfiguration(_ context.Context, name string) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return g.factory.Admissionregistration().V1().MutatingWebhookConfigurations().Lister().Get(name)
}

var tokenRequest = schema.GroupKind{Group: authentication.GroupName, Kind: "TokenRequest"}

// extendedFor is how long a token lives whose pod was admitted with the default lifetime: clients that never read their
// token again then fail after a year instead of an hour, as in kube-apiserver.
const extendedFor = serviceaccount.ExpirationExtensionSeconds

// RequestToken answers a TokenRequest for a service account. It is the Action of serviceaccounts/token.
func (i *Identity) RequestToken(ctx context.Context, a registry.Act) (object.Tree, error) {
	obj, err := typed.Internal(a.Tree)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r := obj.(*authentication.TokenRequest)
	account, err := getter{i.factory}.GetServiceAccount(ctx, a.Key.Namespace, a.Key.Name)
	if err != nil {
		return nil, missing("serviceaccounts", a.Key.Name, err)
	}
	if err := i.complete(r, account); err != nil {
		return nil, err
	}
	bound, err := i.bound(ctx, r, account)
	if err != nil {
		return nil, err
	}
	if r.Status.Token, err = i.sign(ctx, r, account, bound); err != nil {
		return nil, err
	}
	r.Status.ExpirationTimestamp = metav1.NewTime(r.CreationTimestamp.Add(time.Duration(r.Spec.ExpirationSeconds) * time.Second))
	return typed.Tree(r, schema.GroupVersion{Group: authentication.GroupName, Version: "v1"})
}

// complete sets what a request leaves open, and validates it.
func (i *Identity) complete(r *authentication.TokenRequest, account *corev1.ServiceAccount) error {
	path := field.NewPath("metadata")
	switch {
	case r.Name != "" && r.Name != account.Name:
		return apierrors.NewInvalid(tokenRequest, account.Name, field.ErrorList{
			field.Invalid(path.Child("name"), r.Name, "must match the service account name if specified"),
		})
	case r.Namespace != "" && r.Namespace != account.Namespace:
		return apierrors.NewInvalid(tokenRequest, account.Name, field.ErrorList{
			field.Invalid(path.Child("namespace"), r.Namespace, "must match the service account namespace if specified"),
		})
	case r.UID != "" && r.UID != account.UID:
		return apierrors.NewConflict(schema.GroupResource{Group: tokenRequest.Group, Resource: tokenRequest.Kind}, account.Name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", r.UID, account.UID))
	}
	r.Name, r.Namespace, r.UID = account.Name, account.Namespace, account.UID
	r.CreationTimestamp = metav1.Now()
	r.Status = authentication.TokenRequestStatus{}
	if len(r.Spec.Audiences) == 0 {
		r.Spec.Audiences = []string{i.options.Issuer}
	}
	if errs := validation.ValidateTokenRequest(r); len(errs) > 0 {
		return apierrors.NewInvalid(tokenRequest, "", errs)
	}
	return nil
}

// bindings are the objects that a token is bound to.
type bindings struct {
	pod    *core.Pod
	secret *core.Secret
	node   *core.Node
}

// bound returns the objects that the token will be bound to.
func (i *Identity) bound(ctx context.Context, r *authentication.TokenRequest, account *corev1.ServiceAccount) (b bindings, err error) {
	ref := r.Spec.BoundObjectRef
	if ref == nil {
		return b, nil
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	uid := types.UID("")
	switch kind.GroupKind() {
	case core.Kind("Pod"):
		b.pod = &core.Pod{}
		if err := i.read(ctx, "pods", api.Key{Namespace: account.Namespace, Name: ref.Name}, b.pod); err != nil {
			return b, err
		}
		if b.pod.Spec.ServiceAccountName != account.Name {
			return b, apierrors.NewBadRequest(fmt.Sprintf(
				"cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account.Name))
		}
		if name := b.pod.Spec.NodeName; name != "" {
			b.node = &core.Node{}
			if i.read(ctx, "nodes", api.Key{Name: name}, b.node) != nil {
				b.node = &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} // the token names the node anyway
			}
		}
		uid = b.pod.UID
	case core.Kind("Secret"):
		b.secret = &core.Secret{}
		err = i.read(ctx, "secrets", api.Key{Namespace: account.Namespace, Name: ref.Name}, b.secret)
		uid = b.secret.UID
	case core.Kind("Node"):
		b.node = &core.Node{}
		err = i.read(ctx, "nodes", api.Key{Name: ref.Name}, b.node)
		uid = b.node.UID
	default:
		return b, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", kind.String()))
	}
	if err == nil && ref.UID != "" && ref.UID != uid {
		err = apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, ref.Name, fmt.Errorf("the UID "+
			"in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then "+
			"recreated", ref.UID))
	}
	return b, err
}

// read copies an object of the core group into its internal type.
func (i *Identity) read(ctx context.Context, plural string, key api.Key, into runtime.Object) error {
	var (
		from runtime.Object
		err  error
		g    = getter{i.factory}
	)
	switch plural {
	case "pods":
		from, err = g.GetPod(ctx, key.Namespace, key.Name)
	case "secrets":
		from, err = g.GetSecret(ctx, key.Namespace, key.Name)
	default:
		from, err = g.GetNode(ctx, key.Name)
	}
	if err != nil {
		return missing(plural, key.Name, err)
	}
	return legacyscheme.Scheme.Convert(from.DeepCopyObject(), into, nil)
}

// missing returns the 404 of a request for an object. The 404 of a lister has the singular.
func missing(plural, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(core.Resource(plural), name)
	}
	return err
}

// sign returns the token.
func (i *Identity) sign(ctx context.Context, r *authentication.TokenRequest, account *corev1.ServiceAccount, b bindings) (string, error) {
	seconds, warnAfter := r.Spec.ExpirationSeconds, int64(0)
	own := len(r.Spec.Audiences) == 1 && r.Spec.Audiences[0] == i.options.Issuer
	if b.pod != nil && own && seconds == serviceaccount.WarnOnlyBoundTokenExpirationSeconds {
		seconds, warnAfter = extendedFor, seconds
	}
	of := core.ServiceAccount{ObjectMeta: account.ObjectMeta}
	public, private, err := serviceaccount.Claims(of, b.pod, b.secret, b.node, nil, nil, seconds, warnAfter, r.Spec.Audiences,
		r.Spec.Attestations)
	if err != nil {
		return "", err
	}
	token, err := i.generator.GenerateToken(ctx, public, private)
	if err != nil {
		return "", apierrors.NewInternalError(fmt.Errorf("failed to generate token: %v", err))
	}
	return token, nil
}
