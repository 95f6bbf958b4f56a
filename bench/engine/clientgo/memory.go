package clientgo

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/leatproject/leat/bench/subject"
)

// shared is an informer of a source in memory.
type shared struct {
	informer
	source subject.Source
}

func newShared(s subject.Source) subject.Shared {
	return shared{informer{cache.NewSharedIndexInformer(listed{listWatch(s)}, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})}, s}
}

// listWatch lists pointers to existing objects, so that nothing is copied. Its channel has all updates from the start.
func listWatch(s subject.Source) *cache.ListWatch {
	return &cache.ListWatch{
		DisableChunking: true,
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &internalversion.List{Items: make([]runtime.Object, len(s.Objects))}
			for i, o := range s.Objects {
				list.Items[i] = o
			}
			list.ResourceVersion = s.Objects[len(s.Objects)-1].ResourceVersion
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			w := &updates{events: make(chan watch.Event, 1024), stopped: make(chan struct{})}
			go w.send(s)
			return w, nil
		},
	}
}

// listed is a source without WatchList.
type listed struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported prevents a reflector from waiting for the end of a WatchList.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// updates is a watch of a source.
type updates struct {
	events  chan watch.Event
	stopped chan struct{}
}

// Stop ends the watch. It is called once.
func (u *updates) Stop() { close(u.stopped) }

// ResultChan has the updates.
func (u *updates) ResultChan() <-chan watch.Event { return u.events }

func (u *updates) send(s subject.Source) {
	select {
	case <-s.Go:
	case <-u.stopped:
		return
	}
	for i := range s.Updates {
		select {
		case u.events <- watch.Event{Type: watch.Modified, Object: s.Next(i)}:
		case <-u.stopped:
			return
		}
	}
}

// Index adds an index.
func (s shared) Index(label string) error {
	return s.AddIndexers(cache.Indexers{label: byLabel(label)})
}

// Version returns the version of the object that was updated last, because the cache has no version.
func (s shared) Version() string {
	last := s.source.Next(s.source.Updates - 1)
	object, _, err := s.GetIndexer().GetByKey(last.Namespace + "/" + last.Name)
	if err != nil || object == nil {
		return ""
	}
	return object.(metav1.Object).GetResourceVersion()
}

// queue is the rate-limiting queue of controllers.
type queue struct {
	workqueue.TypedRateLimitingInterface[subject.Key]
}

func newQueue() subject.Keys {
	return queue{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[subject.Key]())}
}

// AddPriority adds a key and ignores the priority.
func (q queue) AddPriority(key subject.Key, _ int) { q.Add(key) }

// AddAfter adds a key that is due later.
func (q queue) AddAfter(key subject.Key, seconds int) {
	q.TypedRateLimitingInterface.AddAfter(key, time.Duration(seconds)*time.Second)
}

// Get waits for a key.
func (q queue) Get() (subject.Key, bool) {
	key, shutdown := q.TypedRateLimitingInterface.Get()
	return key, !shutdown
}

// objects is an indexer.
type objects struct {
	indexer cache.Indexer
	indexed string
}

func newCache(indexed string) subject.Cache {
	indexers := cache.Indexers{}
	if indexed != "" {
		indexers[indexed] = byLabel(indexed)
	}
	return objects{cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), indexed}
}

// byLabel is an index with one value for each object.
func byLabel(label string) cache.IndexFunc {
	return func(o any) ([]string, error) { return []string{o.(metav1.Object).GetLabels()[label]}, nil }
}

// Set stores one object.
func (c objects) Set(o *metav1.PartialObjectMetadata) {
	if err := c.indexer.Update(o); err != nil {
		panic("clientgo: " + err.Error()) // every object has a key
	}
}

// List copies the cache.
func (c objects) List() int { return len(c.indexer.List()) }

// Find copies the objects of one value of the index.
func (c objects) Find(value string) int {
	found, err := c.indexer.ByIndex(c.indexed, value)
	if err != nil {
		panic("clientgo: " + err.Error()) // the index exists
	}
	return len(found)
}
