package writer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// Untyped gives a resource the rules of contents without types, and the managers of its fields. It returns d. All
// versions of the resource have the same contents.
func Untyped(d *registry.Definition) *registry.Definition {
	d.Schema, d.Untyped = untyped{d}, true
	d.Managers = fieldmanager.Untyped(fieldmanager.Kind{Group: d.Group, Kind: d.Kind, Resets: resets(d)})
	replicas := map[string][]string{}
	for _, version := range append([]string{d.Version}, d.Versions...) {
		replicas[version] = []string{"spec", "replicas"}
		if d.PerVersion == nil {
			continue
		}
		if replicas[version] = nil; d.PerVersion[version].Scale != nil {
			replicas[version] = d.PerVersion[version].Scale.Replicas
		}
	}
	d.Scaling = fieldmanager.Scaling(d.Group, replicas, scales, nil)
	return d
}

// scales are the managers of Scales.
var scales = fieldmanager.Untyped(fieldmanager.Kind{Group: "autoscaling", Kind: "Scale"})

func untypedFromCRD(crd object.Tree) (*registry.Definition, error) {
	d, err := registry.FromCRD(crd)
	if err != nil {
		return nil, err
	}
	return Untyped(d), nil
}

// resets returns the fields that writes to a resource and to its status ignore.
func resets(d *registry.Definition) map[string]map[fieldpath.APIVersion]fieldpath.Filter {
	if d.NoStatus {
		return nil
	}
	status := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	if d.Custom {
		status.Insert(fieldpath.MakePathOrDie("metadata"))
	}
	for _, name := range d.StatusKeeps {
		status.Insert(fieldpath.MakePathOrDie("metadata", name))
	}
	out := map[string]map[fieldpath.APIVersion]fieldpath.Filter{"": {}, "status": {}}
	for _, served := range append([]string{d.Version}, d.Versions...) {
		version := fieldpath.APIVersion(d.In(served).GroupVersion().String())
		out[""][version] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
		out["status"][version] = fieldpath.NewExcludeSetFilter(status)
	}
	if d.IsNamespace() {
		out["finalize"] = out[""]
	}
	return out
}

// untyped has the rules of contents without types: they are stored as they are sent. It implements registry.Schema.
type untyped struct{ *registry.Definition }

const mediaJSON, mediaYAML = "application/json", "application/yaml"

// MediaTypes implements registry.Schema.
func (untyped) MediaTypes() []string { return []string{mediaJSON, mediaYAML} }

// Decode implements registry.Schema.
func (u untyped) Decode(to registry.Target, mediaType string, body []byte) (object.Tree, []string, error) {
	if mediaType == mediaYAML {
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	tree, duplicates := object.Tree{}, []string(nil)
	if u.Custom || string(bytes.TrimSpace(body)) != "null" {
		var err error
		if tree, duplicates, err = object.DecodeStrict(body); err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized: %v", err))
		}
	}
	return tree, duplicates, u.check(to, tree)
}

// check checks the shape and the kind of an object. It adds the kind if it is missing, and the defaults.
func (u untyped) check(to registry.Target, tree object.Tree) error {
	if kind, _ := u.SubresourceKind(to.Served, to.Subresource); kind != "" {
		return nil
	}
	as := u.In(to.Served)
	kind, version := object.StringAt(tree, "kind"), object.StringAt(tree, "apiVersion")
	patched := to.Patched && !to.Applied
	err := CheckShape(tree)
	if err == nil && patched && !u.Custom && (kind != as.Kind || version != as.GroupVersion().String()) {
		err = fmt.Errorf("the patch makes it a %s of %s", kind, version)
	}
	if err != nil && patched {
		return &registry.UndecodableError{Err: err}
	}
	if err = cmp.Or(err, checkKind(u.Definition, tree, to.Served)); err != nil {
		return err
	}
	tree["kind"], tree["apiVersion"] = as.Kind, as.GroupVersion().String()
	if u.Default != nil {
		u.Default(tree)
	}
	return nil
}

// Encode implements registry.Schema. It knows only JSON, which the server encodes itself.
func (u untyped) Encode(mediaType string, tree object.Tree) ([]byte, error) {
	if mediaType != mediaJSON {
		return nil, fmt.Errorf("testserver: %s has no form in %s", u.Resource, mediaType)
	}
	return object.EncodeLike(nil, tree), nil
}

// Convert implements registry.Schema.
func (u untyped) Convert(served string, stored object.Tree) (object.Tree, error) {
	out := maps.Clone(stored)
	as := u.In(served)
	out["kind"], out["apiVersion"] = as.Kind, as.GroupVersion().String()
	return out, nil
}

