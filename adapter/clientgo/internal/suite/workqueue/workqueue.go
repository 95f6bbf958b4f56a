// Package workqueue stands in for client-go's package of this name in client-go's tests of it.
package workqueue

import (
	"k8s.io/client-go/util/workqueue"

	"github.com/leatproject/leat/adapter/clientgo/queue"
)

type (
	// Type is the queue.
	Type = Of[any]
	// Interface is what the tests call.
	Interface = workqueue.TypedInterface[any]
	// TypedQueueConfig has no options.
	TypedQueueConfig[K comparable] struct{}
	// Queue is an order, which leat's queue does not take.
	Queue[K comparable] = workqueue.Queue[K]
)

// Of is leat's queue.
type Of[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
}

// New returns a queue.
func New() *Type { return NewTypedWithConfig(TypedQueueConfig[any]{}) }

// NewTypedWithConfig returns a queue.
func NewTypedWithConfig[K comparable](TypedQueueConfig[K]) *Of[K] {
	return &Of[K]{queue.New("", workqueue.DefaultTypedControllerRateLimiter[K]())}
}
