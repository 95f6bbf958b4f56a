package cachedclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
)

// Typed is a Partial that also writes whole objects. So T must declare all fields that the objects may have:
// *corev1.Pod, or *unstructured.Unstructured. Make one with NewTyped.
// It corresponds to client.Client of controller-runtime, for one type.
type Typed[T api.Object] struct {
	Partial[T]
	live *apiclient.TypedClient[T]
}

// NewTyped returns a client for a T that declares all fields. Otherwise it works like NewPartial.
func NewTyped[T api.Object](live *apiclient.TypedClient[T], i *informer.Informer[T], o Options) *Typed[T] {
	if live == nil {
		panic("cachedclient: the API client is nil; it is needed for writes")
	}
	return &Typed[T]{Partial: *newPartial(&live.PartialClient, live, i, o, true), live: live}
}

// Live returns the API client. A Gate and an overlay do not record its writes; see Wrote.
func (c *Typed[T]) Live() *apiclient.TypedClient[T] { return c.live }

// Create creates an object and returns it as the server stored it.
// It corresponds to client.Writer.Create of controller-runtime, which changes its argument.
func (c *Typed[T]) Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error) {
	stored, err := c.live.Create(ctx, object, o)
	return c.recordResult(ctx, stored, err, o.DryRun)
}

// Update replaces an object and returns it as the server stored it. The error is a conflict if the object has changed
// since its version. Do not update with an object that passed the informer's Transform: the server would delete the
// fields that the Transform dropped. It corresponds to client.Writer.Update of controller-runtime.
func (c *Typed[T]) Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	stored, err := c.live.Update(ctx, object, o)
	return c.recordResult(ctx, stored, err, o.DryRun)
}

// UpdateStatus replaces the status of an object and leaves the rest as it is.
// It corresponds to client.StatusWriter.Update of controller-runtime.
func (c *Typed[T]) UpdateStatus(ctx context.Context, object T, o metav1.UpdateOptions) (T, error) {
	stored, err := c.live.UpdateStatus(ctx, object, o)
	return c.recordResult(ctx, stored, err, o.DryRun)
}
