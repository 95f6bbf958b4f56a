package await

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// Condition is the condition of a wait. It has no state, so several waits may share one. It corresponds to
// watchtools.ConditionFunc of client-go.
type Condition[T any] struct {
	// Name describes the condition in errors: "condition Ready=True".
	Name string
	// Met reports whether the object meets the condition. If exists is false, there is no such object, and object is
	// its last known state or the zero T. An error ends the wait, for instance because the object has failed
	// permanently. Met runs on the waiting goroutine and must not change the object.
	Met func(object T, exists bool) (bool, error)
	// State describes an object that does not meet the condition yet: "Ready=False". If it is nil, the resource version
	// is used.
	State func(object T) string
}

// waiting describes an object that does not meet c.
func (c Condition[T]) waiting(key api.Key, object T, exists bool) Waiting {
	w := Waiting{Key: key, Exists: exists}
	if !exists {
		return w
	}
	if c.State != nil {
		w.State = c.State(object)
	} else if o, ok := any(object).(api.Object); ok {
		w.State = "at version " + o.GetResourceVersion()
	}
	return w
}

// Exists waits until an object exists.
func Exists[T api.Object]() Condition[T] {
	return Condition[T]{
		Name: "creation",
		Met:  func(_ T, exists bool) (bool, error) { return exists, nil },
	}
}

// Deleted waits until an object is deleted. With a UID, it waits for that object; another object with the same name
// does not count, even if it existed before the wait. Without a UID, it waits for the object that exists at the start
// of the wait, if any. An object that finalizers hold is not deleted yet.
func Deleted[T api.Object](uid types.UID) Condition[T] {
	return Condition[T]{
		Name: "deletion",
		Met: func(object T, exists bool) (bool, error) {
			return !exists || uid != "" && object.GetUID() != uid, nil
		},
		State: lingering[T],
	}
}

// lingering tells why an object still exists, if its type declares the necessary fields.
func lingering[T api.Object](object T) string {
	o, ok := any(object).(metav1.Object)
	if !ok || o.GetDeletionTimestamp() == nil {
		return "at version " + object.GetResourceVersion()
	}
	if f := o.GetFinalizers(); len(f) > 0 {
		return "being deleted, held by " + quote.List(f, ", ")
	}
	return fmt.Sprintf("being deleted, until %s", o.GetDeletionTimestamp().UTC().Format("15:04:05"))
}
