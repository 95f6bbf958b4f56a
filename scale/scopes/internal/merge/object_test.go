package merge_test

import (
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

func (t *thing) String() string { return t.namespace + "/" + t.name + "#" + t.uid + "@" + t.version }

// at returns a state of an object whose UID is derived from its name.
func at(name, version string) *thing {
	return &thing{namespace: "ns", name: name, uid: "uid-" + name, version: version}
}

type (
	queue  = deltafifo.DeltaFIFO[*thing]
	batch  = deltafifo.Batch[*thing]
	change = api.Change[*thing]
)

// lines formats the changes of a batch, and the keys that it forgets.
func lines(b batch) []string {
	var all []string
	for _, o := range b.Objects {
		for _, c := range o.Changes {
			s := c.Type.String() + " " + c.Object.String()
			if c.Old != nil {
				s += " from @" + c.Old.version
			}
			if c.InitialList {
				s += " initial"
			}
			all = append(all, s)
		}
	}
	for _, key := range b.Forgotten {
		all = append(all, "Forgotten "+api.FormatKey(key))
	}
	return all
}
