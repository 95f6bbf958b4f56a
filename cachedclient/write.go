package cachedclient

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// Delete deletes an object, or marks it for deletion where finalizers or a grace period hold it. Give the UID of the
// object that is meant as a precondition, lest another of the same name is deleted. It corresponds to
// client.Writer.Delete of controller-runtime.
func (p *Partial[T]) Delete(ctx context.Context, key api.Key, o metav1.DeleteOptions) error {
	key = p.complete(key)
	meant := p.meant(ctx, key, o)
	d, err := p.live.DeleteObject(ctx, key, o)
	if err != nil || len(o.DryRun) > 0 {
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

// DeleteCollection deletes all objects that which selects, within the client's namespace, or marks them for deletion;
// an empty selection is all of them. A reconcile behind a Gate waits until the cache shows that of each object that
// reads showed before and the selection picks; for one that somebody has changed meanwhile, so that it was not picked
// any more, it waits until the time-out. An overlay shows nothing of the deletion, because the answer does not tell
// which objects are gone. It corresponds to client.Writer.DeleteAllOf of controller-runtime.
func (p *Partial[T]) DeleteCollection(ctx context.Context, o metav1.DeleteOptions, which metav1.ListOptions) error {
	var meant []write
	if h := p.held.noting(ctx); h != nil && noted(ctx) && len(o.DryRun) == 0 {
		meant = h.deletions(p.live.Namespace(), which)
	}
	if err := p.live.DeleteCollection(ctx, o, which); err != nil {
		return err
	}
	for _, w := range meant {
		note(ctx, w)
	}
	return nil
}

// deletions are those that a deletion of a collection comes to.
func (h *cacheView[T]) deletions(namespace string, which metav1.ListOptions) (all []write) {
	picked := selecting[T](which.LabelSelector, which.FieldSelector)
	picked.namespace, picked.whole = namespace, h.scope.whole
	s, differently := h.look()
	add := func(key api.Key, object T) {
		if picked.holds(object) {
			all = append(all, write{
				target: h.target, key: key, uid: object.GetUID(), absent: true, marked: true,
				floor: object.GetResourceVersion(), since: s.ResourceVersion(),
			})
		}
	}
	for key, object := range s.All() {
		if _, differs := differently[key]; !differs {
			add(key, object)
		}
	}
	for key, instead := range differently {
		if instead.found {
			add(key, instead.object)
		}
	}
	return all
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
func (p *Partial[T]) meant(ctx context.Context, key api.Key, o metav1.DeleteOptions) types.UID {
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		return *o.Preconditions.UID
	}
	h := p.held.noting(ctx)
	if h == nil {
		return ""
	}
	return uidOf(h.get(key))
}

// Patch changes a part of an object and returns what became of it.
// It corresponds to client.Writer.Patch of controller-runtime.
func (p *Partial[T]) Patch(ctx context.Context, key api.Key, patch apiclient.Patch, o apiclient.PatchOptions) (T, error) {
	object, err := p.live.Patch(ctx, p.complete(key), patch, o)
	return p.wrote(ctx, object, err, o.DryRun)
}

// Apply is a server-side apply; see apiclient.PartialClient.Apply.
// It corresponds to client.Writer.Apply of controller-runtime.
func (p *Partial[T]) Apply(ctx context.Context, key api.Key, intent any, o apiclient.ApplyOptions) (T, error) {
	object, err := p.live.Apply(ctx, p.complete(key), intent, o)
	return p.wrote(ctx, object, err, o.DryRun)
}

// wrote notes a write that succeeded.
func (p *Partial[T]) wrote(ctx context.Context, object T, err error, dryRun []string) (T, error) {
	if err == nil && len(dryRun) == 0 {
		p.Wrote(ctx, object)
	}
	return object, err
}

// Wrote notes that an object was written by other means, such as a subresource, and what it is since. Reads of an
// overlay show it, and a reconcile waits for it, as if the client itself had written. The methods that write call it.
func (p *Partial[T]) Wrote(ctx context.Context, object T) {
	h := p.held.noting(ctx)
	if h == nil || object.GetResourceVersion() == "" {
		return
	}
	selected := h.scope.holds(object)
	if h.overlay != nil {
		h.overlay.write(object, !selected)
	}
	note(ctx, write{
		target: h.target, key: api.KeyOf(object), uid: object.GetUID(), version: object.GetResourceVersion(),
		absent: !selected, since: h.target.position(),
	})
}

// deleted notes that an object is gone.
func (p *Partial[T]) deleted(ctx context.Context, key api.Key, uid types.UID, version string) {
	h := p.held.noting(ctx)
	if h == nil {
		return
	}
	if h.overlay != nil {
		h.overlay.delete(key, uid, version)
	}
	note(ctx, write{target: h.target, key: key, uid: uid, absent: true, floor: version, since: h.target.position()})
}
