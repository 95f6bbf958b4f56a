package builtin

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Resets returns the fields that a write to a subresource ignores, by API version; "" is the resource itself. They are
// those that the strategies of Kubernetes reset.
func (s *rules) Resets() map[string]map[fieldpath.APIVersion]fieldpath.Filter {
	out := map[string]map[fieldpath.APIVersion]fieldpath.Filter{}
	add := func(subresource string, strategy any) {
		// A strategy with a filter contains the strategy of the whole object, which has the other method.
		if r, ok := strategy.(rest.ResetFieldsFilterStrategy); ok {
			out[subresource] = r.GetResetFieldsFilter()
		} else if r, ok := strategy.(rest.ResetFieldsStrategy); ok {
			out[subresource] = fieldpath.NewExcludeFilterSetMap(r.GetResetFields())
		}
	}
	add("", s.resource.strategy)
	add("status", s.resource.status)
	for _, p := range s.resource.parts {
		add(p.name, p.strategy)
	}
	return out
}
