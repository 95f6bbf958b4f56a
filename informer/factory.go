package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// FactoryOptions of a Factory.
type FactoryOptions struct {
	// Logger is given to informers whose Options have none.
	Logger *zap.Logger
}

// Factory lets any number of users share informers: those who ask for the same collection get the same one, and when
// the last of them releases it, it stops and is freed.
// It corresponds to SharedInformerFactory of client-go, which shares by Go type alone and can stop nothing.
type Factory struct {
	log    *zap.Logger
	synced chan struct{} // closed once those who were there in time are

	mu     sync.Mutex // guards the fields below
	shared map[shareKey]*sharedInformer
	launch func(*sharedInformer) // set while Run lets informers join
	life   lifecycle
	failed []error
	active sync.WaitGroup
}

// shareKey is what has to be equal for an informer to be shared.
type shareKey struct {
	source        any // what the ListerWatcher lists, and from where
	object        reflect.Type
	labelSelector string
	fieldSelector string
	managedFields bool
}

// sharedInformer is one informer and its users.
type sharedInformer struct {
	informer progress // *Informer[T]
	options  any      // Options[T], as the first user gave them
	run      func(context.Context) error
	users    int
	cancel   context.CancelFunc // nil unless it was started
	done     chan struct{}      // closed when it has ended
	leaving  []chan struct{}    // of shares that were released while the factory was ending; closed when it has ended
}

// NewFactory returns a factory without informers.
func NewFactory(o FactoryOptions) *Factory {
	return &Factory{log: o.Logger, synced: make(chan struct{}), shared: map[shareKey]*sharedInformer{}}
}

// Run runs the informers that are shared, and those that will be, until ctx ends and they have ended. It returns the
// errors of those that ended by themselves. A factory runs once.
func (f *Factory) Run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	f.awaitInformers(ctx)
	<-ctx.Done()
	f.mu.Lock()
	f.life, f.launch = ending, nil
	f.mu.Unlock()
	f.active.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.life = ended
	return errors.Join(f.failed...)
}

func (f *Factory) begin(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life != created {
		return ErrRunning
	}
	f.life = running
	f.launch = func(s *sharedInformer) {
		var own context.Context
		own, s.cancel = context.WithCancel(ctx)
		f.active.Go(func() { f.runShared(own, s) })
	}
	for _, s := range f.shared {
		f.launch(s)
	}
	return nil
}

// runShared runs one informer. If it fails it is forgotten, so that whoever asks next gets a new one; the others go on.
func (f *Factory) runShared(ctx context.Context, s *sharedInformer) {
	defer s.cancel()
	err := s.run(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed = append(f.failed, err)
		f.forget(s)
	}
	close(s.done)
	for _, done := range s.leaving {
		close(done)
	}
}

func (f *Factory) forget(s *sharedInformer) {
	for key, other := range f.shared {
		if other == s {
			delete(f.shared, key)
		}
	}
}

// ConflictError is returned when two users ask for one informer with options that cannot both be kept.
type ConflictError struct {
	Resource api.Resource
	Option   string // the name of the field of Options
}

// Error names the resource and the option.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("informer: %s is shared already with another %s", e.Resource, e.Option)
}

// Share is one user's part in a shared informer.
type Share[T api.Object] struct {
	*Informer[T]
	factory *Factory
	shared  *sharedInformer

	mu            sync.Mutex // guards the fields below
	registrations []Registration
	released      bool
	done          chan struct{}
}

