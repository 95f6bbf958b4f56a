package writer

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Deletion is the result of a delete.
type Deletion struct {
	Record *store.Record // the last state of the object
	Done   bool          // the object is removed; otherwise it waits for finalizers or a kubelet

	marked bool // Record is a pod with no time left, which the second write of the deletion removes
}

// PauseDeletions sets the time between the two writes that delete a pod without a node. kube-apiserver spends it on
// etcd: one transaction marks the pod and one removes it, and another one repeats this if the cache of the server lacks
// the mark. Without a pause, a controller that gets the first event finds that the pod is gone, which is rare in a
// cluster; docs/fidelity.md has the figures. The price: with a millisecond, a client deletes less than a thousand of
// such pods a second, one by one.
func (wr *Writer) PauseDeletions(d time.Duration) { wr.pause.Store(int64(d)) }

// Delete removes an object or marks it as being deleted. The caller does not hold the lock.
func (wr *Writer) Delete(c *store.Collection, key api.Key, o metav1.DeleteOptions, w Write) (d Deletion, err error) {
	err = wr.locked(func() error {
		d, err = wr.delete(c, key, o, w)
		return err
	})
	if err != nil {
		return Deletion{}, err
	}
	return wr.completed(c, d), nil
}

// completed removes a pod that is marked with no time left. The caller does not hold the lock, so that clients can see
// the pod, and change it. As in kube-apiserver, it is no error if another request has removed the pod meanwhile.
func (wr *Writer) completed(c *store.Collection, d Deletion) Deletion {
	if !d.marked {
		return d
	}
	if pause := time.Duration(wr.pause.Load()); pause > 0 {
		<-time.After(pause)
	}
	wr.store.Lock()
	defer wr.store.Unlock()
	now := c.Get(d.Record.Key)
	if now == nil || now.UID() != d.Record.UID() || !now.Deleting {
		return d
	}
	d.Record = wr.finish(c, now)
	return d
}

// delete does the first write of a deletion, which is the only one unless the result is marked. The caller holds the
// lock.
func (wr *Writer) delete(c *store.Collection, key api.Key, o metav1.DeleteOptions, w Write) (Deletion, error) {
	old := c.Get(key)
	if old == nil {
		return Deletion{}, apierrors.NewNotFound(c.Definition().GroupResource(), key.Name)
	}
	if err := checkDeletePreconditions(c.Definition(), old, o.Preconditions); err != nil {
		return Deletion{}, err
	}
	tree := old.Tree()
	meta := object.Metadata(tree)
	have, _ := object.IntAt(meta, "deletionGracePeriodSeconds")
	grace, end := wr.ending(c.Definition(), tree, o, w)
	finalizers := deletionFinalizers(meta, o)
	switch {
	case c.Definition().IsCRD() && wr.options.Settle != nil && !old.Deleting:
		return wr.terminateCRD(c, old, tree, w)
	case !c.Definition().IsNamespace():
	case !wr.options.NamespaceLifecycle:
		return wr.terminateNamespace(c, old, tree, w)
	case wr.held(c.Definition(), key.Name, tree) || !old.Deleting:
		return wr.beginTermination(c, old, tree, finalizers, w)
	}
	if old.Deleting && grace > 0 && grace == have { // a deletion that shortens nothing changes no finalizers either
		return Deletion{Record: old}, nil
	}
	done := len(finalizers) == 0 && grace == 0
	unchanged := old.Deleting && grace == have && slices.Equal(finalizers, object.SliceAt(meta, "finalizers"))
	atOnce := done && (unchanged || !c.Definition().Graceful || wr.options.ImmediateDeletion || w.Direct)
	switch {
	case unchanged && !done, atOnce && w.DryRun:
		return Deletion{Record: old, Done: done}, nil
	case atOnce:
		return Deletion{Record: wr.finish(c, old), Done: true}, nil
	}
	markDeleted(meta, grace, end)
	object.SetOrDropList(meta, "finalizers", finalizers)
	if w.DryRun {
		r, err := store.NewRecord(c.Definition(), tree, old.Version)
		return Deletion{Record: r, Done: done}, err
	}
	r, err := wr.store.Put(c, old, tree)
	if err != nil || !done {
		return Deletion{Record: r}, err
	}
	// A pod is always marked first, even with no time left. Clients of one that was marked before have seen it.
	if old.Deleting {
		return Deletion{Record: wr.finish(c, r), Done: true}, nil
	}
	return Deletion{Record: r, Done: true, marked: true}, nil
}

