package apiclient

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// TypedClient reads and writes whole objects of one resource. Make one with NewTyped. It has the methods of a
// PartialClient, and it creates and updates objects. So T must declare all fields that the objects may have, as
// *corev1.Pod and *unstructured.Unstructured do. It refuses masked objects: see codec.Mask. It implements
// api.ListerWatcher[T] and is safe for concurrent use. It corresponds to PodInterface and similar interfaces of
// client-go, for any type.
type TypedClient[T api.Object] struct {
	PartialClient[T]
}

// NewTyped returns a client of one resource for whole objects of type T. With a namespace, the client accesses only
// that namespace. With "", it lists all namespaces and takes the namespace of an object from the object or its key. It
// panics if c is nil, if r lacks its version or plural name, or if T is not a pointer to a struct.
func NewTyped[T api.Object](c *Client, r api.Resource, namespace string) *TypedClient[T] {
	return &TypedClient[T]{PartialClient: *NewPartial[T](c, r, namespace)}
}

// Create creates an object in its own namespace, or else in the client's, and returns it as the server stored it. Its
// name may be empty if generateName is set.
func (p *TypedClient[T]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	var none T
	key := api.KeyOf(object)
	r, err := p.createRequest(key, &o)
	if err != nil {
		return none, err
	}
	return p.write(ctx, r, object)
}

// Update replaces an object and returns it as the server stored it. If the object on the server has another version
// than the given one, the error is a conflict.
func (p *TypedClient[T]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	return p.update(ctx, object, "", o)
}

// UpdateStatus replaces the status of an object and keeps its spec. Custom resources also keep their metadata. For
// built-in resources, kube-apiserver also stores most metadata, such as the annotations of a Deployment.
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

// write sends a whole object.
func (p *TypedClient[T]) write(ctx context.Context, r request, object T) (T, error) {
	var body []byte
	err := codec.RefuseMasked(object)
	if err == nil {
		body, err = codec.Marshal(object, codec.MediaTypeJSON, p.resource)
	}
	if err != nil {
		var none T
		return none, r.fail(err)
	}
	r.Body, r.ContentType = body, codec.MediaTypeJSON
	return p.one(ctx, r)
}
