package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	perVersion := map[string]Served{}
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
		served := servedOf(v)
		perVersion[object.StringAt(v, "name")] = served
		d.NoStatus = d.NoStatus && !served.Status
		d.SelectableFields = append(d.SelectableFields, served.Fields...)
	}
	out, err := Custom(d)
	if err != nil {
		return nil, err
	}
	out.FromCRD, out.PerVersion = true, perVersion
	return out, nil
}

// servedOf reads one version of a CustomResourceDefinition.
func servedOf(version object.Tree) (out Served) {
	subresources := object.MapAt(version, "subresources")
	_, out.Status = subresources["status"]
	if _, ok := subresources["scale"]; ok {
		scale := object.MapAt(subresources, "scale")
		path := func(name, missing string) []string {
			text := strings.TrimPrefix(cmp.Or(object.StringAt(scale, name), missing), ".")
			if text == "" {
				return nil
			}
			return strings.Split(text, ".")
		}
		out.Scale = &ScalePaths{
			Replicas: path("specReplicasPath", ".spec.replicas"), StatusReplicas: path("statusReplicasPath", ".status.replicas"),
			Selector: path("labelSelectorPath", ""),
		}
	}
	for _, f := range object.SliceAt(version, "selectableFields") {
		if f, ok := f.(object.Tree); ok {
			out.Fields = append(out.Fields, strings.TrimPrefix(object.StringAt(f, "jsonPath"), "."))
		}
	}
	return out
}
