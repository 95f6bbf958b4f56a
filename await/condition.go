package await

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Condition is what is waited for. It keeps nothing, so that one may serve many waits.
// It corresponds to watchtools.ConditionFunc of client-go.
type Condition[T any] struct {
	// Name says it in errors: "condition Ready=True".
	Name string
	// Met tells whether the object meets it. Without exists there is no such object, and object is the last state that was
	// seen, or the zero T if none was. An error ends the wait: the object has failed for good, say. It is called on the
	// goroutine that waits, which blocks until it returns; it must not change the object.
	Met func(object T, exists bool) (bool, error)
	// State says in a few words how far an object is that does not meet it yet: "Ready=False". Nil names its version.
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

// Exists waits for an object to be there.
func Exists[T api.Object]() Condition[T] {
	return Condition[T]{
		Name: "creation",
		Met:  func(_ T, exists bool) (bool, error) { return exists, nil },
	}
}

// Deleted waits for an object to be gone. With a UID that one object is meant, so that another that took its name, be
// it before the wait began, does not count; without, it is the one that is there when the wait begins, if there is any.
// An object that finalizers hold is not gone.
func Deleted[T api.Object](uid types.UID) Condition[T] {
	return Condition[T]{
		Name: "deletion",
		Met: func(object T, exists bool) (bool, error) {
			return !exists || uid != "" && object.GetUID() != uid, nil
		},
		State: lingering[T],
	}
}

// lingering says why an object is still there, as far as its type declares that.
func lingering[T api.Object](object T) string {
	o, ok := any(object).(metav1.Object)
	if !ok || o.GetDeletionTimestamp() == nil {
		return "at version " + object.GetResourceVersion()
	}
	if f := o.GetFinalizers(); len(f) > 0 {
		return "being deleted, held by " + strings.Join(f, ", ")
	}
	return fmt.Sprintf("being deleted, until %s", o.GetDeletionTimestamp().UTC().Format("15:04:05"))
}
