package status_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/status"
)

// A condition of an older generation may no longer hold.
func ExampleIsCurrent() {
	all := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Started", ObservedGeneration: 2}}
	fmt.Println(status.Is(all, "Ready", metav1.ConditionTrue))
	fmt.Println(status.IsCurrent(all, "Ready", metav1.ConditionTrue, 3))
	fmt.Println(status.Find(all, "Ready").Reason)
	fmt.Println(status.Remove(&all, "Ready"), len(all))
	// Output:
	// true
	// false
	// Started
	// true 0
}

func ExampleAddFinalizer() {
	data := &metav1.ObjectMeta{Name: "data"}
	fmt.Println(status.AddFinalizer(data, "example.org/volume"), status.AddFinalizer(data, "example.org/volume"))
	fmt.Println(status.HasFinalizer(data, "example.org/volume"))
	fmt.Println(status.RemoveFinalizer(data, "example.org/volume"), data.Finalizers)
	// Output:
	// true false
	// true
	// true []
}
