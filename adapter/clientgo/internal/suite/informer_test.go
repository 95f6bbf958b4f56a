package suite

import "testing"

const noClock = "it sets the fake clock inside client-go's type"

func TestSharedInformer(t *testing.T) {
	tests{
		name: "informertests", from: "tools/cache",
		files:   []string{"shared_informer_test.go", "util_test.go", "main_test.go"},
		imports: map[string]string{".": "k8s.io/client-go/tools/cache"},
		rename:  map[string]string{"NewSharedInformer": "newSharedInformer"},
		drop: map[string]string{
			"eventHandlerCount": "in support", "isStarted": "in support", "isRegistered": "in support",
			"TestListenerResyncPeriods": noClock, "TestListenerResyncPeriodsDelayed": noClock, "testListenerResyncPeriods": noClock,
			"TestResyncCheckPeriod": noClock, "TestSharedInformerWatchDisruption": noClock,
		},
		support: informerSupport,
		fail: map[string]string{
			"TestEventPanics": "it expects a pause of a second after each panic; leat continues at once, so that no object waits",
		},
	}.run(t)
}

// informerSupport has what the tests take from the inside of client-go's informer.
const informerSupport = `package suite_test

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	. "k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/informer"
)

type sharedIndexInformer struct {
	SharedIndexInformer
	mu      sync.Mutex
	started bool
	handles map[ResourceEventHandlerRegistration]bool
}

func newSharedInformer(lw ListerWatcher, example runtime.Object, resync time.Duration) SharedInformer {
	return &sharedIndexInformer{
		SharedIndexInformer: clientgo.NewSharedIndexInformer(lw, example, resync, nil),
		handles:             map[ResourceEventHandlerRegistration]bool{},
	}
}

func (s *sharedIndexInformer) Run(stop <-chan struct{}) {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.SharedIndexInformer.Run(stop)
}

func isStarted(i SharedInformer) bool {
	s := i.(*sharedIndexInformer)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

func eventHandlerCount(i SharedInformer) int {
	return len(i.(*sharedIndexInformer).SharedIndexInformer.(interface{ Status() informer.Status }).Status().Handlers)
}

func (s *sharedIndexInformer) AddEventHandler(h ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, HandlerOptions{})
}

func (s *sharedIndexInformer) AddEventHandlerWithOptions(h ResourceEventHandler, o HandlerOptions) (ResourceEventHandlerRegistration, error) {
	r, err := s.SharedIndexInformer.AddEventHandlerWithOptions(h, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.handles[r] = true
	}
	return r, err
}

func (s *sharedIndexInformer) RemoveEventHandler(h ResourceEventHandlerRegistration) error {
	before := eventHandlerCount(s)
	err := s.SharedIndexInformer.RemoveEventHandler(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if eventHandlerCount(s) < before {
		delete(s.handles, h)
	}
	return err
}

func isRegistered(i SharedInformer, h ResourceEventHandlerRegistration) bool {
	s := i.(*sharedIndexInformer)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handles[h]
}
`
