package referenced

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

// feed is the informer.Feed of a Set. Except for the requests for single objects, it is what the metadata have.
type feed[T api.Object] struct{ set *Set[T] }

// Run runs the informer of the metadata and requests objects until ctx ends.
func (f feed[T]) Run(ctx context.Context) error {
	s := f.set
	ctx, cancel := context.WithCancel(ctx)
	s.begin()
	s.state = runstate.Running
	s.request = func(e *entry[T]) { s.active.Go(func() { s.fetch(ctx, e) }) }
	followed := s.followed
	s.commit()
	s.active.Go(func() { s.await(ctx, followed) })
	err := s.metadata.Run(ctx)
	cancel()
	s.mu.Lock()
	s.state = runstate.Ending
	for _, e := range s.entries {
		e.stopTimer()
	}
	s.mu.Unlock()
	for _, r := range followed {
		r.Remove()
	}
	s.active.Wait()
	return err
}

// await waits for the first lists of the metadata and of the references.
func (s *Set[T]) await(ctx context.Context, followed []informer.Registration) {
	synced := []<-chan struct{}{s.metadata.Synced()}
	for _, r := range followed {
		synced = append(synced, r.Synced())
	}
	for _, c := range synced {
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
	s.begin()
	defer s.commit()
	s.listed = true
}

// Name describes the collection.
func (f feed[T]) Name() string { return f.set.client.Resource().String() + ", those referenced" }

// Status describes the reflector of the metadata. If that has no error, it shows a request for an object that failed.
func (f feed[T]) Status() reflector.Status {
	s := f.set
	status := s.metadata.Status().Reflector
	s.mu.Lock()
	defer s.mu.Unlock()
	failing := 0
	var worst *entry[T]
	for e := range s.late {
		if e.err == nil {
			continue
		}
		failing++
		if worst == nil || e.attempt > worst.attempt {
			worst = e
		}
	}
	if worst != nil && status.Err == nil {
		status.Err = fmt.Errorf("%d of %d referenced objects are not fetched, such as %s: %w",
			failing, len(s.entries), api.FormatKey(worst.key), worst.err)
		status.Attempt, status.LastError = worst.attempt, status.Err
	}
	return status
}

// Check returns the result of the consistency checks of the metadata.
func (f feed[T]) Check() informer.CheckStatus { return f.set.metadata.Status().Check }

// Scopes returns nothing.
func (f feed[T]) Scopes() ([]informer.ScopeStatus, string) { return nil, "" }

// HeardAt returns when the newest metadata were received.
func (f feed[T]) HeardAt(string, time.Time) time.Time { return f.set.metadata.Status().HeardAt }

// Undecodable returns the objects whose metadata could not be decoded.
func (f feed[T]) Undecodable() []*api.UndecodableError { return f.set.metadata.Undecodable() }

// UseLogger sets the logger if Options.Logger is nil.
func (f feed[T]) UseLogger(log *zap.Logger) {
	s := f.set
	if s.o.Logger != nil {
		return
	}
	s.mu.Lock()
	s.log = log
	s.mu.Unlock()
	s.metadata.UseLogger(log)
}

// Logger returns the logger of the set.
func (f feed[T]) Logger() *zap.Logger {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	return f.set.log.With(zap.Stringer("resource", f.set.client.Resource()))
}
