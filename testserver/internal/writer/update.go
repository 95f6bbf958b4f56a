package writer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// Update replaces an object or its status. If the object does not exist, and the resource or w allows it, update
// creates the object and created is true. The caller holds the lock and does not use tree afterwards.
func (wr *Writer) Update(c *store.Collection, key api.Key, tree object.Tree, w Write) (r *store.Record, created bool, err error) {
	if err := CheckShape(tree); err != nil {
		return nil, false, err
	}
	if err := checkKind(c.Definition(), tree, w); err != nil {
		return nil, false, err
	}
	if err := checkIdentity(c.Definition(), tree, key); err != nil {
		return nil, false, err
	}
	old := c.Get(key)
	if old == nil {
		if w.Subresource != "" || !c.Definition().CreateOnUpdate && !w.upsert {
			return nil, false, apierrors.NewNotFound(c.Definition().GroupResource(), key.Name)
		}
		if err := checkUID(c.Definition(), key, tree, ""); err != nil && !w.upsert {
			return nil, false, err // the object was deleted, and the writer does not know it
		}
		delete(object.Metadata(tree), "resourceVersion")
		delete(object.Metadata(tree), "uid")
		w.typed = true
		r, err = wr.Create(c, key.Namespace, tree, w)
		return r, err == nil, err
	}
	if err := checkPreconditions(c.Definition(), old, tree, w); err != nil {
		return nil, false, err
	}
	r, err = wr.replace(c, old, tree, w)
	return r, false, err
}

// checkUID compares the UID of an update, if it has one, with that of the stored object.
func checkUID(d *registry.Definition, key api.Key, tree object.Tree, stored types.UID) error {
	uid := object.StringAt(object.Metadata(tree), "uid")
	if uid == "" || types.UID(uid) == stored {
		return nil
	}
	return apierrors.NewConflict(d.GroupResource(), key.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %v, UID in object meta: %v", d.Plural, key, uid, stored))
}

// checkPreconditions compares the UID and the version of an update with those of the stored object.
func checkPreconditions(d *registry.Definition, old *store.Record, tree object.Tree, w Write) error {
	if err := checkUID(d, old.Key, tree, old.UID()); err != nil {
		return err
	}
	meta := object.Metadata(tree)
	version := object.StringAt(meta, "resourceVersion")
	if version == "" || version == "0" {
		if d.Unconditional || w.Direct || w.upsert {
			return nil
		}
		kind := schema.GroupKind{Group: d.Group, Kind: d.Plural} // kube-apiserver writes the resource here
		return apierrors.NewInvalid(kind, old.Key.Name, field.ErrorList{
			field.Invalid(metaPath.Child("resourceVersion"), 0, "must be specified for an update"),
		})
	}
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return store.StorageError(err)
	}
	if parsed != old.Version {
		return apierrors.NewConflict(d.GroupResource(), old.Key.Name, errModified)
	}
	return nil
}

// replace stores tree instead of old, except for the fields that this kind of update must not change. An update that
// changes nothing writes nothing.
func (wr *Writer) replace(c *store.Collection, old *store.Record, tree object.Tree, w Write) (*store.Record, error) {
	d := c.Definition()
	before := old.Tree()
	if err := checkTerminating(d, old, tree); err != nil {
		return nil, err
	}
	tree = merged(d, before, tree, w)
	meta := object.Metadata(tree)
	if err := checkMetadata(d, meta); err != nil {
		return nil, err
	}
	if d.IsNamespace() {
		registry.LabelNamespace(meta)
	}
	if err := checkFinalizers(d, old, before, meta); err != nil {
		return nil, err
	}
	meta["resourceVersion"] = strconv.FormatUint(old.Version, 10)
	if reflect.DeepEqual(before, tree) {
		return old, nil
	}
	if d.Generation && w.Subresource == "" && contentChanged(d, before, tree) {
		generation, _ := object.IntAt(object.MapAt(before, "metadata"), "generation")
		meta["generation"] = generation + 1
	}
	if wr.options.ManagedFields && d.Schema == nil {
		recordManager(d, before, tree, w)
	}
	if d.IsCRD() && wr.options.Settle == nil {
		if err := wr.establish(tree); err != nil {
			return nil, err
		}
	}
	last := old.Deleting && len(object.SliceAt(meta, "finalizers")) == 0 && !waitsForKubelet(meta) && !wr.held(d, old.Key.Name, tree)
	if last && !w.DryRun {
		wr.finish(c, old) // the event has the stored object, and the answer has the one that was never stored
	}
	if last || w.DryRun {
		return store.NewRecord(d, tree, old.Version)
	}
	return wr.stored(c)(wr.store.Put(c, old, tree))
}

