package cachedclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
)

// Typed is a Partial that writes whole objects too, and so T must declare everything that the objects may hold:
// *corev1.Pod, or *unstructured.Unstructured. Make one with NewTyped.
// It corresponds to client.Client of controller-runtime, for one type.
type Typed[T api.Object] struct {
	Partial[T]
	live *apiclient.TypedClient[T]
}

// NewTyped returns a client whose objects are whole in T; otherwise it is as NewPartial.
func NewTyped[T api.Object](live *apiclient.TypedClient[T], i *informer.Informer[T], o Options) *Typed[T] {
	if live == nil {
		panic("cachedclient: an API client is needed to write with")
	}
	return &Typed[T]{Partial: *view(&live.PartialClient, live, i, o, true), live: live}
}

// Live returns the client that writes are sent with.
func (r *Typed[T]) Live() *apiclient.TypedClient[T] { return r.live }

// Create creates an object and returns it as the server stored it.
// It corresponds to client.Writer.Create of controller-runtime, which changes the object that it is given.
func (r *Typed[T]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	stored, err := r.live.Create(ctx, object, o)
	return r.wrote(ctx, stored, err, o.DryRun)
}

// Update replaces an object, and returns it as the server stored it; the error is a conflict if it has changed since
// the version that it carries. Do not update with what came through an informer's Transform: what that dropped would be
// deleted. It corresponds to client.Writer.Update of controller-runtime.
func (r *Typed[T]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	stored, err := r.live.Update(ctx, object, o)
	return r.wrote(ctx, stored, err, o.DryRun)
}

// UpdateStatus replaces the status of an object, and nothing else of it.
// It corresponds to client.StatusWriter.Update of controller-runtime.
func (r *Typed[T]) UpdateStatus(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	stored, err := r.live.UpdateStatus(ctx, object, o)
	return r.wrote(ctx, stored, err, o.DryRun)
}
