package predicate_test

import (
	"fmt"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/predicate"
)

// An object that leaves a selection passes only if the predicate also checks its old state.
func Example() {
	onFirstNode := func(p *pod) bool { return p.Node == "n1" }
	moved := informer.Notification[*pod]{Type: informer.Update, Old: &pod{Node: "n1"}, Object: &pod{Node: "n2"}}
	fmt.Println("Object:", predicate.Object(onFirstNode)(moved))
	fmt.Println("Either:", predicate.Either(onFirstNode)(moved))
	fmt.Println("GenerationChanged:", predicate.GenerationChanged(moved))
	// Output:
	// Object: false
	// Either: true
	// GenerationChanged: false
}
