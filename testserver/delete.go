package testserver

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
)

var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// deletion is the result of a delete.
type deletion struct {
	record *record // the last state of the object
	done   bool    // the object is removed; otherwise it waits for finalizers or a kubelet
}

// delete removes an object or marks it as being deleted. The caller holds the lock.
func (s *store) delete(c *collection, key api.Key, o metav1.DeleteOptions, w write) (deletion, error) {
	old := c.root.get(pathOf(key))
	if old == nil {
		return deletion{}, apierrors.NewNotFound(c.def.GroupResource(), key.Name)
	}
	if err := checkDeletePreconditions(c.def, old, o.Preconditions); err != nil {
		return deletion{}, err
	}
	tree := old.tree()
	meta := metadataOf(tree)
	grace := s.gracePeriod(c.def, tree, o, w)
	finalizers := deletionFinalizers(meta, o)
	if isNamespace(c.def) {
		return s.terminateNamespace(c, old, tree, w)
	}
	done := len(finalizers) == 0 && grace == 0
	unchanged := old.deleting && !shortens(meta, grace) && slices.Equal(finalizers, sliceAt(meta, "finalizers"))
	switch {
	case w.dryRun, unchanged && !done:
		return deletion{record: old, done: done}, nil
	case done && (unchanged || !c.def.graceful || s.immediate || w.direct):
		return deletion{record: s.finish(c, old), done: true}, nil
	}
	markDeleted(c.def, meta, grace)
	setOrDropList(meta, "finalizers", finalizers)
	r, err := s.put(c, old, tree)
	if err == nil && done {
		r = s.finish(c, r) // a pod is always marked first, even with no time left
	}
	return deletion{record: r, done: done}, err
}

// finish removes an object and then its dependents: the instances of a CustomResourceDefinition, and a namespace that
// waited for its last object.
func (s *store) finish(c *collection, old *record) *record {
	gone := s.drop(c, old)
	if isCRD(c.def) {
		s.serveCRDs()
	}
	if c.def.Namespaced {
		s.finishNamespace(old.key.Namespace)
	}
	return gone
}

func checkDeletePreconditions(d *definition, old *record, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	kind := schema.GroupResource{Group: d.Group, Resource: d.Kind} // kube-apiserver writes the kind here
	if p.UID != nil && *p.UID != old.uid {
		return apierrors.NewConflict(kind, old.key.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID "+
			"in record (%s). The object might have been deleted and then recreated", *p.UID, old.uid))
	}
	have := strconv.FormatUint(old.version, 10)
	if p.ResourceVersion != nil && *p.ResourceVersion != have {
		return apierrors.NewConflict(kind, old.key.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not "+
			"match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, have))
	}
	return nil
}

// gracePeriod returns the time in seconds that a pod may take to stop. It is zero unless the pod is on a node and still
// running.
func (s *store) gracePeriod(d *definition, tree object, o metav1.DeleteOptions, w write) int64 {
	if !d.graceful || s.immediate || w.direct && o.GracePeriodSeconds == nil {
		return 0
	}
	spec, status := mapAt(tree, "spec"), mapAt(tree, "status")
	if stringAt(spec, "nodeName") == "" {
		return 0
	}
	if phase := stringAt(status, "phase"); phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if o.GracePeriodSeconds != nil {
		return max(*o.GracePeriodSeconds, 0)
	}
	if grace, ok := intAt(spec, "terminationGracePeriodSeconds"); ok {
		return grace
	}
	return 30
}

// deletionFinalizers returns the finalizers of an object under the propagation policy of its deletion. There is no
// garbage collector: as with a kube-apiserver alone, the finalizers stay until a client removes them.
func deletionFinalizers(meta object, o metav1.DeleteOptions) []any {
	const orphan, foreground = metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents
	finalizers := slices.Clone(sliceAt(meta, "finalizers"))
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

// shortens reports whether a second deletion with the given grace period leaves an object less time than the first.
func shortens(meta object, grace int64) bool {
	have, ok := intAt(meta, "deletionGracePeriodSeconds")
	return !ok || grace < have
}

func markDeleted(d *definition, meta object, grace int64) {
	if stringAt(meta, "deletionTimestamp") == "" {
		if generation, ok := intAt(meta, "generation"); ok && d.generation {
			meta["generation"] = generation + 1
		}
	}
	meta["deletionTimestamp"] = time.Now().UTC().Add(time.Duration(grace) * time.Second).Format(time.RFC3339)
	meta["deletionGracePeriodSeconds"] = grace
}

// waitsForKubelet reports whether an object has a grace period that no kubelet has ended yet.
func waitsForKubelet(meta object) bool {
	grace, ok := intAt(meta, "deletionGracePeriodSeconds")
	return ok && grace > 0
}

func setOrDropList(m object, name string, list []any) {
	if len(list) == 0 {
		delete(m, name)
		return
	}
	m[name] = list
}

func isNamespace(d *definition) bool { return d.GroupResource() == namespacesResource }

// populated reports whether a namespace contains objects.
func (s *store) populated(namespace string) bool {
	for _, c := range s.order {
		if c.def.Namespaced && c.root.rank(namespace+"0") > c.root.rank(namespace+"/") {
			return true
		}
	}
	return false
}

// terminateNamespace does at once what kube-controller-manager does over time: it deletes everything in the namespace,
// and then the namespace, unless finalizers keep something.
func (s *store) terminateNamespace(c *collection, old *record, tree object, w write) (deletion, error) {
	if old.deleting || w.dryRun {
		return deletion{record: old}, nil
	}
	markDeleted(c.def, metadataOf(tree), 0)
	tree["status"] = object{"phase": "Terminating"}
	r, err := s.put(c, old, tree)
	if err != nil {
		return deletion{}, err
	}
	name := old.key.Name
	for _, other := range slices.Clone(s.order) {
		if !other.def.Namespaced {
			continue
		}
		for victim := range other.root.scan(name+"/", name+"0") {
			if _, err := s.delete(other, victim.key, metav1.DeleteOptions{}, write{direct: true}); err != nil {
				return deletion{}, err
			}
		}
	}
	s.finishNamespace(name) // for a namespace without objects
	return deletion{record: r}, nil
}

// finishNamespace removes a namespace that is being deleted and is empty.
func (s *store) finishNamespace(name string) {
	c := s.collections[namespacesResource]
	if ns := c.root.get(name); ns != nil && ns.deleting && !ns.finalizers && !s.populated(name) {
		s.finish(c, ns)
	}
}

// deleteAll deletes the selected objects and returns their last states. The caller holds the lock.
func (s *store) deleteAll(c *collection, sel selection, o metav1.DeleteOptions, w write) ([]*record, error) {
	var out []*record
	for r := range sel.scan(c.root, "") {
		d, err := s.delete(c, r.key, o, w)
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if err == nil {
			out = append(out, d.record)
		}
	}
	return out, nil
}
