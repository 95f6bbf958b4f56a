package subject

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Form says what the objects of the cache are.
type Form string

// The forms: a whole corev1.Pod, the eight fields of Pod, nothing but metadata, and a map.
const (
	Full         Form = "full"
	Struct       Form = "struct"
	Metadata     Form = "metadata"
	Unstructured Form = "unstructured"
)

// Wire says what the answers are written in. The zero value leaves it to the library.
type Wire string

// The encodings.
const (
	JSON     Wire = "json"
	Protobuf Wire = "protobuf"
)

// Work says what is done and measured.
type Work string

// The works with a server. Sync fills a cache. Events, Relist and Latency measure what comes after that.
const (
	Sync    Work = "sync"
	Events  Work = "events"
	Relist  Work = "relist"
	Latency Work = "latency"
)

// The works without a server.
const (
	Fanout          Work = "fanout"           // updates from memory, to Handlers that count
	Hindered        Work = "hindered"         // the same, beside one handler that is slow or stuck
	Backlog         Work = "backlog"          // the same, to Handlers that are stuck
	Stuck           Work = "stuck"            // one handler that is stuck, and updates that are not kept by anybody else
	Overhead        Work = "overhead"         // what a cache with one index keeps beside the objects
	Queue           Work = "queue"            // Add, Get, Done, by one goroutine
	QueueContended  Work = "queue-contended"  // by four producers and four consumers
	QueuePriorities Work = "queue-priorities" // the same, with three priorities
	QueueDelayed    Work = "queue-delayed"    // AddAfter beside a million that wait
	QueueLimited    Work = "queue-limited"    // AddRateLimited and Forget
	Readers         Work = "readers"          // one writer, and ten readers that list
	Finders         Work = "finders"          // one writer, and ten readers that ask an index
)

// Spec is one work. The zero value of each field is the library's default.
type Spec struct {
	Work     Work
	URL      string // of the server
	CA       []byte // of its authority, in PEM
	Token    string
	Form     Form
	Wire     Wire
	Listed   bool // a list instead of a streaming one
	Strip    bool // a transform drops managedFields after decoding, and there is no index that nobody has asked for
	Keep     bool // managedFields are kept where the library would drop them by itself
	Coalesce bool
	Objects  int
	Events   int
	Handlers int
	Pause    time.Duration // that the slow handler takes for each update; 0 is for ever
	Lasts    time.Duration // each phase of a writer beside readers
	Profile  string        // a file for the processor profile of what is measured
	Heap     string        // a file for the profile of the live heap
}

// ErrUnsupported is returned by a library that cannot do what it is asked for.
var ErrUnsupported = errors.New("subject: this library cannot do that")

// Hooks are called by a handler of an informer, one call at a time. Both are set.
type Hooks struct {
	Added   func()
	Updated func(old, new Versioned)
}

// Versioned is what a handler of the bench asks of an object.
type Versioned interface{ GetResourceVersion() string }

// Informer is a library's informer of pods with one handler.
type Informer interface {
	// Run receives until ctx ends.
	Run(ctx context.Context) error
	// Len is the number of objects in the cache.
	Len() int
}

// Source is a collection in memory. First comes the list, then the updates, one after the other.
type Source struct {
	Objects []*metav1.PartialObjectMetadata
	// Next makes the i-th update, of an object of which the list has an older state.
	Next func(i int) *metav1.PartialObjectMetadata
	// Updates is how many there are, and Go is closed when they may begin.
	Updates int
	Go      <-chan struct{}
}

// Shared is an informer that reads a Source and has many handlers.
type Shared interface {
	Informer
	// Handle adds a handler, before Run. coalesce lets it miss states if the library can do so.
	Handle(h Hooks, coalesce bool) error
	// Index adds an index by a label, before Run.
	Index(label string) error
	// Version is that of the last change in the cache.
	Version() string
}

// Keys is a workqueue; its keys are those of objects.
type Keys interface {
	Add(key Key)
	AddPriority(key Key, priority int)
	AddAfter(key Key, seconds int)
	AddRateLimited(key Key)
	Forget(key Key)
	// Get waits for a key. It returns false after ShutDown when nothing is left.
	Get() (Key, bool)
	Done(key Key)
	ShutDown()
}

// Cache is a store that one goroutine writes and others read.
type Cache interface {
	Set(object *metav1.PartialObjectMetadata)
	// List copies the whole cache and returns how many objects there were.
	List() int
	// Find copies the objects that have a value in the index, and returns how many there were.
	Find(value string) int
}

// Library is what is measured. A function that is nil says that the library has no such thing.
type Library struct {
	Informer func(s Spec, h Hooks) (Informer, error)
	Shared   func(s Source) Shared
	Queue    func() Keys
	Cache    func(indexed string) Cache // by a label; empty has no index
}
