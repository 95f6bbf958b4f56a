package conditions_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/reconcile/conditions"
)

// A condition of an older generation may no longer hold.
func ExampleIsCurrent() {
	all := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Started", ObservedGeneration: 2}}
	fmt.Println(conditions.Is(all, "Ready", metav1.ConditionTrue))
	fmt.Println(conditions.IsCurrent(all, "Ready", metav1.ConditionTrue, 3))
	fmt.Println(conditions.Find(all, "Ready").Reason)
	fmt.Println(conditions.Remove(&all, "Ready"), len(all))
	// Output:
	// true
	// false
	// Started
	// true 0
}

func ExampleAddFinalizer() {
	data := &metav1.ObjectMeta{Name: "data"}
	fmt.Println(conditions.AddFinalizer(data, "example.org/volume"), conditions.AddFinalizer(data, "example.org/volume"))
	fmt.Println(conditions.HasFinalizer(data, "example.org/volume"))
	fmt.Println(conditions.RemoveFinalizer(data, "example.org/volume"), data.Finalizers)
	// Output:
	// true false
	// true
	// true []
}
