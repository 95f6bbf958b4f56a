// Package leat drives leat in the bench.
package leat

import (
	"context"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/scale/packed/zstd"
	"github.com/leatproject/leat/workqueue"
)

var pods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

// Library is leat with its defaults.
func Library() subject.Library {
	return subject.Library{Informer: newInformer, Controller: newController, Many: newMany, Scoped: newScoped, Kept: newKept, Shared: newShared, Queue: newQueue, Cache: newCache}
}

func newInformer(s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	config := configOf(s)
	if !s.Tap {
		return informerOf(config, s, h)
	}
	t, err := newTapped()
	if err != nil {
		return nil, err
	}
	config.WrapTransport = t.recorder.Wrap
	t.Informer, err = informerOf(config, s, h)
	return t, err
}

func informerOf(config apiclient.Config, s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	client, err := apiclient.New(config)
	if err != nil {
		return nil, err
	}
	switch s.Form {
	case subject.Full:
		return withHooks(apiclient.NewTyped[*corev1.Pod](client, pods, ""), s, h)
	case subject.Packed:
		return held(apiclient.NewTyped[*corev1.Pod](client, pods, ""), packed.Bytes[*corev1.Pod](), s, h)
	case subject.Compressed:
		return held(apiclient.NewTyped[*corev1.Pod](client, pods, ""), packed.Coded[*corev1.Pod](zstd.Train), s, h)
	case subject.Masked, subject.MaskedPacked:
		mask, err := codec.NewMask[*corev1.Pod]("metadata.labels", "spec.nodeName", "status[phase,podIP]")
		if err != nil {
			return nil, err
		}
		lw := apiclient.NewMasked[*corev1.Pod](client, pods, "", mask)
		if s.Form == subject.Masked {
			return withHooks(lw, s, h)
		}
		return held(lw, packed.Bytes[*corev1.Pod](), s, h)
	case subject.Struct:
		return withHooks(apiclient.NewPartial[*subject.Pod](client, pods, ""), s, h)
	case subject.Metadata:
		return withHooks(apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, ""), s, h)
	case subject.Unstructured:
		return withHooks(apiclient.NewTyped[*unstructured.Unstructured](client, pods, ""), s, h)
	default:
		return nil, subject.ErrUnsupported
	}
}

func configOf(s subject.Spec) apiclient.Config {
	c := apiclient.Config{Host: s.URL, BearerToken: apiclient.NewSecret(s.Token), DisableProtobuf: s.Wire == subject.JSON}
	c.TLS.CAData = s.CA
	return c
}

// withHooks returns an informer with one handler.
func withHooks[T api.Object](lw api.ListerWatcher[T], s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	return held(lw, nil, s, h)
}

// held is withHooks for objects that are held in another way than decoded. The handler then needs only the versions,
// unless the spec has Both.
func held[T api.Object](lw api.ListerWatcher[T], hold informer.Holding[T], s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	i := inform[T]{keyed: hold != nil && !s.Both, Informer: informer.New(lw, informer.Options[T]{
		Tuning: reflector.Tuning{NoWatchList: s.Listed}, Memory: reflector.Memory{KeepManagedFields: s.Keep, NoSharedParts: s.Unshared}, Hold: hold,
	})}
	return i, i.Handle(h, s.Coalesce)
}

// inform is an informer with the methods that the bench needs.
type inform[T api.Object] struct {
	*informer.Informer[T]
	keyed bool // the handler needs only the identity of the objects
}

// Len is the number of objects in the cache.
func (i inform[T]) Len() int { return i.Cache().Len() }

// Version returns the version of the cache.
func (i inform[T]) Version() string { return i.ResourceVersion() }

// Handle adds a handler.
func (i inform[T]) Handle(h subject.Hooks, coalesce bool) error {
	_, err := i.AddEventHandler(informer.HandlerFuncs[T]{
		AddFunc:    func(T, bool) { h.Added() },
		UpdateFunc: func(old, new T) { h.Updated(old, new) },
	}, informer.HandlerOptions{Coalesce: coalesce, IdentityOnly: i.keyed})
	return err
}

// controlled is an informer with a controller that has one worker.
type controlled struct {
	inform[*corev1.Pod]
	*controller.Controller[api.Key]
}

func newController(s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	client, err := apiclient.New(configOf(s))
	if err != nil {
		return nil, err
	}
	i := inform[*corev1.Pod]{Informer: informer.New(apiclient.NewTyped[*corev1.Pod](client, pods, ""), informer.Options[*corev1.Pod]{})}
	h = h.PerObject(s.Objects)
	reconcile := func(_ context.Context, key api.Key) (controller.Result, error) {
		pod, _ := i.Cache().Get(key)
		h.Updated(nil, pod)
		return controller.Result{}, nil
	}
	c := controller.New("bench", controller.Func[api.Key](reconcile), controller.Options{Workers: 1})
	c.Watch(controller.For[*corev1.Pod](i.Informer))
	return controlled{i, c}, nil
}