// finish removes an object and then its dependents: the instances of a CustomResourceDefinition, and a namespace that
// waited for its last object.
func (wr *Writer) finish(c *store.Collection, old *store.Record) *store.Record {
	d := c.Definition()
	gone := wr.store.Drop(c, old)
	switch name := d.GroupResource().String(); {
	case d.IsCRD():
		wr.settle(old.Key.Name)
	case d.FromCRD && wr.terminating(name) && !hasObjects(c):
		wr.settle(name)
	}
	if d.Namespaced {
		wr.finishNamespace(old.Key.Namespace)
	}
	return gone
}

func checkDeletePreconditions(d *registry.Definition, old *store.Record, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	kind := schema.GroupResource{Group: d.Group, Resource: d.Kind} // kube-apiserver writes the kind here
	if p.UID != nil && *p.UID != old.UID() {
		return apierrors.NewConflict(kind, old.Key.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID "+
			"in record (%s). The object might have been deleted and then recreated", *p.UID, old.UID()))
	}
	have := strconv.FormatUint(old.Version, 10)
	if p.ResourceVersion != nil && *p.ResourceVersion != have {
		return apierrors.NewConflict(kind, old.Key.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not "+
			"match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, have))
	}
	return nil
}

// ending returns the grace period of an object in seconds, and the time when it ends.
func (wr *Writer) ending(d *registry.Definition, tree object.Tree, o metav1.DeleteOptions, w Write) (grace int64, end time.Time) {
	now, meta := time.Now(), object.Metadata(tree)
	marked, err := time.Parse(time.RFC3339, object.StringAt(meta, "deletionTimestamp"))
	switch {
	case !d.Graceful || wr.options.ImmediateDeletion || w.Direct && o.GracePeriodSeconds == nil:
		if err == nil && marked.Before(now) {
			return 0, marked
		}
		return 0, now
	case err == nil:
		return shortened(meta, marked, o, now)
	}
	grace = gracePeriod(tree, o)
	return grace, now.Add(time.Duration(grace) * time.Second)
}

// gracePeriod returns the time in seconds that a pod may take to stop. It is zero unless the pod is on a node and still
// running.
func gracePeriod(pod object.Tree, o metav1.DeleteOptions) int64 {
	spec, status := object.MapAt(pod, "spec"), object.MapAt(pod, "status")
	if object.StringAt(spec, "nodeName") == "" {
		return 0
	}
	if phase := object.StringAt(status, "phase"); phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if o.GracePeriodSeconds != nil {
		return positive(*o.GracePeriodSeconds)
	}
	if grace, ok := object.IntAt(spec, "terminationGracePeriodSeconds"); ok {
		return positive(grace)
	}
	return 30
}

// positive returns the grace period that a client has asked for. kube-apiserver takes a negative one as one second.
func positive(grace int64) int64 {
	if grace < 0 {
		return 1
	}
	return grace
}

// shortened returns the grace period of a pod that is already being deleted until end, and the new end. Only a client
// that asks for less time changes it. The new period begins with the first deletion. If it is over, its end is now, and
// the period is one second, because the kubelet still has to confirm the end.
func shortened(meta object.Tree, end time.Time, o metav1.DeleteOptions, now time.Time) (int64, time.Time) {
	have, _ := object.IntAt(meta, "deletionGracePeriodSeconds")
	if o.GracePeriodSeconds == nil || positive(*o.GracePeriodSeconds) >= have {
		return have, end
	}
	grace := positive(*o.GracePeriodSeconds)
	end = end.Add(time.Duration(grace-have) * time.Second)
	if end.Before(now) {
		return min(grace, 1), now
	}
	return grace, end
}

// deletionFinalizers returns the finalizers of an object under the propagation policy of its deletion. There is no
// garbage collector: as with a kube-apiserver alone, the finalizers stay until a client removes them.
func deletionFinalizers(meta object.Tree, o metav1.DeleteOptions) []any {
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	finalizers := slices.Clone(object.SliceAt(meta, "finalizers"))
	want := ""
	switch propagation(o) {
	case "":
		return finalizers
	case metav1.DeletePropagationOrphan:
		want = orphan
	case metav1.DeletePropagationForeground:
		want = foreground
	}
	finalizers = slices.DeleteFunc(finalizers, func(f any) bool { return f != want && (f == orphan || f == foreground) })
	if want != "" && !slices.Contains(finalizers, any(want)) {
		finalizers = append(finalizers, want)
	}
	return finalizers
}

