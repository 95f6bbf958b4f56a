package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// readiness returns the channel that a runnable closes when later groups may start; nil means at once.
func readiness(r Runnable, g Group) <-chan struct{} {
	if s, ok := r.(SyncNotifier); ok && g != Others {
		return s.Synced()
	}
	return nil
}

// statuses returns the status of each informer of a runnable.
func statuses(r Runnable) []informer.Status {
	switch r := r.(type) {
	case InformerRunnable:
		return []informer.Status{r.Status()}
	case FactoryRunnable:
		return r.Status()
	}
	return nil
}

// unsyncedError is the error of an informer that is not synced.
type unsyncedError struct{ status informer.Status }

// Error returns the status of the informer.
func (e *unsyncedError) Error() string { return e.status.String() }

// Unwrap returns the error of its last request.
func (e *unsyncedError) Unwrap() error { return e.status.Reflector.Err }

// whyNotSynced returns the reason why a controller, an informer or a factory is not synced. It returns nil for other
// runnables, and if there is no known reason.
func whyNotSynced(r Runnable) error {
	if telling, ok := r.(SyncExplainer); ok {
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

// checkCaches is a check that fails while a cache is not synced. Its error names the cache and the reason.
func (m *Manager) checkCaches(context.Context) error {
	var late []error
	for _, r := range m.membersWhere(func(r *RunnableRegistration) bool { return r.group == Caches }) {
		why, named := whyNotSynced(r.runnable), len(statuses(r.runnable)) > 0
		switch {
		case why != nil && named:
			late = append(late, why)
		case why != nil:
			late = append(late, fmt.Errorf("%s: not synced: %w", r.name, why))
		case r.ready != nil && !runstate.IsClosed(r.ready) && !named:
			late = append(late, fmt.Errorf("%s: not synced", r.name))
		}
	}
	return errors.Join(late...)
}
