package identity

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// Resources returns the built-in resources of a server with the actions of this package. It does not change its
// argument.
func (i *Identity) Resources(all []*registry.Definition) []*registry.Definition {
	out := slices.Clone(all)
	actions := i.reviews()
	for n, d := range out {
		act, account := actions[d.GroupResource()], d.GroupResource() == schema.GroupResource{Resource: "serviceaccounts"}
		if act == nil && !account {
			continue
		}
		own := *d
		if own.Act = act; account {
			own.Actions = map[string]registry.Action{"token": i.RequestToken}
		}
		out[n] = &own
	}
	return out
}