// Run runs the informer and the controller.
func (c controlled) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return c.Informer.Run(ctx) })
	g.Go(func() error { return c.Controller.Run(ctx) })
	return g.Wait()
}

// shared is an informer of a source in memory.
type shared struct {
	inform[*metav1.PartialObjectMetadata]
}

func newShared(s subject.Source) subject.Shared {
	return shared{inform[*metav1.PartialObjectMetadata]{
		Informer: informer.New(source(s), informer.Options[*metav1.PartialObjectMetadata]{Tuning: reflector.Tuning{NoWatchList: true}}),
	}}
}

// Index adds an index.
func (s shared) Index(label string) error {
	informer.AddIndex(s.Informer, func(o *metav1.PartialObjectMetadata) []string { return []string{o.Labels[label]} })
	return nil
}

// source lists and watches objects in memory.
type source subject.Source

// Resource returns the resource of pods.
func (s source) Collection() api.Collection { return api.Collection{Resource: pods} }

// List returns all objects.
func (s source) List(
	_ context.Context, _ api.Options[*metav1.PartialObjectMetadata], each func(*metav1.PartialObjectMetadata) error,
) (metav1.ListMeta, error) {
	for _, o := range s.Objects {
		if err := each(o); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: s.Objects[len(s.Objects)-1].ResourceVersion}, nil
}

// Watch sends the updates and then waits for the end of the context.
func (s source) Watch(
	ctx context.Context, _ api.Options[*metav1.PartialObjectMetadata],
) iter.Seq2[api.Event[*metav1.PartialObjectMetadata], error] {
	return func(yield func(api.Event[*metav1.PartialObjectMetadata], error) bool) {
		select {
		case <-s.Go:
		case <-ctx.Done():
		}
		for i := range s.Updates {
			o := s.Next(i)
			if ctx.Err() != nil || !yield(api.Event[*metav1.PartialObjectMetadata]{
				Type: watch.Modified, Object: o, ResourceVersion: o.ResourceVersion,
			}, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}

// queue is a workqueue whose adds have a cause.
type queue struct {
	*workqueue.Queue[subject.Key]
}

var cause = workqueue.Cause{Source: "pods", Event: "update", Object: "default/web-0", Version: "1000000", At: time.Unix(1, 0)}

func newQueue() subject.Keys {
	return queue{workqueue.New[subject.Key](workqueue.Options{})}
}

// Add adds a key with its cause.
func (q queue) Add(key subject.Key) { q.AddWith(key, workqueue.Item{Cause: cause}) }

// AddPriority adds a key with its cause and a priority.
func (q queue) AddPriority(key subject.Key, priority int) {
	q.AddWith(key, workqueue.Item{Cause: cause, Priority: priority})
}

// AddAfter adds a key with its cause, which is due later.
func (q queue) AddAfter(key subject.Key, seconds int) {
	q.AddWith(key, workqueue.Item{Cause: cause, After: time.Duration(seconds) * time.Second})
}

// AddRateLimited adds a key that has failed, with its cause.
func (q queue) AddRateLimited(key subject.Key) {
	q.AddWith(key, workqueue.Item{Cause: cause, RateLimited: true})
}

// Get waits for a key.
func (q queue) Get() (subject.Key, bool) {
	w, err := q.Queue.Get(context.Background())
	return w.Key, err == nil
}

// objects is an indexer that publishes each write.
type objects struct {
	indexer *cache.Indexer[*metav1.PartialObjectMetadata]
	index   *cache.Index[*metav1.PartialObjectMetadata, string]
}

func newCache(indexed string) subject.Cache {
	c := objects{indexer: cache.New[*metav1.PartialObjectMetadata]()}
	if indexed != "" {
		c.index = cache.AddIndex(c.indexer, func(o *metav1.PartialObjectMetadata) []string { return []string{o.Labels[indexed]} })
	}
	return c
}

// Set publishes one object.
func (c objects) Set(o *metav1.PartialObjectMetadata) {
	t := c.indexer.Begin()
	t.Set(o)
	t.Commit(o.ResourceVersion)
}

// List copies the cache.
func (c objects) List() int { return len(c.indexer.List()) }

// Find copies the objects of one value of the index.
func (c objects) Find(value string) int { return len(c.index.ByIndex(value)) }
