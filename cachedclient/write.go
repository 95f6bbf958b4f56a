package cachedclient

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// Delete deletes an object. If finalizers or a grace period delay the delete, the server only sets the deletion
// timestamp. Set the UID precondition, so that Delete does not delete another object of the same name.
//
// A Gate does not wait for the delete of an object that is neither in the cache nor in its recorded writes if the
// server answers with a Status instead of the object, because no version is known then. It corresponds to
// client.Writer.Delete of controller-runtime.
func (p *Partial[T]) Delete(ctx context.Context, key api.Key, o metav1.DeleteOptions) error {
	key = p.completeKey(key)
	expected := p.expectedUID(ctx, key, o)
	d, err := p.live.DeleteObject(ctx, key, o)
	if err != nil || len(o.DryRun) > 0 {
		return err
	}
	if d.Waits {
		p.Wrote(ctx, d.Object)
		return nil
	}
	if uid := cmp.Or(d.UID, expected); uid != "" {
		p.recordDelete(ctx, key, uid, versionOf(d.Object))
	}
	return nil
}

// DeleteCollection deletes all objects in the client's namespace that the selectors match, or sets their deletion
// timestamp. Empty selectors match all objects. A client of a namespaced resource needs a namespace, because servers
// refuse to delete the objects of all namespaces at once.
//
// The answer does not contain the deleted objects. So a Gate waits until the cache shows the delete of each matching
// object that reads returned before the request. If another client changes an object at this moment so that the
// selectors no longer match, the Gate waits until its timeout. An overlay does not show the delete. It corresponds to
// client.Writer.DeleteAllOf of controller-runtime.
func (p *Partial[T]) DeleteCollection(ctx context.Context, o metav1.DeleteOptions, which metav1.ListOptions) error {
	var deletes []write
	if v := p.source.forWrite(ctx); v != nil && hasGate(ctx) && len(o.DryRun) == 0 {
		deletes = v.deletesOf(p.live.Namespace(), which)
	}
	if err := p.live.DeleteCollection(ctx, o, which); err != nil {
		return err
	}
	for _, w := range deletes {
		record(ctx, w)
	}
	return nil
}

// deletesOf returns the deletes that a DeleteCollection is expected to make.
func (v *cacheView[T]) deletesOf(namespace string, which metav1.ListOptions) (all []write) {
	selected := parseSelectors[T](which.LabelSelector, which.FieldSelector)
	selected.namespace, selected.whole = namespace, v.scope.whole
	s, overrides := v.snapshot()
	add := func(key api.Key, object T) {
		if selected.includes(object) {
			all = append(all, write{
				target: v.target, key: key, uid: object.GetUID(), absent: true, collective: true,
				minVersion: object.GetResourceVersion(), startVersion: versionIn(s, key.Namespace),
			})
		}
	}
	for key, object := range s.All() {
		if _, overridden := overrides[key]; !overridden {
			add(key, object)
		}
	}
	for key, o := range overrides {
		if o.found {
			add(key, o.object)
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

// expectedUID returns the UID of the object that a delete will remove, or an empty UID if it is unknown.
func (p *Partial[T]) expectedUID(ctx context.Context, key api.Key, o metav1.DeleteOptions) types.UID {
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		return *o.Preconditions.UID
	}
	v := p.source.forWrite(ctx)
	if v == nil {
		return ""
	}
	return uidOf(v.get(key))
}

// Patch changes a part of an object and returns the object as the server stored it.
// It corresponds to client.Writer.Patch of controller-runtime.
func (p *Partial[T]) Patch(ctx context.Context, key api.Key, patch apiclient.Patch, o apiclient.PatchOptions) (T, error) {
	object, err := p.live.Patch(ctx, p.completeKey(key), patch, o)
	return p.recordResult(ctx, object, err, o.DryRun)
}

// Apply makes a server-side apply; see apiclient.PartialClient.Apply.
// It corresponds to client.Writer.Apply of controller-runtime.
func (p *Partial[T]) Apply(ctx context.Context, key api.Key, intent any, o apiclient.ApplyOptions) (T, error) {
	object, err := p.live.Apply(ctx, p.completeKey(key), intent, o)
	return p.recordResult(ctx, object, err, o.DryRun)
}

// recordResult records a write that succeeded and was no dry run.
func (p *Partial[T]) recordResult(ctx context.Context, object T, err error, dryRun []string) (T, error) {
	if err == nil && len(dryRun) == 0 {
		p.Wrote(ctx, object)
	}
	return object, err
}

// Wrote records a write that was made by other means, such as a request to a subresource. The object is the state after
// the write. The overlay shows it, and the Gate of the context waits for it, as after a write of this client. The
// methods that write call Wrote themselves. Wrote ignores an object without a resource version.
func (p *Partial[T]) Wrote(ctx context.Context, object T) {
	v := p.source.forWrite(ctx)
	if v == nil || object.GetResourceVersion() == "" {
		return
	}
	if isDeleted(object) {
		p.recordDelete(ctx, api.KeyOf(object), object.GetUID(), object.GetResourceVersion())
		return
	}
	selected := v.includes(object)
	if v.overlay != nil {
		v.overlay.write(object, !selected)
	}
	record(ctx, write{
		target: v.target, key: api.KeyOf(object), uid: object.GetUID(), version: object.GetResourceVersion(),
		absent: !selected, startVersion: v.target.version(object.GetNamespace()),
	})
}

// isDeleted reports whether the write that returned this object has deleted it, because it removed the last finalizer.
// The server answers such a write with the version from before the delete, which the cache may have already. A T that
// does not declare these fields does not show the delete.
func isDeleted(object any) bool {
	o, ok := object.(interface {
		GetDeletionTimestamp() *metav1.Time
		GetDeletionGracePeriodSeconds() *int64
		GetFinalizers() []string
	})
	if !ok || o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 {
		return false
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}

// recordDelete records that an object is deleted.
func (p *Partial[T]) recordDelete(ctx context.Context, key api.Key, uid types.UID, version string) {
	v := p.source.forWrite(ctx)
	if v == nil {
		return
	}
	if v.overlay != nil {
		v.overlay.delete(key, uid, version)
	}
	record(ctx, write{target: v.target, key: key, uid: uid, absent: true, minVersion: version, startVersion: v.target.version(key.Namespace)})
}
