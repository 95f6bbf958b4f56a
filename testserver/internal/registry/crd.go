package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
)

// FromCRD parses a CustomResourceDefinition.
func FromCRD(tree object.Tree) (*Definition, error) {
	spec := object.MapAt(tree, "spec")
	names := object.MapAt(spec, "names")
	d := Settings{
		Resource: api.Resource{
			Group: object.StringAt(spec, "group"), Kind: object.StringAt(names, "kind"), Plural: object.StringAt(names, "plural"),
			Namespaced: object.StringAt(spec, "scope") == "Namespaced",
		},
		Singular:   object.StringAt(names, "singular"),
		ShortNames: object.StringsAt(names, "shortNames"),
		Categories: object.StringsAt(names, "categories"),
		NoStatus:   true,
	}
	if scope := object.StringAt(spec, "scope"); scope != "Namespaced" && scope != "Cluster" {
		return nil, fmt.Errorf("scope must be Namespaced or Cluster, not %q", scope)
	}
	if d.Group == "" {
		return nil, errors.New("group is required")
	}
	scale := false
	for _, v := range object.SliceAt(spec, "versions") {
		v, _ := v.(object.Tree)
		if v["served"] != true {
			continue
		}
		if v["storage"] == true && d.Version != "" {
			d.Versions = slices.Insert(d.Versions, 0, d.Version)
			d.Version = ""
		}
		if d.Version == "" {
			d.Version = object.StringAt(v, "name")
		} else {
			d.Versions = append(d.Versions, object.StringAt(v, "name"))
		}
		subresources := object.MapAt(v, "subresources")
		_, hasStatus := subresources["status"]
		_, hasScale := subresources["scale"]
		d.NoStatus, scale = d.NoStatus && !hasStatus, scale || hasScale
		for _, f := range object.SliceAt(v, "selectableFields") {
			if f, ok := f.(object.Tree); ok {
				d.SelectableFields = append(d.SelectableFields, object.StringAt(f, "jsonPath"))
			}
		}
	}
	out, err := Custom(d)
	if err != nil {
		return nil, err
	}
	out.FromCRD, out.scale = true, scale
	return out, nil
}