// Create implements registry.Schema.
func (u untyped) Create(op registry.Operation, tree object.Tree) (object.Tree, []string, error) {
	switch kind, _ := u.SubresourceKind(op.Served, op.Subresource); {
	case kind == "Binding" && object.TextAt(tree, "target", "name") == "":
		return nil, nil, store.StorageError(errors.New("target.name: Required value"))
	case kind == "Scale":
		return tree, nil, checkScale(tree)
	case kind != "":
		return tree, nil, nil
	}
	if err := checkMetadata(u.Definition, object.Metadata(tree)); err != nil {
		return nil, nil, err
	}
	if u.Generation {
		object.Metadata(tree)["generation"] = int64(1)
	}
	if u.Prepare != nil {
		u.Prepare(tree)
	}
	if !u.NoStatus && (!op.Direct || tree["status"] == nil) {
		delete(tree, "status")
		if u.ResetStatus != nil {
			tree["status"] = u.ResetStatus()
		}
	}
	return withoutKind(tree), nil, nil
}

// checkScale checks the number of replicas. A Scale without one asks for none.
func checkScale(tree object.Tree) error {
	spec, isObject := tree["spec"].(object.Tree)
	n, isNumber := object.IntAt(spec, "replicas")
	if tree["spec"] != nil && !isObject || spec["replicas"] != nil && !isNumber {
		return apierrors.NewBadRequest("the object provided is unrecognized: spec.replicas of a Scale is not a whole number")
	}
	if n < 0 {
		name := object.StringAt(object.Metadata(tree), "name")
		path := field.NewPath("spec", "replicas")
		return apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, name, field.ErrorList{
			field.Invalid(path, n, apivalidation.IsNegativeErrorMsg),
		})
	}
	return nil
}

// withoutKind removes kind and apiVersion, because stored objects have neither.
func withoutKind(tree object.Tree) object.Tree {
	delete(tree, "kind")
	delete(tree, "apiVersion")
	return tree
}

// Update implements registry.Schema.
func (u untyped) Update(op registry.Operation, before, tree object.Tree) (object.Tree, []string, error) {
	d := u.Definition
	oldMeta := object.MapAt(before, "metadata")
	if err := checkUnchanged(d, oldMeta, object.Metadata(tree)); err != nil {
		return nil, nil, err
	}
	before = withoutKind(maps.Clone(before))
	tree = merged(d, before, withoutKind(tree), op)
	meta := object.Metadata(tree)
	if err := cmp.Or(checkMetadata(d, meta), checkFinalizers(d, oldMeta, meta)); err != nil {
		return nil, nil, err
	}
	if d.IsNamespace() {
		registry.LabelNamespace(meta)
	}
	if counts := op.Subresource == "" || op.Subresource == "scale"; d.Generation && counts && contentChanged(d, before, tree) {
		generation, _ := object.IntAt(oldMeta, "generation")
		meta["generation"] = generation + 1
	}
	return tree, nil, nil
}

// checkUnchanged rejects another UID, and an update that says that an object is being deleted if it is not.
func checkUnchanged(d *registry.Definition, oldMeta, meta object.Tree) error {
	for _, name := range []string{"uid", "deletionTimestamp"} {
		have, sent := object.StringAt(oldMeta, name), object.StringAt(meta, name)
		if sent != "" && sent != have && (name == "uid" || have == "") {
			return invalid(d, object.StringAt(oldMeta, "name"), field.Invalid(metaPath.Child(name), sent, apivalidation.FieldImmutableErrorMsg))
		}
	}
	return nil
}

// merged returns the result of an update: before with the new status, or tree with the old status. In both cases, the
// metadata that only the server writes stay the same.
func merged(d *registry.Definition, before, tree object.Tree, w registry.Operation) object.Tree {
	oldMeta, meta := object.MapAt(before, "metadata"), object.Metadata(tree)
	for _, name := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
	} {
		object.SetOrDrop(meta, name, oldMeta[name])
	}
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

// checkFinalizers rejects new finalizers on an object that is being deleted.
func checkFinalizers(d *registry.Definition, oldMeta, meta object.Tree) error {
	if object.StringAt(oldMeta, "deletionTimestamp") == "" {
		return nil
	}
	known := object.SliceAt(oldMeta, "finalizers")
	for _, f := range object.SliceAt(meta, "finalizers") {
		if !slices.Contains(known, f) {
			return invalid(d, object.StringAt(oldMeta, "name"), field.Forbidden(metaPath.Child("finalizers"), fmt.Sprintf(
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
