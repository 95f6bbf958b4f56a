package apiclient

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// TypedClient reads and writes whole objects of one resource. Make one with NewTyped. Beyond what a PartialClient can
// do it creates and updates, and so T must declare everything that the objects may hold: *corev1.Pod, or
// *unstructured.Unstructured. It implements api.ListerWatcher[T] and is safe for concurrent use. It corresponds to the
// PodInterface and its like of client-go, for any type.
type TypedClient[T api.Object] struct {
	PartialClient[T]
}

// NewTyped returns a client of one resource whose objects are whole in T. With a namespace it is confined to that, with
// "" it lists all and takes the namespace of an object from the object or its key. It panics when c is nil, when r
// lacks its version or plural name, and when T is not a pointer to a struct.
func NewTyped[T api.Object](c *Client, r api.Resource, namespace string) *TypedClient[T] {
	return &TypedClient[T]{PartialClient: *NewPartial[T](c, r, namespace)}
}

// Create creates an object, in its own namespace or else the client's, and returns it as the server stored it. Its name
// may be empty if it says what to generate one from.
func (p *TypedClient[T]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	var none T
	key := api.KeyOf(object)
	r, err := p.createRequest(key, &o)
	if err != nil {
		return none, err
	}
	return p.write(ctx, r, object)
}

// Update replaces an object. The server refuses it with a conflict when the object changed since the version that it
// carries. It returns the object as the server stored it.
func (p *TypedClient[T]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return p.update(ctx, object, "", o)
}

// UpdateStatus replaces the status of an object and leaves its spec alone. Custom resources keep their metadata, too.
// Of built-in resources kube-apiserver takes most metadata along with the status: a Deployment's annotations, for
// example.
func (p *TypedClient[T]) UpdateStatus(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return p.update(ctx, object, "status", o)
}

func (p *TypedClient[T]) update(ctx context.Context, object T, subresource string, o metav1.UpdateOptions) (T, error) {
	r, err := p.objectRequest("update", http.MethodPut, api.KeyOf(object), subresource, &o)
	if err != nil {
		var none T
		return none, err
	}
	return p.write(ctx, r, object)
}

// write sends an object whole.
func (p *TypedClient[T]) write(ctx context.Context, r request, object T) (T, error) {
	body, err := codec.Marshal(object, codec.MediaTypeJSON, p.resource)
	if err != nil {
		var none T
		return none, r.fail(err)
	}
	r.body, r.contentType = body, codec.MediaTypeJSON
	return p.one(ctx, r)
}
