package testserver

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/leatproject/leat/api"
)

const crdGroup = "apiextensions.k8s.io"

var crdResource = schema.GroupResource{Group: crdGroup, Resource: "customresourcedefinitions"}

func isCRD(d *definition) bool { return d.GroupResource() == crdResource }

// establish checks a CustomResourceDefinition and writes the status that its controllers would write. Everything is
// accepted and established at once.
func (s *store) establish(tree object) error {
	d, err := definitionOf(tree)
	name := stringAt(metadataOf(tree), "name")
	if err != nil {
		return invalid(s.collections[crdResource].def, name, field.Invalid(field.NewPath("spec"), name, err.Error()))
	}
	if want := d.GroupResource().String(); name != want {
		return invalid(s.collections[crdResource].def, name, field.Invalid(metaPath.Child("name"), name,
			`must be spec.names.plural+"."+spec.group`))
	}
	if c := s.collections[d.GroupResource()]; c != nil && !c.retired && !c.fromCRD() {
		return apierrors.NewConflict(crdResource, name, errors.New("the server already serves a resource of this name"))
	}
	spec := mapAt(tree, "spec")
	names := mapAt(spec, "names")
	setDefault(names, "singular", d.singular())
	setDefault(names, "listKind", d.Kind+"List")
	old := mapAt(tree, "status")
	since := func(kind string) any {
		for _, c := range sliceAt(old, "conditions") {
			if c, ok := c.(object); ok && c["type"] == kind {
				return c["lastTransitionTime"]
			}
		}
		return now()
	}
	tree["status"] = object{
		"acceptedNames":  names,
		"storedVersions": []any{d.Version},
		"conditions": []any{
			object{
				"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
				"lastTransitionTime": since("NamesAccepted"),
			},
			object{
				"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
				"message": "the initial names have been accepted", "lastTransitionTime": since("Established"),
			},
		},
	}
	return nil
}

// fromCRD reports whether a CustomResourceDefinition defined the collection, instead of Server.Define or builtins.
func (c *collection) fromCRD() bool { return c.def.crd }

// serveCRDs updates the served resources to the stored CustomResourceDefinitions. The caller holds the lock.
func (s *store) serveCRDs() {
	wanted := map[schema.GroupResource]*definition{}
	for r := range s.collections[crdResource].root.scan("", "") {
		if d, err := definitionOf(r.tree()); err == nil {
			wanted[d.GroupResource()] = d
		}
	}
	for _, c := range slices.Clone(s.order) {
		if gr := c.def.GroupResource(); c.fromCRD() && wanted[gr] == nil {
			for r := range c.root.scan("", "") {
				s.drop(c, r)
				s.finishNamespace(r.key.Namespace)
			}
			s.retire(c)
		}
	}
	for r := range s.collections[crdResource].root.scan("", "") {
		if d, err := definitionOf(r.tree()); err == nil {
			s.define(d)
		}
	}
}

// definitionOf parses a CustomResourceDefinition.
func definitionOf(tree object) (*definition, error) {
	spec := mapAt(tree, "spec")
	names := mapAt(spec, "names")
	d := Definition{
		Resource: api.Resource{
			Group: stringAt(spec, "group"), Kind: stringAt(names, "kind"), Plural: stringAt(names, "plural"),
			Namespaced: stringAt(spec, "scope") == "Namespaced",
		},
		Singular:   stringAt(names, "singular"),
		ShortNames: stringsAt(names, "shortNames"),
		Categories: stringsAt(names, "categories"),
		NoStatus:   true,
	}
	if scope := stringAt(spec, "scope"); scope != "Namespaced" && scope != "Cluster" {
		return nil, fmt.Errorf("scope must be Namespaced or Cluster, not %q", scope)
	}
	if d.Group == "" {
		return nil, errors.New("group is required")
	}
	scale := false
	for _, v := range sliceAt(spec, "versions") {
		v, _ := v.(object)
		if v["served"] != true {
			continue
		}
		if v["storage"] == true && d.Version != "" {
			d.Versions = slices.Insert(d.Versions, 0, d.Version)
			d.Version = ""
		}
		if d.Version == "" {
			d.Version = stringAt(v, "name")
		} else {
			d.Versions = append(d.Versions, stringAt(v, "name"))
		}
		subresources := mapAt(v, "subresources")
		_, hasStatus := subresources["status"]
		_, hasScale := subresources["scale"]
		d.NoStatus, scale = d.NoStatus && !hasStatus, scale || hasScale
		for _, f := range sliceAt(v, "selectableFields") {
			if f, ok := f.(object); ok {
				d.SelectableFields = append(d.SelectableFields, stringAt(f, "jsonPath"))
			}
		}
	}
	out, err := customDefinition(d)
	if err != nil {
		return nil, err
	}
	out.crd, out.scale = true, scale
	return out, nil
}

func stringsAt(m object, name string) []string {
	var out []string
	for _, v := range sliceAt(m, name) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
