package writer

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/store"
)

// establish checks a CustomResourceDefinition and writes the status that its controllers would write, unless Settle
// does. Everything is accepted and established at once. It does nothing to objects of other resources.
func (wr *Writer) establish(of *registry.Definition, tree object.Tree) error {
	if !of.IsCRD() || wr.options.Settle != nil {
		return nil
	}
	d, err := registry.FromCRD(tree)
	name := object.StringAt(object.Metadata(tree), "name")
	if err != nil {
		return invalid(of, name, field.Invalid(field.NewPath("spec"), name, err.Error()))
	}
	if want := d.GroupResource().String(); name != want {
		return invalid(of, name, field.Invalid(metaPath.Child("name"), name,
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
		if c := object.Condition(old, kind); c != nil {
			return c["lastTransitionTime"]
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

// parsedCRD is what the writer keeps of a stored CustomResourceDefinition.
type parsedCRD struct {
	definition *registry.Definition // nil if the resource is not served
	status     object.Tree          // of the definition
}

// parsed returns what a stored CustomResourceDefinition defines. Each record is parsed once.
func (wr *Writer) parsed(crd *store.Record) parsedCRD {
	if known, ok := wr.crds[crd]; ok {
		return known
	}
	convert := wr.options.Definition
	if convert == nil {
		convert = untypedFromCRD
	}
	tree := crd.Tree()
	out := parsedCRD{status: object.MapAt(tree, "status")}
	if d, err := convert(tree); err == nil {
		out.definition = d
	}
	return out
}

// serveCRDs updates the served resources to the stored CustomResourceDefinitions. The caller holds the lock.
func (wr *Writer) serveCRDs() {
	parsed := map[*store.Record]parsedCRD{}
	wanted := map[schema.GroupResource]*registry.Definition{}
	crds := wr.store.Collection(registry.CRDs)
	if crds == nil {
		return // the server has no custom resources
	}
	for r := range crds.All("") {
		parsed[r] = wr.parsed(r)
		if d := parsed[r].definition; d != nil {
			wanted[d.GroupResource()] = d
		}
	}
	wr.crds = parsed
	for _, c := range wr.store.Served() {
		if gr := c.Definition().GroupResource(); c.Definition().FromCRD && wanted[gr] == nil {
			for r := range c.All("") {
				wr.store.Drop(c, r)
				wr.finishNamespace(r.Key.Namespace)
			}
			wr.store.Retire(c)
		}
	}
	for r := range crds.All("") {
		d := parsed[r].definition
		if d == nil {
			continue
		}
		if c := wr.store.Collection(d.GroupResource()); c == nil || c.Definition().FromCRD {
			wr.store.Define(d)
		}
	}
}

// settle does what the controllers of kube-apiserver do after a definition was created, changed or deleted: they accept
// its names, establish it, or delete its objects. Each step is a write of its own. A definition whose names become free
// is a reason to look at the others of its group again. The caller holds the lock.
func (wr *Writer) settle(name string) {
	wr.serveCRDs()
	if wr.options.Settle == nil {
		return
	}
	wr.unsettled = append(wr.unsettled, name)
	if len(wr.unsettled) > 1 {
		return // a caller further up continues with it
	}
	for len(wr.unsettled) > 0 {
		next := wr.unsettled[0]
		again := wr.settleOnce(next)
		wr.unsettled = append(wr.unsettled[1:], again...)
	}
}

// settleOnce makes one step. It returns the definitions to look at afterwards.
func (wr *Writer) settleOnce(name string) []string {
	crds := wr.store.Collection(registry.CRDs)
	old := crds.Get(api.Key{Name: name})
	if old == nil {
		return wr.conflicting(name)
	}
	var others []object.Tree
	for _, sibling := range wr.siblings(name) {
		others = append(others, object.Tree{"status": wr.parsed(crds.Get(api.Key{Name: sibling})).status})
	}
	before := old.Tree()
	instances := wr.instances(name)
	tree := wr.options.Settle(before, others, instances != nil && hasObjects(instances))
	if tree == nil {
		return nil
	}
	if old.Deleting && len(object.SliceAt(object.Metadata(tree), "finalizers")) == 0 {
		wr.finish(crds, old)
		return nil
	}
	written, err := wr.putCRD(crds, old, before, tree)
	if err != nil {
		return nil // the definition cannot be encoded, which its Schema has excluded
	}
	wr.serveCRDs()
	if written.Deleting && instances != nil {
		for r := range instances.All("") {
			_, _ = wr.delete(instances, r.Key, metav1.DeleteOptions{}, Write{}) // without preconditions, a delete cannot fail
		}
	}
	return append(wr.conflicting(name), name)
}

// conflicting returns the definitions in the group of a definition whose names were not accepted. They may be now.
func (wr *Writer) conflicting(name string) []string {
	crds := wr.store.Collection(registry.CRDs)
	return slices.DeleteFunc(wr.siblings(name), func(sibling string) bool {
		c := object.Condition(wr.parsed(crds.Get(api.Key{Name: sibling})).status, "NamesAccepted")
		return c != nil && c["status"] == "True"
	})
}

// putCRD stores a definition with the changes of a controller.
func (wr *Writer) putCRD(crds *store.Collection, old *store.Record, before, tree object.Tree) (*store.Record, error) {
	d := crds.Definition()
	if wr.options.ManagedFields && d.Managers != nil {
		for _, t := range []object.Tree{before, tree} {
			t["kind"], t["apiVersion"] = d.Kind, d.GroupVersion().String()
		}
		managed, err := d.Managers.Updated(registry.Manager{Name: "kube-apiserver", Served: d.Version, Subresource: "status"}, before, tree)
		if err != nil {
			return nil, err
		}
		tree = managed
	}
	return wr.store.Put(crds, old, tree)
}

// siblings returns the names of the other definitions in the group of a definition.
func (wr *Writer) siblings(name string) []string {
	_, group, _ := strings.Cut(name, ".")
	var out []string
	for r := range wr.store.Collection(registry.CRDs).All("") {
		if _, other, _ := strings.Cut(r.Key.Name, "."); other == group && r.Key.Name != name {
			out = append(out, r.Key.Name)
		}
	}
	return out
}

// instances returns the collection that a definition defines, or nil.
func (wr *Writer) instances(name string) *store.Collection {
	plural, group, _ := strings.Cut(name, ".")
	c := wr.store.Collection(schema.GroupResource{Group: group, Resource: plural})
	if c == nil || !c.Definition().FromCRD {
		return nil
	}
	return c
}

// terminateCRD marks a definition as being deleted. Its objects are deleted first; see settle.
func (wr *Writer) terminateCRD(c *store.Collection, old *store.Record, tree object.Tree, w Write) (Deletion, error) {
	object.Metadata(tree)["deletionTimestamp"] = now()
	marked := wr.options.Settle(tree, nil, false)
	if w.DryRun {
		r, err := store.NewRecord(c.Definition(), marked, old.Version)
		return Deletion{Record: r}, err
	}
	r, err := wr.stored(c)(wr.store.Put(c, old, marked))
	return Deletion{Record: r}, err
}

// checkDefinition rejects new objects of a resource whose definition is being deleted.
func (wr *Writer) checkDefinition(d *registry.Definition, name string) error {
	if !d.FromCRD {
		return nil
	}
	if !wr.terminating(d.GroupResource().String()) {
		return nil
	}
	return apierrors.NewForbidden(d.GroupResource(), name, errors.New("create not allowed while custom resource definition is terminating"))
}

// terminating reports whether a definition is being deleted.
func (wr *Writer) terminating(name string) bool {
	crd := wr.store.Collection(registry.CRDs).Get(api.Key{Name: name})
	return crd != nil && crd.Deleting
}

func hasObjects(c *store.Collection) bool {
	for range c.All("") {
		return true
	}
	return false
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
