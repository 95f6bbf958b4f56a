package deltafifo_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// thing is an object with only an identity and a version.
type thing struct{ namespace, name, uid, version string }

func (t *thing) GetNamespace() string       { return t.namespace }
func (t *thing) GetName() string            { return t.name }
func (t *thing) GetUID() types.UID          { return types.UID(t.uid) }
func (t *thing) GetResourceVersion() string { return t.version }

func (t *thing) String() string {
	return fmt.Sprintf("%s#%s@%s", api.FormatKey(api.KeyOf(t)), t.uid, t.version)
}

// at returns a state of an object whose UID is derived from its name.
func at(name, version string) *thing { return incarnation(name, "uid-"+name, version) }

func incarnation(name, uid, version string) *thing {
	return &thing{namespace: "ns", name: name, uid: uid, version: version}
}

func keyOf(name string) api.Key { return api.Key{Namespace: "ns", Name: name} }

type (
	queue  = deltafifo.DeltaFIFO[*thing]
	batch  = deltafifo.Batch[*thing]
	change = api.Change[*thing]
)

// lines formats a batch: objects and changes in their order.
func lines(b batch) []string {
	var all []string
	for _, o := range b.Objects {
		for _, c := range o.Changes {
			all = append(all, line(c))
		}
	}
	return all
}

func line(c change) string {
	s := c.Type.String() + " " + c.Object.String()
	if c.Old != nil {
		s += " from @" + c.Old.version
	}
	if c.FinalStateUnknown {
		s += " final state unknown"
	}
	if c.InitialList {
		s += " initial"
	}
	return s
}
