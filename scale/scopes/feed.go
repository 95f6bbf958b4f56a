package scopes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

// feed is the informer.Feed of a Set.
type feed[T api.Object] struct{ set *Set[T] }

// Run runs the reflectors of the scopes until ctx ends or one of them fails.
func (f feed[T]) Run(ctx context.Context) error {
	s := f.set
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := s.begin(ctx, cancel)
	s.awaitFollowed(ctx, followed)
	<-ctx.Done()
	s.mu.Lock()
	s.state, s.start = runstate.Ending, nil
	s.mu.Unlock()
	for _, r := range followed {
		r.Remove()
	}
	s.active.Wait()
	s.queue.Stop()
	return s.fatal
}

// begin starts the scopes that were added before Run.
func (s *Set[T]) begin(ctx context.Context, cancel context.CancelFunc) []informer.Registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = runstate.Running
	s.start = func(m *member[T]) {
		own, end := context.WithCancel(ctx)
		m.cancel = end
		s.active.Go(func() {
			defer end()
			if err := s.run(own, m); err != nil {
				s.fail(err)
				cancel()
			}
		})
		if s.check != nil {
			s.active.Go(func() { s.check.Run(own, s.checked(m)) })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.members)) {
		s.start(s.members[name])
	}
	return s.followed
}

// fail notes the first error that ends Run.
func (s *Set[T]) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil {
		s.fatal = err
	}
}

// awaitFollowed completes the set when the scopes of all followed objects are in it.
func (s *Set[T]) awaitFollowed(ctx context.Context, followed []informer.Registration) {
	for _, r := range followed {
		select {
		case <-r.Synced():
		case <-ctx.Done():
			return
		}
	}
	s.queue.Complete()
}

// Name describes the collection.
func (f feed[T]) Name() string { return f.set.resource.String() + " in scopes" }

// Scopes returns the state of each scope.
func (f feed[T]) Scopes() ([]informer.ScopeStatus, string) { return f.set.status() }

// Check returns the sum of the checks of all scopes.
func (f feed[T]) Check() informer.CheckStatus { return f.set.checkStatus() }

// HeardAt returns the oldest CaughtUpAt of the scopes.
func (f feed[T]) HeardAt(string, time.Time) time.Time { return f.Status().CaughtUpAt }

// UseLogger sets the logger of all scopes if Options.Logger is nil.
func (f feed[T]) UseLogger(log *zap.Logger) {
	s := f.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ownLogger {
		return
	}
	s.log = log
	for _, m := range s.members {
		m.reflector.UseLogger(m.logger(log))
	}
}

// Logger returns the logger of the set.
func (f feed[T]) Logger() *zap.Logger {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	return cmp.Or(f.set.log, zap.NewNop()).With(zap.Stringer("resource", f.set.resource))
}

// current returns the members in the order of their names.
func (s *Set[T]) current() []*member[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ordered()
}

// ordered is current for a caller that holds the mutex.
func (s *Set[T]) ordered() []*member[T] {
	return slices.SortedFunc(maps.Values(s.members), func(a, b *member[T]) int { return cmp.Compare(a.scope.Name, b.scope.Name) })
}

// Undecodable returns the undecodable objects of all scopes.
func (f feed[T]) Undecodable() (all []*api.UndecodableError) {
	for _, m := range f.set.current() {
		all = append(all, m.reflector.Undecodable()...)
	}
	return all
}