// Shared returns a share of the informer of what lw lists, with o; it is made for the first who asks. It runs as soon as
// the factory does. Informers are one where the source, T, the selectors and KeepManagedFields are equal. The source is
// what lw's method Identity() any returns, and lw itself if it has none. If any other option but Logger differs, the
// error is a *ConflictError; functions are equal if they are the same function value.
func Shared[T api.Object](f *Factory, lw api.ListerWatcher[T], o Options[T]) (*Share[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life >= ending {
		return nil, fmt.Errorf("share %s: %w", lw.Resource(), ErrStopped)
	}
	key := shareKey{
		source: identity(lw), object: reflect.TypeFor[T](),
		labelSelector: o.LabelSelector, fieldSelector: o.FieldSelector, managedFields: o.KeepManagedFields,
	}
	s := f.shared[key]
	if s == nil || isClosed(s.informer.(*Informer[T]).stopped) { // one that is just failing is of no use
		s = newShared(f, lw, o)
		f.shared[key] = s
		if f.launch != nil {
			f.launch(s)
		}
	} else if option := differing(s.options.(Options[T]), o); option != "" {
		return nil, &ConflictError{Resource: lw.Resource(), Option: option}
	}
	s.users++
	return &Share[T]{Informer: s.informer.(*Informer[T]), factory: f, shared: s, done: make(chan struct{})}, nil
}

func newShared[T api.Object](f *Factory, lw api.ListerWatcher[T], o Options[T]) *sharedInformer {
	own := o
	if own.Logger == nil {
		own.Logger = f.log
	}
	i := New(lw, own)
	return &sharedInformer{informer: i, options: o, run: i.Run, done: make(chan struct{})}
}

// identity is what two ListerWatchers of the same collection have in common.
func identity[T any](lw api.ListerWatcher[T]) any {
	source := any(lw)
	if i, ok := lw.(interface{ Identity() any }); ok {
		source = i.Identity()
	}
	if !reflect.ValueOf(source).Comparable() {
		panic(fmt.Sprintf("informer: Shared compares sources, and a source of type %T cannot be compared; give it a method Identity() any", source))
	}
	return source
}

// AddEventHandler is that of Informer, for a handler that is removed with the share.
func (s *Share[T]) AddEventHandler(h ResourceEventHandler[T], o HandlerOptions) (Registration, error) {
	return s.keep(func() (Registration, error) { return s.Informer.AddEventHandler(h, o) })
}

// Subscribe is that of Informer, for a handler that is removed with the share.
func (s *Share[T]) Subscribe(f func(Notification[T]), o HandlerOptions) (Registration, error) {
	return s.keep(func() (Registration, error) { return s.Informer.Subscribe(f, o) })
}

func (s *Share[T]) keep(register func() (Registration, error)) (Registration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil, ErrStopped
	}
	r, err := register()
	if err == nil {
		gone := func(r Registration) bool { return isClosed(r.Done()) }
		s.registrations = append(slices.DeleteFunc(s.registrations, gone), r)
	}
	return r, err
}

// Release gives the share back and removes the handlers that were registered through it. The informer stops if this was
// the last share of it. It does not wait, so that a handler may release its own share; see Done. Releasing again does
// nothing.
func (s *Share[T]) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return
	}
	s.released = true
	for _, r := range s.registrations {
		r.Remove()
	}
	s.factory.release(s.shared, s.registrations, s.done)
	s.registrations = nil
}

// Done is closed when the share has been released, no call of its handlers is in flight and, if it was the last one, the
// informer has ended.
func (s *Share[T]) Done() <-chan struct{} { return s.done }

// release counts a user off, and closes done once nothing of it is left.
func (f *Factory) release(s *sharedInformer, registrations []Registration, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.users--
	last := s.users == 0
	if last {
		f.forget(s)
		if s.cancel != nil {
			s.cancel()
		}
	}
	switch {
	case f.life == running:
		f.active.Go(func() { waitAndClose(s, last, registrations, done) })
	case f.life == created, isClosed(s.done): // nothing of it runs, so there is nothing to wait for
		close(done)
	default: // Run waits already, for the end of every informer
		s.leaving = append(s.leaving, done)
	}
}

func waitAndClose(s *sharedInformer, last bool, registrations []Registration, done chan struct{}) {
	for _, r := range registrations {
		<-r.Done()
	}
	if last {
		<-s.done
	}
	close(done)
}
