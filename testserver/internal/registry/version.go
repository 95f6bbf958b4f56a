package registry

import "slices"

// Served is what differs between the served versions of a custom resource.
type Served struct {
	Status       bool        // has a status subresource
	Scale        *ScalePaths // nil: has no scale subresource
	Fields       []string    // paths that field selectors may use
	ScaleColumns Columns     // of the table of a Scale
	Warnings     []string    // of every answer, because the version is deprecated
}

// ScalePaths are the places in an object of the fields of its Scale. An empty path is a field that the Scale omits.
type ScalePaths struct{ Replicas, StatusReplicas, Selector []string }

// SubresourcesIn returns the subresources in a served version.
func (d *Definition) SubresourcesIn(served string) []Subresource {
	v, ok := d.PerVersion[served]
	if !ok {
		return d.Subresources()
	}
	var out []Subresource
	if v.Status {
		out = append(out, statusSubresource)
	}
	if v.Scale != nil {
		scale := scaleSubresource
		scale.Columns = v.ScaleColumns
		out = append(out, scale)
	}
	return out
}

// SelectableIn reports whether field selectors may use the field in a served version.
func (d *Definition) SelectableIn(served, name string) bool {
	v, ok := d.PerVersion[served]
	if !ok || name == "metadata.name" || name == "metadata.namespace" {
		return d.Selectable(name)
	}
	return slices.Contains(v.Fields, name)
}

// ListKindName returns the kind of lists.
func (d *Definition) ListKindName() string {
	if d.ListKind != "" {
		return d.ListKind
	}
	return d.Kind + "List"
}
