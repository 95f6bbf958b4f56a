package webhook

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Operation is the verb of an admission request.
type Operation string

// The operations of admission requests. Defaulters and validators never get Connect, because its object is not a T.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request describes an admission request: the user, the operation and the object. RequestFrom returns it. It
// corresponds to AdmissionRequest of k8s.io/api, without the objects in JSON.
type Request struct {
	// UID identifies this call of the webhook.
	UID types.UID `json:"uid"`
	// Kind and Resource are those that the rules of the configuration name, and SubResource is "status", "scale" or
	// empty. The API server has converted the object to this version.
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	// RequestKind and RequestResource are those of the original request. They differ from Kind and Resource if the
	// client used another version.
	RequestKind     *metav1.GroupVersionKind     `json:"requestKind"`
	RequestResource *metav1.GroupVersionResource `json:"requestResource"`
	// Name is empty if the server is going to generate it. Namespace is empty for a cluster-scoped object.
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	Operation Operation `json:"operation"`
	UserInfo  UserInfo  `json:"userInfo"`
	// DryRun means that nothing will be stored. A webhook must then have no side effects.
	DryRun bool `json:"dryRun"`
	// Options are the CreateOptions, UpdateOptions or DeleteOptions of the original request, in JSON.
	Options json.RawMessage `json:"options"`

	// Old is the object before the change as a T, and nil for Create; see OldObject.
	Old any `json:"-"`
}

// UserInfo describes the user who sent the original request. It corresponds to UserInfo of k8s.io/api.
type UserInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

type requestKey struct{}

// WithRequest returns a context for RequestFrom. A Server passes such a context to defaulters and validators; a test
// makes its own.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFrom returns the request that a defaulter or a validator is called for. It panics if ctx is not from a Server
// and not from WithRequest.
func RequestFrom(ctx context.Context) Request {
	r, ok := ctx.Value(requestKey{}).(Request)
	if !ok {
		panic("webhook: RequestFrom needs the context of a defaulter or validator, or one from WithRequest")
	}
	return r
}

// OldObject returns the object before the change. It reports false for Create. A defaulter needs it, because Default
// has only the new object.
func OldObject[T any](ctx context.Context) (T, bool) {
	old, ok := RequestFrom(ctx).Old.(T)
	return old, ok
}
