package expectations_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reconcile/expectations"
)

func Example() {
	e := expectations.New[api.Key](expectations.Options{})
	web := api.Key{Namespace: "shop", Name: "web"}

	// This reconcile is about to create two pods.
	e.Expect(web, 2)
	// The first pod is created. The server rejects the second, so no handler will ever see it.
	e.Created(web, 1)
	fmt.Println("may reconcile:", e.Satisfied(web))
	// The informer's handler sees the first pod.
	e.Created(web, 1)
	fmt.Println("may reconcile:", e.Satisfied(web))
	// Output:
	// may reconcile: false
	// may reconcile: true
}

func ExampleSlowStart() {
	created, err := expectations.SlowStart(context.Background(), 1000, func(_ context.Context, i int) error {
		if i >= 3 {
			return errors.New("quota exceeded")
		}
		return nil
	})
	fmt.Println(created, err != nil)
	// Output: 3 true
}