// markDeleted marks an object as being deleted, with a grace period in seconds and its end.
func markDeleted(meta object.Tree, grace int64, end time.Time) {
	if object.StringAt(meta, "deletionTimestamp") == "" {
		if generation, ok := object.IntAt(meta, "generation"); ok {
			meta["generation"] = generation + 1
		}
	}
	meta["deletionTimestamp"] = end.UTC().Format(time.RFC3339)
	meta["deletionGracePeriodSeconds"] = grace
}

// waitsForKubelet reports whether an object has a grace period that no kubelet has ended yet.
func waitsForKubelet(meta object.Tree) bool {
	grace, ok := object.IntAt(meta, "deletionGracePeriodSeconds")
	return ok && grace > 0
}

// populated reports whether a namespace contains objects.
func (wr *Writer) populated(namespace string) bool {
	for _, c := range wr.store.Served() {
		if c.Definition().Namespaced && c.Populated(namespace) {
			return true
		}
	}
	return false
}

// terminateNamespace does at once what kube-controller-manager does over time: it deletes everything in the namespace,
// and then the namespace, unless finalizers keep something.
func (wr *Writer) terminateNamespace(c *store.Collection, old *store.Record, tree object.Tree, w Write) (Deletion, error) {
	if old.Deleting || w.DryRun {
		return Deletion{Record: old}, nil
	}
	markDeleted(object.Metadata(tree), 0, time.Now())
	delete(object.Metadata(tree), "deletionGracePeriodSeconds")
	tree["status"] = object.Tree{"phase": "Terminating"}
	r, err := wr.store.Put(c, old, tree)
	if err != nil {
		return Deletion{}, err
	}
	name := old.Key.Name
	for _, other := range wr.store.Served() {
		if !other.Definition().Namespaced {
			continue
		}
		for victim := range other.All(name) {
			if _, err := wr.delete(other, victim.Key, metav1.DeleteOptions{}, Write{Direct: true}); err != nil {
				return Deletion{}, err
			}
		}
	}
	wr.finishNamespace(name) // for a namespace without objects
	return Deletion{Record: r}, nil
}

// beginTermination marks a namespace as being deleted. A controller deletes its contents and then removes the
// finalizers of the spec. A second deletion changes nothing.
func (wr *Writer) beginTermination(c *store.Collection, old *store.Record, tree object.Tree, finalizers []any, w Write) (Deletion, error) {
	if old.Deleting {
		return Deletion{Record: old}, nil
	}
	markDeleted(object.Metadata(tree), 0, time.Now())
	delete(object.Metadata(tree), "deletionGracePeriodSeconds")
	object.SetOrDropList(object.Metadata(tree), "finalizers", finalizers)
	object.SetDefault(tree, "status", object.Tree{})
	object.MapAt(tree, "status")["phase"] = "Terminating"
	if w.DryRun {
		r, err := store.NewRecord(c.Definition(), tree, old.Version)
		return Deletion{Record: r}, err
	}
	r, err := wr.store.Put(c, old, tree)
	return Deletion{Record: r}, err
}

// held reports whether an object is a namespace that must stay: its spec has finalizers or, if the server itself
// deletes the contents of namespaces, it is not empty.
func (wr *Writer) held(d *registry.Definition, name string, tree object.Tree) bool {
	switch {
	case !d.IsNamespace():
		return false
	case wr.options.NamespaceLifecycle:
		return len(object.SliceAt(object.MapAt(tree, "spec"), "finalizers")) > 0
	}
	return wr.populated(name)
}

// finishNamespace removes a namespace that is being deleted and is empty.
func (wr *Writer) finishNamespace(name string) {
	if wr.options.NamespaceLifecycle {
		return
	}
	c := wr.store.Collection(registry.Namespaces)
	if ns := c.Get(api.Key{Name: name}); ns != nil && ns.Deleting && !ns.HasFinalizers && !wr.populated(name) {
		wr.finish(c, ns)
	}
}
