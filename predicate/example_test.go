package predicate_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/predicate"
)

// An object that leaves a selection passes only if the predicate also checks its old state.
func Example() {
	onFirstNode := func(p *pod) bool { return p.Node == "n1" }
	moved := api.Change[*pod]{Type: api.Updated, Old: &pod{Node: "n1"}, Object: &pod{Node: "n2"}}
	fmt.Println("Object:", predicate.Object(onFirstNode)(moved))
	fmt.Println("Either:", predicate.Either(onFirstNode)(moved))
	fmt.Println("GenerationChanged:", predicate.GenerationChanged(moved))
	// Output:
	// Object: false
	// Either: true
	// GenerationChanged: false
}

// A source combines predicates with When, Unless and WhenAny. Go infers the type of a predicate that is passed by name.
func ExamplePredicate() {
	var pods api.ListerWatcher[*pod] = nowhere{}
	source := controller.For(informer.New(pods, informer.Options[*pod]{})).
		When(predicate.GenerationChanged, predicate.ResourceVersionChanged, predicate.LabelsChanged, predicate.AnnotationsChanged).
		Unless(predicate.Resynced, predicate.Initial, predicate.Object(func(p *pod) bool { return p.Node == "" })).
		WhenAny(predicate.Created, predicate.Updated, predicate.Deleted, predicate.Changed(func(p *pod) string { return p.Node })).
		When(predicate.Funcs[*pod]{Update: func(before, after *pod) bool { return before.Node != after.Node }}.Pass)
	fmt.Println(source)
	// Output: pods
}

// A pod that loses a label leaves the selection.
func ExampleLabelSelector() {
	left := api.Change[*pod]{Type: api.Updated, Old: object(labelled("web")), Object: object(labelled("db"))}
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	fmt.Println("LabelSelector:", predicate.LabelSelector[*pod](web)(left))
	matches := func(p *pod) bool { return web.Matches(labels.Set(p.Labels)) }
	fmt.Println("Either:", predicate.Either(matches)(left))
	// Output:
	// LabelSelector: false
	// Either: true
}

func labelled(app string) func(*pod) {
	return func(p *pod) { p.Labels = map[string]string{"app": app} }
}

// nowhere is never listed.
type nowhere struct{ api.ListerWatcher[*pod] }

func (nowhere) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Kind: "Pod", Plural: "pods"}}
}
