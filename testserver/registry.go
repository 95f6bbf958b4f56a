package testserver

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
)

// write describes how to write an object.
type write struct {
	served      string // the version of the API in which the object was sent
	subresource string // "" or "status"
	manager     string // field manager, for managedFields
	dryRun      bool
	direct      bool // by a method in Go: status is written with the rest, and pods do not wait for a kubelet
	upsert      bool // an update may create the object, as in server-side apply
	applied     bool // by server-side apply, which has already updated managedFields
	typed       bool // kind and apiVersion are already checked
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// create stores a new object. The caller holds the lock and does not use tree afterwards.
func (s *store) create(c *collection, namespace string, tree object, w write) (*record, error) {
	if err := s.prepareNew(c, namespace, tree, w); err != nil {
		return nil, err
	}
	meta := metadataOf(tree)
	key := api.Key{Namespace: stringAt(meta, "namespace"), Name: stringAt(meta, "name")}
	if c.root.get(pathOf(key)) != nil {
		return nil, apierrors.NewAlreadyExists(c.def.GroupResource(), key.Name)
	}
	if s.managed {
		recordManager(c.def, nil, tree, w)
	}
	if isCRD(c.def) {
		if err := s.establish(tree); err != nil {
			return nil, err
		}
	}
	if w.dryRun {
		return newRecord(c.def, tree, 0)
	}
	return s.stored(c)(s.put(c, nil, tree))
}

// prepareNew checks tree and adds the fields that the server sets in a new object.
func (s *store) prepareNew(c *collection, namespace string, tree object, w write) error {
	if err := checkShape(tree); err != nil {
		return err
	}
	if err := checkKind(c.def, tree, w); err != nil {
		return err
	}
	if err := checkIdentity(c.def, tree, api.Key{Namespace: namespace}); err != nil {
		return err
	}
	meta := metadataOf(tree)
	if stringAt(meta, "resourceVersion") != "" {
		return storageError(errors.New("resourceVersion should not be set on objects to be created"))
	}
	s.generateName(c, meta)
	if err := checkNames(c.def, meta); err != nil {
		return err
	}
	if err := s.checkNamespace(c.def, namespace, stringAt(meta, "name")); err != nil {
		return err
	}
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"} {
		delete(meta, name)
	}
	meta["uid"] = s.names.uid()
	meta["creationTimestamp"] = now()
	if c.def.generation {
		meta["generation"] = int64(1)
	}
	if c.def.prepare != nil {
		c.def.prepare(tree)
	}
	resetStatus(c.def, tree, w)
	return nil
}

func (s *store) generateName(c *collection, meta object) {
	prefix := stringAt(meta, "generateName")
	if prefix == "" || stringAt(meta, "name") != "" {
		return
	}
	const room = 63 - 5
	if len(prefix) > room {
		prefix = prefix[:room]
	}
	for {
		name := prefix + s.names.suffix()
		if c.root.get(pathOf(api.Key{Namespace: stringAt(meta, "namespace"), Name: name})) == nil {
			meta["name"] = name
			return
		}
	}
}

// resetStatus removes a status that the creator may not set because status is a subresource.
func resetStatus(d *definition, tree object, w write) {
	if d.NoStatus || w.direct && tree["status"] != nil {
		return
	}
	delete(tree, "status")
	if d.resetStatus != nil {
		tree["status"] = d.resetStatus()
	}
}

// checkNamespace rejects new objects in a namespace that is being deleted or, if the server is strict, does not exist.
func (s *store) checkNamespace(d *definition, namespace, name string) error {
	if !d.Namespaced {
		return nil
	}
	ns := s.collections[namespacesResource].root.get(namespace)
	switch {
	case ns == nil && s.strict:
		return apierrors.NewNotFound(namespacesResource, namespace)
	case ns != nil && ns.deleting:
		err := apierrors.NewForbidden(d.GroupResource(), name, fmt.Errorf(
			"unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    "NamespaceTerminating",
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field:   "metadata.namespace",
		})
		return err
	}
	return nil
}

// update replaces an object or its status. If the object does not exist, and the resource or w allows it, update
// creates the object and created is true. The caller holds the lock and does not use tree afterwards.
func (s *store) update(c *collection, key api.Key, tree object, w write) (r *record, created bool, err error) {
	if err := checkShape(tree); err != nil {
		return nil, false, err
	}
	if err := checkKind(c.def, tree, w); err != nil {
		return nil, false, err
	}
	if err := checkIdentity(c.def, tree, key); err != nil {
		return nil, false, err
	}
	old := c.root.get(pathOf(key))
	if old == nil {
		if w.subresource != "" || !c.def.createOnUpdate && !w.upsert {
			return nil, false, apierrors.NewNotFound(c.def.GroupResource(), key.Name)
		}
		delete(metadataOf(tree), "resourceVersion")
		delete(metadataOf(tree), "uid")
		w.typed = true
		r, err = s.create(c, key.Namespace, tree, w)
		return r, err == nil, err
	}
	if err := checkPreconditions(c.def, old, tree, w); err != nil {
		return nil, false, err
	}
	r, err = s.replace(c, old, tree, w)
	return r, false, err
}

