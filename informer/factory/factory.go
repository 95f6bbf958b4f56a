package factory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/hooks"
	"github.com/leatproject/leat/internal/runstate"
)

// Options are the options of a Factory.
type Options struct {
	// Logger is the logger of informers whose own options have no Logger.
	Logger *zap.Logger
}

// Factory shares informers between any number of users. Users of the same collection get the same informer. When the
// last of them releases it, the informer stops and is freed. It corresponds to SharedInformerFactory of client-go,
// which shares by Go type only and cannot stop one informer.
type Factory struct {
	log    *zap.Logger
	synced chan struct{} // closed when the informers that Synced waits for are synced

	observers hooks.Set[func(informer.Any)] // of new informers

	mu            sync.Mutex // guards the fields below, and log
	shared        map[shareKey]*sharedInformer
	startInformer func(*sharedInformer) // starts an informer; nil unless Run is active
	state         runstate.State
	failed        []error
	active        sync.WaitGroup
}

// shareKey identifies an informer: users with equal keys share it.
type shareKey struct {
	source        any // the collection and the server
	object        reflect.Type
	labelSelector string
	fieldSelector string
	managedFields bool
	noSharedParts bool
}

// sharedInformer is one informer and the number of its users.
type sharedInformer struct {
	informer informer.Any // *informer.Informer[T]
	options  any          // informer.Options[T] of the first user
	run      func(context.Context) error
	users    int
	cancel   context.CancelFunc // nil before the informer starts
	done     chan struct{}      // closed when the informer has ended
	releases []chan struct{}    // the done channels of shares that were released while the factory was ending
}

// UseLogger sets the logger of informers if Options.Logger is nil. A manager calls it with its own logger.
// Informers that run keep theirs.
func (f *Factory) UseLogger(log *zap.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.log != nil {
		return
	}
	f.log = log
	for _, s := range f.shared {
		s.informer.UseLogger(log)
	}
}

// New returns a factory without informers.
func New(o Options) *Factory {
	return &Factory{log: o.Logger, synced: make(chan struct{}), shared: map[shareKey]*sharedInformer{}}
}

// Run runs the present and future informers until ctx ends. It then waits for them and returns the errors of those that
// failed. Run can be called once; the next call returns informer.ErrRunning.
func (f *Factory) Run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	f.awaitInformers(ctx)
	<-ctx.Done()
	f.mu.Lock()
	f.state, f.startInformer = runstate.Ending, nil
	f.mu.Unlock()
	f.active.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failed...)
}

func (f *Factory) begin(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != runstate.Created {
		return informer.ErrRunning
	}
	f.state = runstate.Running
	f.startInformer = func(s *sharedInformer) {
		var own context.Context
		own, s.cancel = context.WithCancel(ctx)
		f.active.Go(func() { f.runShared(own, s) })
	}
	for _, s := range f.shared {
		f.startInformer(s)
	}
	return nil
}

// runShared runs one informer. A failed informer is removed, so that the next user gets a new one. Other informers are
// not affected.
func (f *Factory) runShared(ctx context.Context, s *sharedInformer) {
	defer s.cancel()
	err := s.run(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed = append(f.failed, err)
		f.remove(s)
	}
	close(s.done)
	for _, done := range s.releases {
		close(done)
	}
}

func (f *Factory) remove(s *sharedInformer) {
	for key, other := range f.shared {
		if other == s {
			delete(f.shared, key)
		}
	}
}

// ConflictError is the error of Shared for options that conflict with those of the first user of the informer.
type ConflictError struct {
	Resource api.Resource
	Option   string // the name of the field of informer.Options
}

// Error names the resource and the option.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("factory: %s is already shared with a different %s", e.Resource, e.Option)
}

// Share is the handle of one user of a shared informer.
type Share[T api.Object] struct {
	*informer.Informer[T]
	factory *Factory
	shared  *sharedInformer

	mu            sync.Mutex // guards the fields below
	registrations []informer.Registration
	released      bool
	done          chan struct{}
}

