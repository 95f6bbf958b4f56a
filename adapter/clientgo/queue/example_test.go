package queue_test

import (
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/leatproject/leat/adapter/clientgo/queue"
)

func Example() {
	q := queue.New("pods", workqueue.DefaultTypedControllerRateLimiter[string]())
	q.Add("default/web")
	q.ShutDown()
	for {
		key, shutdown := q.Get()
		if shutdown {
			return
		}
		fmt.Println("reconcile", key)
		q.Forget(key)
		q.Done(key)
	}
	// Output: reconcile default/web
}
