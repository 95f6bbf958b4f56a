package queue

import (
	"context"
	"errors"

	clientgo "k8s.io/client-go/util/workqueue"

	"github.com/leatproject/leat/workqueue"
)

// New returns a queue whose AddRateLimited delays as limiter says. It has the type of controller-runtime's
// controller.Options.NewQueue. name is the name in leat's metrics and may be empty.
func New[K comparable](name string, limiter clientgo.TypedRateLimiter[K]) clientgo.TypedRateLimitingInterface[K] {
	return Wrap(workqueue.New[K](workqueue.Options{Name: name}, limiter))
}

// NewWithConfig returns a queue for the options of client-go. An option other than Name is an error: leat's queue has
// no other clock and no other order, and does not report to a MetricsProvider.
func NewWithConfig[K comparable](
	limiter clientgo.TypedRateLimiter[K], c clientgo.TypedRateLimitingQueueConfig[K],
) (clientgo.TypedRateLimitingInterface[K], error) {
	switch {
	case c.MetricsProvider != nil:
		return nil, errors.New("queue: TypedRateLimitingQueueConfig.MetricsProvider is not supported; use Wrap and leat's package metrics")
	case c.Clock != nil:
		return nil, errors.New("queue: TypedRateLimitingQueueConfig.Clock is not supported; test with testing/synctest")
	case c.DelayingQueue != nil:
		return nil, errors.New("queue: TypedRateLimitingQueueConfig.DelayingQueue is not supported")
	}
	return New(c.Name, limiter), nil
}

// Wrap returns a queue of leat as a queue of client-go. Both can be used at the same time.
func Wrap[K comparable](q *workqueue.Queue[K]) clientgo.TypedRateLimitingInterface[K] {
	return wrapped[K]{q}
}

// wrapped is a queue of leat with the methods of client-go.
type wrapped[K comparable] struct{ *workqueue.Queue[K] }

// Get blocks until a key is ready, or the queue is shut down and has no more keys.
func (w wrapped[K]) Get() (key K, shutdown bool) {
	work, err := w.Queue.Get(context.Background())
	return work.Key, err != nil
}

// ShuttingDown reports whether the queue was shut down.
func (w wrapped[K]) ShuttingDown() bool { return w.Queue.ShuttingDown() }

// ShutDownWithDrain shuts the queue down and waits until it is empty.
func (w wrapped[K]) ShutDownWithDrain() {
	_ = w.Queue.ShutDownWithDrain(context.Background()) // an error means that ShutDown ended the drain
}
