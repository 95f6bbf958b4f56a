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

// InitialEventsEndAnnotation marks the bookmark that ends the initial events of a WatchList (KEP-3157), with the value
// "true".
const InitialEventsEndAnnotation = metav1.InitialEventsAnnotationKey

// Event is one frame of a watch: watch.Added, Modified, Deleted or Bookmark. It differs from watch.Event in three ways.
// It is typed. Its resource version is beside the object, and a bookmark has no object at all. An ERROR frame is not an
// event but the error that ends the watch.
type Event[T any] struct {
	Type            watch.EventType
	Object          T // zero in a bookmark; the last state in a delete
	ResourceVersion string
	// InitialEventsEnd is set on the one bookmark that ends the initial events of a WatchList.
	InitialEventsEnd bool
}

// Options are the parameters of a list or a watch, and of its decoder.
type Options[T any] struct {
	metav1.ListOptions

	// DropManagedFields means that the caller does not need metadata.managedFields. A decoder skips them, and a client
	// may ask the server to omit them.
	DropManagedFields bool

	// ShareParts means that nobody changes the objects. A decoder may then let objects share slices, maps and pointers
	// whose encoded content is equal, such as the spec of two states of an object, or the containers of replicas.
	ShareParts bool

	// Known returns the object that the caller already holds. If its UID and version are equal (see SameVersion), a
	// decoder may skip the rest of the item and return this object. Known runs on the goroutine of List or Watch; the
	// slices are valid only during the call. If it is nil, every object is decoded.
	Known func(namespace, name []byte) (T, bool)

	// Keep reports whether the caller wants an object with this namespace and UID. A decoder skips all others and does
	// not decode them. A source may ignore Keep, so the caller also checks the objects that it gets. Keep runs on the
	// goroutine of List or Watch; the slices are valid only during the call. If it is nil, the caller wants every
	// object.
	Keep func(namespace, uid []byte) bool

	// OnUndecodable is called with an object that cannot be decoded into T, between the objects before and after it. If
	// it returns nil, the list or watch continues with the next object; otherwise it ends with the error. If
	// OnUndecodable is nil, the UndecodableError ends it.
	OnUndecodable func(*UndecodableError) error

	// OnOpen is called by Watch once, before the first event, when the server has accepted the watch: the head of a
	// successful answer has arrived. Otherwise a caller could not tell that a silent watch is open. An error that the
	// server finds later, such as a 410, is still the error that ends the watch. List never calls OnOpen, and neither
	// does a ListerWatcher that does not see the head. OnOpen may be nil.
	OnOpen func()

	// OnWait is called by Watch each time before it waits for more of the stream, on the goroutine of the loop. The
	// caller can then finish what it has put off. A ListerWatcher must call it before every wait, or never: after the
	// first call, the caller relies on the next. One that reads another ListerWatcher on a goroutine of its own must
	// not pass it on. List never calls OnWait. OnWait may be nil.
	OnWait func()
}

// ErrOverdue matches the error of a watch that its client ended because the server broke a promise: to end the watch in
// time, or to send bookmarks regularly. The version that the watch reached is still valid, and the next watch can
// continue from it.
var ErrOverdue = errors.New("api: the watch lasted longer than the server had promised")

// ErrNoWatchList matches the error of a WatchList if its source does not support WatchLists (KEP-3157). A ListerWatcher
// returns it, wrapped or not, before the first event. A reflector then lists in pages at once, without counting a
// failure. It tries a WatchList again at a relist ten minutes later or more. Any other error of a WatchList is a
// failure, and the reflector tries two more times.
var ErrNoWatchList = errors.New("api: the source does not support WatchLists")

// ListerWatcher is a collection that can be listed, and then watched from the end of the list. It corresponds to
// cache.ListerWatcher of client-go, but streams the objects instead of holding a whole list.
type ListerWatcher[T any] interface {
	// Collection says which objects the ListerWatcher has. It always returns the same value.
	Collection() Collection

	// List sends exactly one request and passes each item to each as it arrives, on the calling goroutine. An error of
	// each ends the list with that error. The returned metadata contains the resource version of the list, the token of
	// the next page and the number of remaining items. An error that the server returned is a StatusError of
	// apimachinery.
	//
	// While a Watch runs, List may be called on another goroutine, with a Limit of 1: so a reflector asks for the
	// version of the server. Otherwise, one goroutine calls List and Watch.
	List(ctx context.Context, o Options[T], each func(T) error) (metav1.ListMeta, error)

	// Watch opens a stream at the first iteration and closes it when the loop ends. It blocks between events. An error
	// is always the last element. If the server ends the stream normally, the iteration just stops. A source without
	// support for SendInitialEvents answers it with ErrNoWatchList.
	Watch(ctx context.Context, o Options[T]) iter.Seq2[Event[T], error]
}

// UndecodableError is an object that cannot be decoded into T but whose metadata can be read. If even the name cannot
// be read, the answer itself is broken and ends with another error. A reflector reports an object that was decoded but
// cannot belong to the collection in the same way: see reflector.ErrMalformed. The key of such an object may be empty.
type UndecodableError struct {
	Resource        Resource
	Key             Key
	UID             types.UID
	ResourceVersion string
	Type            watch.EventType // of the event; empty in a list
	Err             error
}

// Error returns one line with the object and the reason.
func (e *UndecodableError) Error() string {
	name := FormatKey(e.Key)
	if e.Key.Name == "" {
		name = "object without a name"
	}
	return fmt.Sprintf("decode %s %s: %v", e.Resource, name, e.Err)
}

// Unwrap returns the decoder's error.
func (e *UndecodableError) Unwrap() error { return e.Err }
