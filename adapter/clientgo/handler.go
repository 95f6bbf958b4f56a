package clientgo

import (
	"fmt"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// registration is a handler of one informer.
type registration struct {
	informer.Registration
	owner any // the informer
	name  string
}

// HasSynced reports whether the handler has processed its initial list.
func (r *registration) HasSynced() bool { return isClosed(r.Synced()) }

// HasSyncedChecker returns a checker that is done when the handler has processed its initial list.
func (r *registration) HasSyncedChecker() cache.DoneChecker { return checker{r.name, r.Synced()} }

// ShutdownChan returns a channel that is closed when the handler was removed and no call of it is in flight.
// cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} { return r.Done() }

var _ cache.ResourceEventHandlerRegistration = &registration{}

// AddEventHandler adds a handler with the resync period of the informer.
func (s *sharedInformer[T]) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period; 0 means no resyncs.
func (s *sharedInformer[T]) AddEventHandlerWithResyncPeriod(
	h cache.ResourceEventHandler, period time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler. A handler that joins late first gets the cached objects. The logger of the
// options gets the handler's panics.
func (s *sharedInformer[T]) AddEventHandlerWithOptions(
	h cache.ResourceEventHandler, o cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	period := s.o.ResyncPeriod
	if o.ResyncPeriod != nil {
		period = *o.ResyncPeriod
	}
	log := klog.Background()
	if o.Logger != nil {
		log = *o.Logger
	}
	name := fmt.Sprintf("%T", h)
	s.handOut()
	r, err := s.informer().Subscribe(func(c api.Change[T]) {
		// As in client-go: the panic is logged and ends the process, unless utilruntime.ReallyCrash is false.
		defer utilruntime.HandleCrashWithLogger(log)
		notify(h, c)
	}, informer.HandlerOptions{Name: name, ResyncPeriod: s.resyncOf(period)})
	if err != nil {
		return nil, fmt.Errorf("clientgo: handler %s was not added to shared informer because it has stopped already", name)
	}
	return &registration{Registration: r, owner: s, name: "SharedIndexInformer " + s.name() + " + handler " + name}, nil
}

// notify calls the method of h for a change.
func notify[T Object](h cache.ResourceEventHandler, c api.Change[T]) {
	switch {
	case c.Type == api.Added:
		h.OnAdd(c.Object, c.InitialList)
	case c.Type == api.Updated:
		h.OnUpdate(c.Old, c.Object)
	case c.FinalStateUnknown:
		h.OnDelete(cache.DeletedFinalStateUnknown{Key: api.FormatKey(api.KeyOf(c.Object)), Obj: c.Object})
	default:
		h.OnDelete(c.Object)
	}
}

// RemoveEventHandler removes a handler. Removing it again, or the handler of another informer, has no effect.
func (s *sharedInformer[T]) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	if r, ok := handle.(*registration); ok && r.owner == any(s) {
		r.Remove()
	}
	return nil
}
