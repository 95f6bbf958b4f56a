// Package controllerruntime drives the priority queue and a controller of controller-runtime in the bench.
package controllerruntime

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/leatproject/leat/bench/subject"
)

// Library is controller-runtime with its defaults: the priority queue, and a controller. Its caches are client-go's.
func Library() subject.Library {
	return subject.Library{Queue: newQueue, Controller: newController, Many: newMany}
}

type queue struct {
	priorityqueue.PriorityQueue[subject.Key]
}

func newQueue() subject.Keys { return queue{priorityqueue.New[subject.Key]("bench")} }

// AddPriority adds a key with a priority.
func (q queue) AddPriority(key subject.Key, priority int) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key)
}

// AddAfter adds a key that is due later.
func (q queue) AddAfter(key subject.Key, seconds int) {
	q.AddWithOpts(priorityqueue.AddOpts{After: time.Duration(seconds) * time.Second}, key)
}

// Get waits for a key.
func (q queue) Get() (subject.Key, bool) {
	key, _, shutdown := q.GetWithPriority()
	return key, !shutdown
}
