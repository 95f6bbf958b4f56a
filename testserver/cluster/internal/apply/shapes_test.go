package apply_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/cluster/internal/apply"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// TestCreationsOfSimilarObjects creates objects that are almost alike, with managers that remember the others and with
// new ones.
func TestCreationsOfSimilarObjects(t *testing.T) {
	for _, c := range []struct {
		name    string
		make    func() registry.Managers
		objects []string
	}{
		{"Pod", func() registry.Managers { return apply.Builtin(apply.Kind{Kind: "Pod"}) }, []string{
			"{metadata: {name: a}, spec: {containers: [{name: a, image: i}]}}",
			"{metadata: {name: b, uid: '1'}, spec: {containers: [{name: a, image: j}]}}",
			"{metadata: {name: b, creationTimestamp: null}, spec: {containers: [{name: b, image: i}]}}",
			"{metadata: {name: b, creationTimestamp: '2026-01-01T00:00:00Z'}, spec: {containers: [{name: b, image: i}]}}",
			"{metadata: {name: b}, spec: {containers: [{name: b, image: i}, {name: a, image: i}]}}",
			"{metadata: {name: b}, spec: {containers: null}}", "{metadata: {name: b}, spec: {containers: []}}",
			"{metadata: {name: b}, spec: {containers: {}}}", "{metadata: {name: b}, spec: {containers: x}}",
			"{metadata: {name: b, finalizers: [x/y]}, spec: {containers: null}}",
			"{metadata: {name: b, finalizers: [x/z]}, spec: {containers: null}}",
			"{metadata: {name: b, labels: {a: b}}, spec: {containers: null}}",
			"{metadata: {name: b, labels: {ab: ''}}, spec: {containers: null}}",
			"{metadata: {name: b, labels: {}}, spec: {containers: null}}",
			"{metadata: {name: b, labels: null}, spec: {containers: null}, status: {}}",
			"{metadata: {name: b}, spec: {containers: [{name: a, ports: [{containerPort: 80, protocol: TCP}]}]}}",
			"{metadata: {name: b}, spec: {containers: [{name: a, ports: [{containerPort: 81, protocol: TCP}]}]}}",
			"{metadata: {name: b}, spec: {containers: [{name: a, ports: [{containerPort: 81, protocol: UDP}]}]}}",
			"{metadata: {name: b}, spec: {containers: [{name: a, tty: true}], hostNetwork: true}}",
			"{metadata: {name: b}, spec: {containers: [{name: a, tty: false}], hostNetwork: false}}",
			"{metadata: {name: b}, spec: {containers: [{name: a, tty: 1}], hostNetwork: yes please}}",
		}},
		{"HorizontalPodAutoscaler", func() registry.Managers {
			return apply.Builtin(apply.Kind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"})
		}, []string{
			"{metadata: {name: a}, spec: {maxReplicas: 0, scaleTargetRef: {kind: '', name: d}}}",
			"{metadata: {name: a}, spec: {maxReplicas: 1, scaleTargetRef: {kind: D, name: ''}}}",
			"{metadata: {name: a}, spec: {maxReplicas: 2, scaleTargetRef: {kind: '', name: ''}}}",
			"{metadata: {name: a}, spec: {maxReplicas: 0.5, scaleTargetRef: {kind: D, name: d}}}",
			"{metadata: {name: a}, spec: {maxReplicas: 0}}", "{metadata: {name: a}, spec: {maxReplicas: 7}}",
			"{metadata: {name: a}, spec: {}, status: {currentReplicas: 0, desiredReplicas: 1}}",
			"{metadata: {name: a}, spec: {}, status: {currentReplicas: 1, desiredReplicas: 0}}",
		}},
		{"Widget", func() registry.Managers { return apply.Custom(widgets(t), nil) }, []string{
			"{metadata: {name: a}, spec: {tags: [a, b], atoms: [a], parts: [{name: x, count: 1}]}}",
			"{metadata: {name: a}, spec: {tags: [a, c], atoms: [a], parts: [{name: x, count: 1}]}}",
			"{metadata: {name: a}, spec: {tags: [a, c], atoms: [a, b], parts: [{name: y, count: 2}]}}",
			"{metadata: {name: a}, spec: {size: 1}}", "{metadata: {name: a}, spec: {size: 2}}",
			"{metadata: {name: a}, spec: {size: '2'}}", "{metadata: {name: a}, spec: null}", "{metadata: {name: a}}",
			"{metadata: {name: a}, status: {any: [thing]}}",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			group, version := "", "v1"
			switch c.name {
			case "HorizontalPodAutoscaler":
				group = "autoscaling/"
			case "Widget":
				group = "example.com/"
			}
			shared := c.make()
			for round := range 3 {
				for i, object := range c.objects {
					by := registry.Manager{Name: fmt.Sprintf("m%d", round%2), Served: version}
					tree := parse(t, object)
					tree["apiVersion"], tree["kind"] = group+version, c.name
					before := text(t, tree)
					want, wantErr := c.make().Updated(by, nil, tree)
					got, err := shared.Updated(by, nil, tree)
					require.Equal(t, wantErr, err)
					require.Equal(t, withoutTimes(t, want), withoutTimes(t, got), "round %d, object %d", round, i)
					require.Equal(t, before, text(t, tree), "the tree of the caller")
					spoil(got)
				}
			}
		})
	}
}

// withoutTimes returns the JSON of a tree. The times of its managers must be there, and are removed.
func withoutTimes(t *testing.T, tree object.Tree) string {
	out := parse(t, text(t, tree))
	for _, e := range object.SliceAt(object.Metadata(out), "managedFields") {
		require.NotEmpty(t, object.StringAt(e.(object.Tree), "time"))
		delete(e.(object.Tree), "time")
	}
	return text(t, out)
}

// spoil changes the entries of managedFields in a tree. Later objects share only their sets of fields.
func spoil(tree object.Tree) {
	for _, e := range object.SliceAt(object.Metadata(tree), "managedFields") {
		e.(object.Tree)["manager"] = "spoiled"
	}
}

// TestManyShapes creates more shapes than managers remember, and a shape that is too long.
func TestManyShapes(t *testing.T) {
	m := apply.Builtin(apply.Kind{Kind: "ConfigMap"})
	by := registry.Manager{Name: "me", Served: "v1"}
	for i := range 300 {
		name := fmt.Sprintf("k%d", i%150)
		if i == 7 {
			name = fmt.Sprintf("%020000d", i)
		}
		tree := object.Tree{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object.Tree{"name": "m"}, "data": object.Tree{name: "v"},
		}
		got, err := m.Updated(by, nil, tree)
		require.NoError(t, err)
		require.Equal(t, []string{`me Update v1 {"f:data":{".":{},"f:` + name + `":{}}}`}, owners(t, got))
	}
}
