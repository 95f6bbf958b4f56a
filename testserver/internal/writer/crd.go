package writer

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// establish checks a CustomResourceDefinition and writes the status that its controllers would write. Everything is
// accepted and established at once.
func (wr *Writer) establish(tree object.Tree) error {
	d, err := registry.FromCRD(tree)
	name := object.StringAt(object.Metadata(tree), "name")
	if err != nil {
		return invalid(wr.store.Collection(registry.CRDs).Definition(), name, field.Invalid(field.NewPath("spec"), name, err.Error()))
	}
	if want := d.GroupResource().String(); name != want {
		return invalid(wr.store.Collection(registry.CRDs).Definition(), name, field.Invalid(metaPath.Child("name"), name,
			`must be spec.names.plural+"."+spec.group`))
	}
	if c := wr.store.Collection(d.GroupResource()); c != nil && !c.Definition().FromCRD {
		return apierrors.NewConflict(registry.CRDs, name, errors.New("the server already serves a resource of this name"))
	}
	spec := object.MapAt(tree, "spec")
	names := object.MapAt(spec, "names")
	object.SetDefault(names, "singular", d.SingularName())
	object.SetDefault(names, "listKind", d.Kind+"List")
	old := object.MapAt(tree, "status")
	since := func(kind string) any {
		for _, c := range object.SliceAt(old, "conditions") {
			if c, ok := c.(object.Tree); ok && c["type"] == kind {
				return c["lastTransitionTime"]
			}
		}
		return now()
	}
	tree["status"] = object.Tree{
		"acceptedNames":  names,
		"storedVersions": []any{d.Version},
		"conditions": []any{
			object.Tree{
				"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
				"lastTransitionTime": since("NamesAccepted"),
			},
			object.Tree{
				"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
				"message": "the initial names have been accepted", "lastTransitionTime": since("Established"),
			},
		},
	}
	return nil
}

// serveCRDs updates the served resources to the stored CustomResourceDefinitions. The caller holds the lock.
func (wr *Writer) serveCRDs() {
	wanted := map[schema.GroupResource]*registry.Definition{}
	for r := range wr.store.Collection(registry.CRDs).All("") {
		if d, err := registry.FromCRD(r.Tree()); err == nil {
			wanted[d.GroupResource()] = d
		}
	}
	for _, c := range wr.store.Served() {
		if gr := c.Definition().GroupResource(); c.Definition().FromCRD && wanted[gr] == nil {
			for r := range c.All("") {
				wr.store.Drop(c, r)
				wr.finishNamespace(r.Key.Namespace)
			}
			wr.store.Retire(c)
		}
	}
	for r := range wr.store.Collection(registry.CRDs).All("") {
		if d, err := registry.FromCRD(r.Tree()); err == nil {
			wr.store.Define(d)
		}
	}
}

// Restore makes a state the present one, with the resources that were defined in it. The caller holds the lock.
func (wr *Writer) Restore(to *store.State) {
	wr.store.Restore(to)
	for _, c := range wr.store.Served() {
		if c.Definition().FromCRD {
			wr.store.Retire(c)
		}
	}
	wr.serveCRDs()
}