// Shared returns a share of the informer for lw and o. The first user creates the informer, and it runs while the
// factory runs. Two users share an informer if source, T, selectors, KeepManagedFields and NoSharedParts are equal. The
// source is the Identity of lw, or lw itself if it is no api.Identified. If another option
// except Logger differs, the error is a *ConflictError; functions are equal if they are the same function value. Shared
// returns informer.ErrStopped when the factory is ending, and panics if the source cannot be compared.
func Shared[T api.Object](f *Factory, lw api.ListerWatcher[T], o informer.Options[T]) (*Share[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state >= runstate.Ending {
		return nil, fmt.Errorf("share %s: %w", lw.Collection().Resource, informer.ErrStopped)
	}
	key := shareKey{
		source: identity(lw), object: reflect.TypeFor[T](),
		labelSelector: o.Selector.Labels, fieldSelector: o.Selector.Fields, managedFields: o.KeepManagedFields, noSharedParts: o.NoSharedParts,
	}
	s := f.shared[key]
	if s == nil || runstate.IsClosed(s.informer.Stopped()) { // the present informer may have failed a moment ago
		s = newShared(f, lw, o)
		f.shared[key] = s
		for _, observe := range f.observers.All() {
			(*observe)(s.informer)
		}
		if f.startInformer != nil {
			f.startInformer(s)
		}
	} else if option := firstDifference(s.options.(informer.Options[T]), o); option != "" {
		return nil, &ConflictError{Resource: lw.Collection().Resource, Option: option}
	}
	s.users++
	return &Share[T]{Informer: s.informer.(*informer.Informer[T]), factory: f, shared: s, done: make(chan struct{})}, nil
}

func newShared[T api.Object](f *Factory, lw api.ListerWatcher[T], o informer.Options[T]) *sharedInformer {
	own := o
	if own.Logger == nil {
		own.Logger = f.log
	}
	i := informer.New(lw, own)
	return &sharedInformer{informer: i, options: o, run: i.Run, done: make(chan struct{})}
}

// identity returns the source of a ListerWatcher: the value that is equal for ListerWatchers of the same collection.
func identity[T any](lw api.ListerWatcher[T]) any {
	source := any(lw)
	if i, ok := lw.(api.Identified); ok {
		source = i.Identity()
	}
	if !reflect.ValueOf(source).Comparable() {
		panic(fmt.Sprintf("factory: Shared compares sources, and a source of type %T cannot be compared; make it an api.Identified", source))
	}
	return source
}

// AddEventHandler is informer.Informer.AddEventHandler. Release removes the handler.
func (s *Share[T]) AddEventHandler(h informer.ResourceEventHandler[T], o informer.HandlerOptions) (informer.Registration, error) {
	return s.register(func() (informer.Registration, error) { return s.Informer.AddEventHandler(h, o) })
}

// Subscribe is informer.Informer.Subscribe. Release removes the handler.
func (s *Share[T]) Subscribe(f func(api.Change[T]), o informer.HandlerOptions) (informer.Registration, error) {
	return s.register(func() (informer.Registration, error) { return s.Informer.Subscribe(f, o) })
}

func (s *Share[T]) register(register func() (informer.Registration, error)) (informer.Registration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil, informer.ErrStopped
	}
	r, err := register()
	if err == nil {
		gone := func(r informer.Registration) bool { return runstate.IsClosed(r.Done()) }
		s.registrations = append(slices.DeleteFunc(s.registrations, gone), r)
	}
	return r, err
}

// Release gives the share back and removes the handlers that were registered through it. If it is the informer's last
// share, the informer stops. Release does not wait, so a handler may release its own share; see Done. Releasing again
// has no effect.
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

// Done returns a channel that is closed when the share was released and no call of its handlers is in flight. If it was
// the last share, the informer has also ended then.
func (s *Share[T]) Done() <-chan struct{} { return s.done }

// release removes a user, and closes done when the user's handlers and, if it was the last user, the informer have
// ended.
func (f *Factory) release(s *sharedInformer, registrations []informer.Registration, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.users--
	last := s.users == 0
	if last {
		f.remove(s)
		if s.cancel != nil {
			s.cancel()
		}
	}
	switch {
	case f.state == runstate.Running:
		f.active.Go(func() { waitAndClose(s, last, registrations, done) })
	case f.state == runstate.Created, runstate.IsClosed(s.done): // no call can be in flight
		close(done)
	default: // Run already waits for the end of every informer; runShared closes done
		s.releases = append(s.releases, done)
	}
}

func waitAndClose(s *sharedInformer, last bool, registrations []informer.Registration, done chan struct{}) {
	for _, r := range registrations {
		<-r.Done()
	}
	if last {
		<-s.done
	}
	close(done)
}
