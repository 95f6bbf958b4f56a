package api

import (
	"context"
	"errors"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// InitialEventsEndAnnotation marks, with the value "true", the bookmark that ends a streaming list (KEP-3157).
const InitialEventsEndAnnotation = metav1.InitialEventsAnnotationKey

// Event is one frame of a watch: watch.Added, Modified, Deleted or Bookmark.
// It differs from watch.Event in that it is typed, that its version stands beside the object (a bookmark has no
// object at all), and that an ERROR frame is not an event but the error that ends the watch.
type Event[T any] struct {
	Type            watch.EventType
	Object          T // zero in a bookmark; the last state in a deletion
	ResourceVersion string
	// InitialEventsEnd is set on the one bookmark that ends the initial list of a watch with SendInitialEvents.
	InitialEventsEnd bool
}

// Options is what a list or a watch is asked for, and what its decoder may use.
type Options[T any] struct {
	metav1.ListOptions

	// DropManagedFields says that nobody will read metadata.managedFields: a decoder skips them, and a client may ask
	// the server to leave them out.
	DropManagedFields bool

	// Known answers with the object that the caller holds already. A decoder that finds its UID and version equal (see
	// SameVersion) may skip the rest of the item and hand out that very object. It is called on the goroutine of List
	// or Watch; the slices are valid during the call only. Nil knows nothing.
	Known func(namespace, name []byte) (T, bool)

	// OnUndecodable is called, between the objects before and after it, with an object that cannot be decoded into T.
	// The call goes on with the next one if it returns nil, and otherwise ends with its error. When OnUndecodable is
	// nil the UndecodableError itself ends the call.
	OnUndecodable func(*UndecodableError) error
}

// ErrOverdue is matched by the error of a watch that its client ended because the server no longer did what it had
// promised: to end the watch in time, or to send bookmarks now and then. It says nothing against the version reached, from
// which the next watch can go on.
var ErrOverdue = errors.New("api: the watch outlived what its server had promised")

// ListerWatcher is a collection that can be listed and then watched from where the list ended.
// It corresponds to cache.ListerWatcher of client-go, with objects that stream instead of a list that is held whole.
type ListerWatcher[T any] interface {
	// Resource says what is listed.
	Resource() Resource

	// List makes exactly one request and hands its items, as they arrive, to each, on the calling goroutine. An error of
	// each ends the list with that error. The returned metadata has the version that the list is of, the token of the
	// next page and the number of items that remain. Errors that the server answered are apimachinery's StatusErrors.
	List(ctx context.Context, o Options[T], each func(T) error) (metav1.ListMeta, error)

	// Watch opens a stream with the first iteration and closes it when the loop ends; it blocks between events. An error
	// is always the last thing it yields; a stream that the server ended in good order just stops.
	Watch(ctx context.Context, o Options[T]) iter.Seq2[Event[T], error]
}

// UndecodableError is one object that a server sent and that is not a T, whose metadata could be read all the same.
// (Where not even a name can be read the answer itself is broken, and the error that ends it is another.)
type UndecodableError struct {
	Resource        Resource
	Key             Key
	UID             types.UID
	ResourceVersion string
	Type            watch.EventType // of the event; empty in a list
	Err             error
}

// Error names the object and what is wrong with it.
func (e *UndecodableError) Error() string {
	return fmt.Sprintf("decode %s %s: %v", e.Resource, FormatKey(e.Key), e.Err)
}

// Unwrap returns what the decoder said.
func (e *UndecodableError) Unwrap() error { return e.Err }