// Status describes all reflectors as one: the phase and the error of the first one that is late, and the sums of the
// counters.
func (f feed[T]) Status() reflector.Status {
	all := reflector.Status{Phase: reflector.Watching}
	if !f.set.running() {
		all.Phase = reflector.Idle
	}
	late := false
	all.Counters, _ = f.set.past()
	for _, m := range f.set.current() {
		s := m.reflector.Status()
		if !late && (s.Err != nil || s.Counters.Lists == 0) {
			late = true
			all.Phase, all.Attempt, all.NextAttempt, all.RetryAfter = s.Phase, s.Attempt, s.NextAttempt, s.RetryAfter
		}
		if s.Err != nil && all.Err == nil {
			all.Err = fmt.Errorf("scope %s: %w", m.scope.Name, s.Err)
		}
		if s.ProbeErr != nil && all.ProbeErr == nil {
			all.ProbeErr = fmt.Errorf("scope %s: %w", m.scope.Name, s.ProbeErr)
		}
		if at := s.UnconfirmedSince; !at.IsZero() && (all.UnconfirmedSince.IsZero() || at.Before(all.UnconfirmedSince)) {
			all.UnconfirmedSince = at
		}
		if s.LastErrorAt.After(all.LastErrorAt) {
			all.LastError, all.LastErrorAt = fmt.Errorf("scope %s: %w", m.scope.Name, s.LastError), s.LastErrorAt
		}
		if at := s.CaughtUpAt; !at.IsZero() && (all.CaughtUpAt.IsZero() || at.Before(all.CaughtUpAt)) {
			all.CaughtUpAt = at // the cache has nothing of a scope without a list
		}
		all.Objects += s.Objects
		all.Remaining = max(all.Remaining, 0) + max(s.Remaining, 0)
		all.Unversioned = all.Unversioned || s.Unversioned
		if s.LastMalformed != nil {
			all.LastMalformed = s.LastMalformed
		}
		all.Counters = sum(all.Counters, s.Counters)
	}
	return all
}

// past returns the counters of removed scopes.
func (s *Set[T]) past() (c reflector.Counters, dropped uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters, s.dropped
}

func (s *Set[T]) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != runstate.Created
}

func sum(a, b reflector.Counters) reflector.Counters {
	return reflector.Counters{
		WatchLists: a.WatchLists + b.WatchLists, Pages: a.Pages + b.Pages, Watches: a.Watches + b.Watches,
		Probes: a.Probes + b.Probes, Lists: a.Lists + b.Lists, Events: a.Events + b.Events,
		Bookmarks: a.Bookmarks + b.Bookmarks, Stale: a.Stale + b.Stale, Undecodable: a.Undecodable + b.Undecodable,
		Malformed: a.Malformed + b.Malformed, Expired: a.Expired + b.Expired, Backwards: a.Backwards + b.Backwards,
	}
}

// maxDescribed is the number of late scopes that a status describes, those that fail first. It counts the others.
const maxDescribed = 3

// status returns the state of each scope, and which of them are late and why.
func (s *Set[T]) status() (all []informer.ScopeStatus, late string) {
	var failing, waiting []informer.ScopeStatus
	for _, m := range s.current() {
		r := m.reflector.Status()
		status := informer.ScopeStatus{
			Name: m.scope.Name, Namespace: m.scope.Source.Collection().Namespace, Selector: m.scope.Selector,
			Synced: runstate.IsClosed(m.store.Listed()), Objects: m.store.Len(),
			ResourceVersion: m.store.Version(), Undecodable: len(m.reflector.Undecodable()), Shard: m.shard(), Reflector: r,
			Check: m.checkStatus(),
		}
		all = append(all, status)
		switch {
		case r.Err != nil:
			failing = append(failing, status)
		case !status.Synced:
			waiting = append(waiting, status)
		}
	}
	lateScopes := append(failing, waiting...)
	if len(lateScopes) == 0 {
		return all, ""
	}
	var lines []string
	for _, scope := range lateScopes[:min(len(lateScopes), maxDescribed)] {
		lines = append(lines, describe(scope))
	}
	return all, fmt.Sprintf("%d of %d scopes late: %s", len(lateScopes), len(all), strings.Join(lines, "; "))
}

// describe returns one line that explains why a scope is late.
func describe(s informer.ScopeStatus) string {
	line := s.Name + ": "
	if !s.Synced {
		line += "not synced, "
	}
	if s.Reflector.Phase == reflector.Queued {
		line += "waits for other lists"
	} else {
		line += string(s.Reflector.Phase)
	}
	if s.Reflector.Err != nil {
		failures := "a failure"
		if s.Reflector.Attempt != 1 {
			failures = fmt.Sprintf("%d failures", s.Reflector.Attempt)
		}
		line += fmt.Sprintf(" after %s: %v", failures, s.Reflector.Err)
	}
	if until := s.Reflector.NextAttempt; !until.IsZero() {
		line += fmt.Sprintf(", next attempt in %v", time.Until(until).Round(100*time.Millisecond))
	}
	return line
}
