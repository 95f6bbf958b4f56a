package cluster

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/internal/fieldmanager"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// withManagers adds field managers and strategic merge patches to built-in resources.
func withManagers(all []*registry.Definition) []*registry.Definition {
	for _, d := range all {
		kind := fieldmanager.Kind{Group: d.Group, Kind: d.Kind}
		if s, ok := d.Schema.(interface {
			Resets() map[string]map[fieldpath.APIVersion]fieldpath.Filter
		}); ok {
			kind.Resets = s.Resets()
		}
		d.Managers = apply.Builtin(kind)
		d.StrategicMerge = apply.Strategic(d.Group, d.Kind)
		manageSubresources(d)
	}
	return all
}

// manageSubresources adds the field managers of subresources that have a kind of their own.
func manageSubresources(d *registry.Definition) {
	d.ActionManagers = map[string]registry.Managers{}
	for _, s := range d.Subs {
		switch {
		case s.Name == "scale":
			d.Scaling = apply.Scaling(d.Group, map[string][]string{d.Version: {"spec", "replicas"}})
		case !s.OfObject() && slices.Contains(s.Verbs, "create"):
			d.ActionManagers[s.Name] = apply.Builtin(fieldmanager.Kind{Group: s.Group, Kind: s.Kind})
		}
	}
}