// stored finishes a write: a CustomResourceDefinition becomes a resource.
func (wr *Writer) stored(c *store.Collection) func(*store.Record, error) (*store.Record, error) {
	return func(r *store.Record, err error) (*store.Record, error) {
		if err == nil && c.Definition().IsCRD() {
			wr.settle(r.Key.Name)
		}
		return r, err
	}
}

// merged returns the result of an update: before with the new status, or tree with the old status. In both cases, the
// metadata that only the server writes stay the same.
func merged(d *registry.Definition, before, tree object.Tree, w Write) object.Tree {
	oldMeta, meta := object.MapAt(before, "metadata"), object.Metadata(tree)
	for _, name := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
	} {
		object.SetOrDrop(meta, name, oldMeta[name])
	}
	keepManagers(meta, oldMeta)
	if d.IsNamespace() && w.Subresource != "finalize" && !w.Direct {
		object.SetOrDrop(tree, "spec", before["spec"]) // it has only the finalizers
	}
	if d.NoStatus || w.Direct && w.Subresource == "" {
		return tree
	}
	if w.Subresource == "status" {
		out := maps.Clone(before)
		object.SetOrDrop(out, "status", tree["status"])
		out["metadata"] = statusMetadata(d, oldMeta, meta)
		return out
	}
	object.SetOrDrop(tree, "status", before["status"])
	return tree
}

// statusMetadata returns the metadata after an update of the status. Custom resources keep theirs. Built-in resources
// take the new metadata, except for statusKeeps; the deployment controller of Kubernetes writes an annotation in this
// way.
func statusMetadata(d *registry.Definition, before, sent object.Tree) object.Tree {
	if d.Custom {
		kept := maps.Clone(before)
		object.SetOrDrop(kept, "managedFields", sent["managedFields"])
		return kept
	}
	for _, name := range d.StatusKeeps {
		object.SetOrDrop(sent, name, before[name])
	}
	return sent
}

// keepManagers keeps metadata.managedFields if a client omits them. A client deletes them by sending one empty entry.
func keepManagers(meta, oldMeta object.Tree) {
	sent := object.SliceAt(meta, "managedFields")
	if len(sent) == 0 {
		object.SetOrDrop(meta, "managedFields", oldMeta["managedFields"])
		return
	}
	if first, ok := sent[0].(object.Tree); ok && len(sent) == 1 && len(first) == 0 {
		delete(meta, "managedFields")
	}
}

// checkFinalizers rejects new finalizers on an object that is being deleted.
func checkFinalizers(d *registry.Definition, old *store.Record, before, meta object.Tree) error {
	if !old.Deleting {
		return nil
	}
	known := map[any]bool{}
	for _, f := range object.SliceAt(object.MapAt(before, "metadata"), "finalizers") {
		known[f] = true
	}
	for _, f := range object.SliceAt(meta, "finalizers") {
		if !known[f] {
			return invalid(d, old.Key.Name, field.Forbidden(metaPath.Child("finalizers"), fmt.Sprintf(
				"no new finalizers can be added if the object is being deleted, found new finalizers []string{%q}", f)))
		}
	}
	return nil
}

// contentChanged reports whether a field changed that metadata.generation counts.
func contentChanged(d *registry.Definition, before, after object.Tree) bool {
	if d.Annotated && !maps.EqualFunc(annotationsOf(before), annotationsOf(after), equal) {
		return true
	}
	skip := func(name string) bool { return name == "metadata" || name == "status" && !d.NoStatus }
	for name, value := range after {
		if !skip(name) && !reflect.DeepEqual(before[name], value) {
			return true
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok && !skip(name) {
			return true
		}
	}
	return false
}

func annotationsOf(tree object.Tree) object.Tree {
	return object.MapAt(object.MapAt(tree, "metadata"), "annotations")
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
