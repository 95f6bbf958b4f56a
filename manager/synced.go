package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatproject/leat/informer"
)

// cached is an informer, of any type.
type cached interface{ Status() informer.Status }

// sharing is a factory of informers.
type sharing interface{ Status() []informer.Status }

// readiness is what closes when those who start after a runnable may; nil is at once.
func readiness(r Runnable, g Group) <-chan struct{} {
	if s, ok := r.(interface{ Synced() <-chan struct{} }); ok && g != Others {
		return s.Synced()
	}
	return nil
}

// statuses is how the informers fare that a runnable consists of.
func statuses(r Runnable) []informer.Status {
	switch r := r.(type) {
	case cached:
		return []informer.Status{r.Status()}
	case sharing:
		return r.Status()
	}
	return nil
}

// unsyncedError is an informer that is not synced.
type unsyncedError struct{ status informer.Status }

// Error says why.
func (e *unsyncedError) Error() string { return e.status.String() }

// Unwrap returns what its last request failed with.
func (e *unsyncedError) Unwrap() error { return e.status.Reflector.Err }

// whyNotSynced asks a controller, an informer, or those of a factory. It is nil where there is nothing to ask, or nothing
// to say.
func whyNotSynced(r Runnable) error {
	if telling, ok := r.(interface{ NotSynced() error }); ok {
		return telling.NotSynced()
	}
	var reasons []error
	for _, s := range statuses(r) {
		if !s.Synced {
			reasons = append(reasons, &unsyncedError{s})
		}
	}
	return errors.Join(reasons...)
}

// checkCaches is a check that fails as long as a cache is not synced, and says which and why.
func (m *Manager) checkCaches(context.Context) error {
	var late []error
	for _, r := range m.membersWhere(func(r *Registration) bool { return r.group == Caches }) {
		why, named := whyNotSynced(r.runnable), len(statuses(r.runnable)) > 0
		switch {
		case why != nil && named:
			late = append(late, why)
		case why != nil:
			late = append(late, fmt.Errorf("%s: not synced: %w", r.name, why))
		case r.ready != nil && !isClosed(r.ready) && !named:
			late = append(late, fmt.Errorf("%s: not synced", r.name))
		}
	}
	return errors.Join(late...)
}
