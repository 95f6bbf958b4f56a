package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leatproject/leat/workqueue"
)

// A worker takes keys until the queue is shut down. A failed key comes again, later each time.
func Example() {
	q := workqueue.New[string](workqueue.Options{Backoff: workqueue.Backoff{Base: time.Millisecond}})
	q.Add("default/web")
	q.Add("default/db")
	q.Add("default/web") // coalesces with the first

	failures := 2
	reconcile := func(key string) error {
		if key == "default/db" && failures > 0 {
			failures--
			return errors.New("not yet")
		}
		return nil
	}
	for done := 0; done < 2; {
		work, err := q.Get(context.Background())
		if err != nil {
			return
		}
		if err := reconcile(work.Key); err != nil {
			fmt.Println(work.Key, "failed:", err)
			q.AddRateLimited(work.Key)
		} else {
			fmt.Println(work.Key, "is done, failures before:", q.NumRequeues(work.Key))
			q.Forget(work.Key)
			done++
		}
		q.Done(work.Key)
	}
	// Output:
	// default/web is done, failures before: 0
	// default/db failed: not yet
	// default/db failed: not yet
	// default/db is done, failures before: 2
}

// The queue tells why a key is there, and hands out urgent keys first.
func ExampleQueue_AddWith() {
	q := workqueue.New[string](workqueue.Options{})
	for _, name := range []string{"default/a", "default/b", "default/c"} {
		q.AddWith(name, workqueue.Item{
			Priority: -100, // the initial list can wait
			Cause:    workqueue.Cause{Source: "pods", Event: "initial list", Object: name, Version: "1000"},
		})
	}
	q.AddWith("default/c", workqueue.Item{
		Cause: workqueue.Cause{Source: "pods", Event: "update", Object: "default/c", Version: "1017"},
	})
	for q.Len() > 0 {
		work, err := q.Get(context.Background())
		if err != nil {
			return
		}
		fmt.Printf("%s at priority %d\n", work.Key, work.Priority)
		for _, c := range work.Causes {
			fmt.Printf("  %s %s %s\n", c.Source, c.Event, c.Version)
		}
		q.Done(work.Key)
	}
	// Output:
	// default/c at priority 0
	//   pods initial list 1000
	//   pods update 1017
	// default/a at priority -100
	//   pods initial list 1000
	// default/b at priority -100
	//   pods initial list 1000
}

// A drain ends when the workers have finished everything that is queued.
func ExampleQueue_ShutDownWithDrain() {
	q := workqueue.New[int](workqueue.Options{})
	for key := range 100 {
		q.Add(key)
	}
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for {
				work, err := q.Get(context.Background())
				if err != nil {
					return // ErrShutDown, because the context does not end
				}
				q.Done(work.Key)
			}
		})
	}
	patience, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := q.ShutDownWithDrain(patience)
	workers.Wait()
	fmt.Println("left:", q.Len(), "error:", err)
	// Output:
	// left: 0 error: <nil>
}

// Limiters combine. The first three retries of a key come quickly, no key waits longer than half a minute, and all keys
// together have at most two retries per second.
func ExampleMaxOf() {
	limiter := workqueue.MaxOf(
		workqueue.WithMaxWait(workqueue.FastSlow[string](10*time.Millisecond, time.Hour, 3), 30*time.Second),
		workqueue.TokenBucket[string](workqueue.Bucket{QPS: 2, Burst: 10}),
	)
	q := workqueue.New(workqueue.Options{Name: "pods"}, limiter)
	q.AddRateLimited("default/web")
	for range 4 {
		fmt.Println(limiter.When("default/web"))
	}
	fmt.Println(q.NumRequeues("default/web"))
	// Output:
	// 10ms
	// 10ms
	// 30s
	// 30s
	// 5
}

// Each limiter of client-go has a counterpart. Exponential doubles the delay of a key with each of its failures.
func ExampleExponential() {
	limiter := workqueue.Exponential[string](workqueue.Backoff{Base: time.Second, Max: time.Minute})
	for range 3 {
		fmt.Println(limiter.When("default/web"))
	}
	limiter.Forget("default/web")
	fmt.Println(limiter.When("default/web"))
	// Output:
	// 1s
	// 2s
	// 4s
	// 1s
}

// A delayed key is not handed out after ShutDown, and Get then returns ErrShutDown.
func ExampleQueue_AddAfter() {
	q := workqueue.New[string](workqueue.Options{})
	q.AddAfter("default/web", time.Hour)
	fmt.Println("ready:", q.Len())
	q.ShutDown()
	_, err := q.Get(context.Background())
	fmt.Println(errors.Is(err, workqueue.ErrShutDown))
	// Output:
	// ready: 0
	// true
}
