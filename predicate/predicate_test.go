package predicate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/predicate"
)

type pod struct {
	metav1.ObjectMeta
	Node string
}

type notification = api.Change[*pod]

func object(change func(*pod)) *pod {
	p := &pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", ResourceVersion: "1", Generation: 1, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "1"},
	}, Node: "n1"}
	if change != nil {
		change(p)
	}
	return p
}

func update(change func(*pod)) notification {
	return notification{Type: api.Updated, Old: object(nil), Object: object(change)}
}

func TestPredicates(t *testing.T) {
	web, err := labels.Parse("app=web")
	require.NoError(t, err)
	node := predicate.Changed(func(p *pod) string { return p.Node })
	onN1 := func(p *pod) bool { return p.Node == "n1" }
	predicates := map[string]predicate.Predicate[*pod]{
		"Created": predicate.Created[*pod], "Updated": predicate.Updated[*pod], "Deleted": predicate.Deleted[*pod],
		"Initial": predicate.Initial[*pod], "Resynced": predicate.Resynced[*pod],
		"GenerationChanged": predicate.GenerationChanged[*pod], "ResourceVersionChanged": predicate.ResourceVersionChanged[*pod],
		"LabelsChanged": predicate.LabelsChanged[*pod], "AnnotationsChanged": predicate.AnnotationsChanged[*pod],
		"Changed": node, "Object": predicate.Object(onN1), "Either": predicate.Either(onN1),
		"LabelSelector": predicate.LabelSelector[*pod](web),
	}
	compare := []string{"GenerationChanged", "ResourceVersionChanged", "LabelsChanged", "AnnotationsChanged", "Changed"}
	select1 := []string{"Object", "Either", "LabelSelector"}
	with := func(lists ...[]string) (all []string) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	for name, test := range map[string]struct {
		n    notification
		pass []string
	}{
		"add":     {notification{Type: api.Added, Object: object(nil)}, with(compare, select1, []string{"Created"})},
		"initial": {notification{Type: api.Added, Object: object(nil), InitialList: true}, with(compare, select1, []string{"Created", "Initial"})},
		"delete":  {notification{Type: api.Deleted, Object: object(nil)}, with(compare, select1, []string{"Deleted"})},
		"tombstone": {
			notification{Type: api.Deleted, Object: object(nil), FinalStateUnknown: true},
			with(compare, select1, []string{"Deleted"}),
		},
		"add of another": {
			notification{Type: api.Added, Object: object(func(p *pod) { p.Node, p.Labels = "n2", nil })},
			with(compare, []string{"Created"}),
		},
		"resync": {
			notification{Type: api.Updated, Old: object(nil), Object: object(nil), Resync: true},
			with(select1, []string{"Updated", "Resynced"}),
		},
		"new version":    {update(func(p *pod) { p.ResourceVersion = "2" }), with(select1, []string{"Updated", "ResourceVersionChanged"})},
		"new generation": {update(func(p *pod) { p.Generation = 2 }), with(select1, []string{"Updated", "GenerationChanged"})},
		"new label":      {update(func(p *pod) { p.Labels["b"] = "" }), with(select1, []string{"Updated", "LabelsChanged"})},
		"label gone": {
			update(func(p *pod) { delete(p.Labels, "app") }),
			[]string{"Updated", "LabelsChanged", "Object", "Either"},
		},
		"other label": {
			update(func(p *pod) { p.Labels["app"] = "db" }),
			[]string{"Updated", "LabelsChanged", "Object", "Either"},
		},
		"new annotation": {update(func(p *pod) { p.Annotations["a"] = "2" }), with(select1, []string{"Updated", "AnnotationsChanged"})},
		"field changed": {
			update(func(p *pod) { p.Node = "n2" }),
			[]string{"Updated", "Changed", "Either", "LabelSelector"},
		},
		"nil to empty": {
			notification{
				Type:   api.Updated,
				Old:    object(func(p *pod) { p.Labels, p.Annotations = nil, nil }),
				Object: object(func(p *pod) { p.Labels, p.Annotations = map[string]string{}, map[string]string{} }),
			},
			[]string{"Updated", "Object", "Either"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var passed []string
			for name, p := range predicates {
				if p(test.n) {
					passed = append(passed, name)
				}
			}
			require.ElementsMatch(t, test.pass, passed)
		})
	}
	require.Panics(t, func() { predicate.LabelSelector[*pod](nil) })
}

func TestFuncs(t *testing.T) {
	events := map[string]notification{
		"add":    {Type: api.Added, Object: object(nil)},
		"update": update(func(p *pod) { p.Node = "n2" }),
		"delete": {Type: api.Deleted, Object: object(nil)},
	}
	asked := ""
	for name, f := range map[string]predicate.Funcs[*pod]{
		"none":   {},
		"add":    {Add: func(p *pod) bool { asked = p.Node; return false }},
		"update": {Update: func(before, after *pod) bool { asked = before.Node + after.Node; return false }},
		"delete": {Delete: func(p *pod) bool { asked = p.Node; return false }},
	} {
		for kind, n := range events {
			asked = ""
			require.Equal(t, kind != name, f.Pass(n), "%s called for %s", name, kind)
			require.Equal(t, map[bool]string{true: map[string]string{"add": "n1", "update": "n1n2", "delete": "n1"}[kind]}[kind == name], asked)
		}
	}
	yes := predicate.Funcs[*pod]{
		Add:    func(*pod) bool { return true },
		Update: func(*pod, *pod) bool { return true },
		Delete: func(*pod) bool { return true },
	}
	for _, n := range events {
		require.True(t, yes.Pass(n))
	}
}
