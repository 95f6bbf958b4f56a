package client

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// Delete deletes an object, or marks it for deletion where finalizers or a grace period hold it. Give the UID of the object
// that is meant as a precondition, lest another of the same name is deleted.
// It corresponds to client.Writer.Delete of controller-runtime.
func (p *Projection[T]) Delete(ctx context.Context, key api.Key, o metav1.DeleteOptions) error {
	key = p.complete(key)
	meant := p.meant(key, o)
	d, err := p.live.DeleteObject(ctx, key, o)
	if err != nil || len(o.DryRun) > 0 || p.informer == nil {
		return err
	}
	if d.Waits {
		p.Wrote(ctx, d.Object)
		return nil
	}
	if uid := cmp.Or(d.UID, meant); uid != "" {
		p.deleted(ctx, key, uid, versionOf(d.Object))
	}
	return nil
}

// versionOf returns the version of an object that may be nil.
func versionOf[T api.Object](object T) string {
	var none T
	if any(object) == any(none) {
		return ""
	}
	return object.GetResourceVersion()
}

// meant is the UID that a deletion is about, as far as can be told before.
func (p *Projection[T]) meant(key api.Key, o metav1.DeleteOptions) types.UID {
	switch {
	case o.Preconditions != nil && o.Preconditions.UID != nil:
		return *o.Preconditions.UID
	case p.informer == nil:
		return ""
	}
	return uidOf(p.cached(key))
}

// Patch changes a part of an object and returns what became of it.
// It corresponds to client.Writer.Patch of controller-runtime.
func (p *Projection[T]) Patch(ctx context.Context, key api.Key, patch apiclient.Patch, o apiclient.PatchOptions) (T, error) {
	object, err := p.live.Patch(ctx, p.complete(key), patch, o)
	return p.wrote(ctx, object, err, o.DryRun)
}

// Apply is a server-side apply; see apiclient.Projection.Apply.
// It corresponds to client.Writer.Apply of controller-runtime.
func (p *Projection[T]) Apply(ctx context.Context, key api.Key, intent any, o apiclient.ApplyOptions) (T, error) {
	object, err := p.live.Apply(ctx, p.complete(key), intent, o)
	return p.wrote(ctx, object, err, o.DryRun)
}

// wrote notes a write that succeeded.
func (p *Projection[T]) wrote(ctx context.Context, object T, err error, dryRun []string) (T, error) {
	if err == nil && len(dryRun) == 0 {
		p.Wrote(ctx, object)
	}
	return object, err
}

// Wrote notes that an object was written by other means, such as a subresource, and what it is since. Reads of an overlay
// show it, and a reconcile waits for it, as if the client itself had written. The methods that write call it.
func (p *Projection[T]) Wrote(ctx context.Context, object T) {
	if p.informer == nil || object.GetResourceVersion() == "" {
		return
	}
	held := p.scope.holds(object)
	if p.overlay != nil {
		p.overlay.write(object, !held)
	}
	note(ctx, write{
		origin: p.origin, key: api.KeyOf(object), uid: object.GetUID(), version: object.GetResourceVersion(),
		absent: !held, since: p.origin.position(),
	})
}

// deleted notes that an object is gone.
func (p *Projection[T]) deleted(ctx context.Context, key api.Key, uid types.UID, version string) {
	if p.overlay != nil {
		p.overlay.delete(key, uid, version)
	}
	note(ctx, write{origin: p.origin, key: key, uid: uid, absent: true, floor: version, since: p.origin.position()})
}
