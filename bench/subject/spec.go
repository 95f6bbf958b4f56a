package subject

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Form is the type of the objects in the cache.
type Form string

// The forms: a whole corev1.Pod, the same as bytes or as compressed bytes, a corev1.Pod with a mask of the eight fields
// of Pod, the same as bytes, Pod itself, metadata only, and a map. In the work Resources, Packed is the bytes of a map.
const (
	Full         Form = "full"
	Packed       Form = "packed"
	Compressed   Form = "compressed"
	Masked       Form = "masked"
	MaskedPacked Form = "masked packed"
	Struct       Form = "struct"
	Metadata     Form = "metadata"
	Unstructured Form = "unstructured"
)

// Wire is the encoding of the answers. The zero value leaves the choice to the library.
type Wire string

// The encodings.
const (
	JSON     Wire = "json"
	Protobuf Wire = "protobuf"
)

// Work is what a subject does and measures.
type Work string

// The works with a server. Sync fills a cache. Events, Relist, Latency and Reconcile measure what follows.
const (
	Sync    Work = "sync"
	Events  Work = "events"
	Relist  Work = "relist"
	Latency Work = "latency"
	// Reconcile is Latency for a controller with one worker: the time until a reconcile begins.
	Reconcile Work = "reconcile"
	// Resources is Sync for many custom resources with an informer each.
	Resources Work = "resources"
	// Warm is Sync twice: from the server, and from a file that an earlier process has left.
	Warm Work = "warm"
	// Shard is Sync, and then Events. The collection may be cut; the bytes that the client receives are counted.
	Shard Work = "shard"
)

// The works without a server.
const (
	Fanout          Work = "fanout"           // updates from memory, to Handlers that count
	Hindered        Work = "hindered"         // the same, beside one handler that is slow or stuck
	Backlog         Work = "backlog"          // the same, to Handlers that are stuck
	Stuck           Work = "stuck"            // one handler that is stuck; only its backlog holds old states
	Overhead        Work = "overhead"         // the memory of a cache with one index, without the objects
	Queue           Work = "queue"            // Add, Get, Done, by one goroutine
	QueueContended  Work = "queue-contended"  // by four producers and four consumers
	QueuePriorities Work = "queue-priorities" // the same, with three priorities
	QueueDelayed    Work = "queue-delayed"    // AddAfter beside a million delayed keys
	QueueLimited    Work = "queue-limited"    // AddRateLimited and Forget
	Readers         Work = "readers"          // one writer, and ten readers that list
	Finders         Work = "finders"          // one writer, and ten readers that query an index
)

// Spec describes one work. The zero value of each field is the library's default.
type Spec struct {
	Work      Work
	URL       string // of the server
	CA        []byte // of its authority, in PEM
	Token     string
	Form      Form
	Wire      Wire
	Listed    bool // a list instead of a WatchList
	Strip     bool // a transform drops managedFields after decoding, and the informer has no default index
	Keep      bool // managedFields are kept even if the library drops them by default
	Unshared  bool // objects share no parts even if the library shares by default
	Coalesce  bool
	Fresh     bool // each event changes every text of a pod
	Both      bool // the handler takes the old and the new object, and not only what packed objects have in their keys
	Objects   int  // of each custom resource, if there are several
	Resources int
	// Namespaces makes Resources measure one resource in this number of namespaces instead: with an informer each, or
	// with one informer that has a scope for each.
	Namespaces int
	// Shards makes Shard hold only the first of this number of equal shards of the hashes of UIDs (KEP-5866). Held is
	// the number of its objects, and the last event is of one of them.
	Shards   int
	Held     int
	Events   int
	Handlers int
	Pause    time.Duration // time of the slow handler for each update; 0 means that it never returns
	Lasts    time.Duration // duration of each phase of a writer beside readers
	Profile  string        // a file for the processor profile of the measurement
	Heap     string        // a file for the profile of the live heap
	Tap      bool          // the answers are recorded to a file
}

// End returns the hash that follows the last one of the shard, or 0 if the shard is the whole collection.
func (s Spec) End() uint64 {
	if s.Shards < 2 {
		return 0
	}
	return math.MaxUint64/uint64(s.Shards) + 1
}

// ErrUnsupported is the error of a library that cannot do a work.
var ErrUnsupported = errors.New("subject: this library cannot do that")

// Hooks are the functions of a handler, called one at a time. Both are set.
type Hooks struct {
	Added   func()
	Updated func(old, new Versioned)
}

// PerObject returns hooks for reconciles, which do not know whether an object is new: Updated calls Added for as many
// objects as there are at first.
func (h Hooks) PerObject(objects int) Hooks {
	seen := 0
	return Hooks{Added: h.Added, Updated: func(old, new Versioned) {
		if seen++; seen <= objects {
			h.Added()
		} else {
			h.Updated(old, new)
		}
	}}
}

// Versioned is the part of an object that handlers of the bench read.
type Versioned interface{ GetResourceVersion() string }

// Informer is a library's informer of pods with one handler.
type Informer interface {
	// Run receives until ctx ends.
	Run(ctx context.Context) error
	// Len is the number of objects in the cache.
	Len() int
}

// Source is a collection in memory: first the list, then the updates in order.
type Source struct {
	Objects []*metav1.PartialObjectMetadata
	// Next returns the i-th update. The list has an older state of the object.
	Next func(i int) *metav1.PartialObjectMetadata
	// Updates is the number of updates. They begin when Go is closed.
	Updates int
	Go      <-chan struct{}
}

// Shared is an informer that reads a Source and has many handlers.
type Shared interface {
	Informer
	// Handle adds a handler before Run. With coalesce, it may miss states if the library supports that.
	Handle(h Hooks, coalesce bool) error
	// Index adds an index by a label, before Run.
	Index(label string) error
	// Version returns the version of the last change in the cache.
	Version() string
}

// Many is the informers of many resources.
type Many interface {
	Run(ctx context.Context) error
	// Synced waits until every informer has its objects, or until ctx ends.
	Synced(ctx context.Context) error
	// Len is the number of objects in all caches.
	Len() int
}

// Keys is a workqueue of object keys.
type Keys interface {
	Add(key Key)
	AddPriority(key Key, priority int)
	AddAfter(key Key, seconds int)
	AddRateLimited(key Key)
	Forget(key Key)
	// Get waits for a key. It returns false after ShutDown when the queue is empty.
	Get() (Key, bool)
	Done(key Key)
	ShutDown()
}

// Cache is a store with one writer and several readers.
type Cache interface {
	Set(object *metav1.PartialObjectMetadata)
	// List copies the whole cache and returns the number of objects.
	List() int
	// Find copies the objects of one value of the index, and returns their number.
	Find(value string) int
}

// Library is a measured library. A nil function means that the library has no such feature.
type Library struct {
	Informer func(s Spec, h Hooks) (Informer, error)
	// Controller calls the hooks when a reconcile begins: Added for the first of each object, and then Updated.
	Controller func(s Spec, h Hooks) (Informer, error)
	// Many returns an informer of each custom resource of the spec.
	Many func(s Spec) (Many, error)
	// Scoped returns what reads one custom resource in each namespace of the spec.
	Scoped func(s Spec) (Many, error)
	// Kept returns an informer that keeps its collection in a file, or does not if the name is empty. It counts the
	// bytes that it receives from the server. It supports the shards of the spec.
	Kept   func(s Spec, h Hooks, file string, received *atomic.Int64) (Informer, error)
	Shared func(s Source) Shared
	Queue  func() Keys
	Cache  func(indexed string) Cache // by a label; empty has no index
}