// checkPreconditions compares the UID and the version of an update with those of the stored object.
func checkPreconditions(d *definition, old *record, tree object, w write) error {
	meta := metadataOf(tree)
	if uid := stringAt(meta, "uid"); uid != "" && types.UID(uid) != old.uid {
		return apierrors.NewConflict(d.GroupResource(), old.key.Name, fmt.Errorf(
			"StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: "+
				"Precondition failed: UID in precondition: %v, UID in object meta: %v", d.Plural, old.path, uid, old.uid))
	}
	version := stringAt(meta, "resourceVersion")
	if version == "" || version == "0" {
		if d.unconditional || w.direct || w.upsert {
			return nil
		}
		kind := schema.GroupKind{Group: d.Group, Kind: d.Plural} // kube-apiserver writes the resource here
		return apierrors.NewInvalid(kind, old.key.Name, field.ErrorList{
			field.Invalid(metaPath.Child("resourceVersion"), 0, "must be specified for an update"),
		})
	}
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return storageError(err)
	}
	if parsed != old.version {
		return apierrors.NewConflict(d.GroupResource(), old.key.Name, errModified)
	}
	return nil
}

// replace stores tree instead of old, except for the fields that this kind of update must not change. An update that
// changes nothing writes nothing.
func (s *store) replace(c *collection, old *record, tree object, w write) (*record, error) {
	d := c.def
	before := old.tree()
	tree = merged(d, before, tree, w)
	meta := metadataOf(tree)
	if err := checkNames(d, meta); err != nil {
		return nil, err
	}
	if err := checkFinalizers(d, old, before, meta); err != nil {
		return nil, err
	}
	meta["resourceVersion"] = strconv.FormatUint(old.version, 10)
	if reflect.DeepEqual(before, tree) {
		return old, nil
	}
	if d.generation && w.subresource == "" && contentChanged(d, before, tree) {
		generation, _ := intAt(mapAt(before, "metadata"), "generation")
		meta["generation"] = generation + 1
	}
	if s.managed {
		recordManager(d, before, tree, w)
	}
	if isCRD(d) {
		if err := s.establish(tree); err != nil {
			return nil, err
		}
	}
	if w.dryRun {
		return newRecord(d, tree, old.version)
	}
	if old.deleting && len(sliceAt(meta, "finalizers")) == 0 && !waitsForKubelet(meta) {
		return s.finish(c, old), nil
	}
	return s.stored(c)(s.put(c, old, tree))
}

// stored finishes a write: a CustomResourceDefinition becomes a resource.
func (s *store) stored(c *collection) func(*record, error) (*record, error) {
	return func(r *record, err error) (*record, error) {
		if err == nil && isCRD(c.def) {
			s.serveCRDs()
		}
		return r, err
	}
}

// merged returns the result of an update: before with the new status, or tree with the old status. In both cases, the
// metadata that only the server writes stay the same.
func merged(d *definition, before, tree object, w write) object {
	oldMeta, meta := mapAt(before, "metadata"), metadataOf(tree)
	for _, name := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
	} {
		setOrDrop(meta, name, oldMeta[name])
	}
	keepManagers(meta, oldMeta)
	if d.NoStatus || w.direct && w.subresource == "" {
		return tree
	}
	if w.subresource == "status" {
		out := maps.Clone(before)
		setOrDrop(out, "status", tree["status"])
		out["metadata"] = statusMetadata(d, oldMeta, meta)
		return out
	}
	setOrDrop(tree, "status", before["status"])
	return tree
}

// statusMetadata returns the metadata after an update of the status. Custom resources keep theirs. Built-in resources
// take the new metadata, except for statusKeeps; the deployment controller of Kubernetes writes an annotation in this
// way.
func statusMetadata(d *definition, before, sent object) object {
	if d.custom {
		kept := maps.Clone(before)
		setOrDrop(kept, "managedFields", sent["managedFields"])
		return kept
	}
	for _, name := range d.statusKeeps {
		setOrDrop(sent, name, before[name])
	}
	return sent
}

// keepManagers keeps metadata.managedFields if a client omits them. A client deletes them by sending one empty entry.
func keepManagers(meta, oldMeta object) {
	sent := sliceAt(meta, "managedFields")
	if len(sent) == 0 {
		setOrDrop(meta, "managedFields", oldMeta["managedFields"])
		return
	}
	if first, ok := sent[0].(object); ok && len(sent) == 1 && len(first) == 0 {
		delete(meta, "managedFields")
	}
}

// checkFinalizers rejects new finalizers on an object that is being deleted.
func checkFinalizers(d *definition, old *record, before, meta object) error {
	if !old.deleting {
		return nil
	}
	known := map[any]bool{}
	for _, f := range sliceAt(mapAt(before, "metadata"), "finalizers") {
		known[f] = true
	}
	for _, f := range sliceAt(meta, "finalizers") {
		if !known[f] {
			return invalid(d, old.key.Name, field.Forbidden(metaPath.Child("finalizers"), fmt.Sprintf(
				"no new finalizers can be added if the object is being deleted, found new finalizers []string{%q}", f)))
		}
	}
	return nil
}

// contentChanged reports whether a field changed that metadata.generation counts.
func contentChanged(d *definition, before, after object) bool {
	if d.annotated && !maps.EqualFunc(annotationsOf(before), annotationsOf(after), equal) {
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

func annotationsOf(tree object) object { return mapAt(mapAt(tree, "metadata"), "annotations") }

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
