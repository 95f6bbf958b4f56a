package cachedclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

var (
	// ErrNotCached is matched by a *NotCachedError.
	ErrNotCached = errors.New("cachedclient: not cached")
	// ErrNotSynced is matched by a *NotSyncedError.
	ErrNotSynced = errors.New("cachedclient: the cache has not been filled")
	// ErrExpired is matched by an *ExpiredError.
	ErrExpired = errors.New("cachedclient: the list has expired")
)

// NotCachedError is the answer to a read of what no informer holds.
// It corresponds to ErrResourceNotCached of controller-runtime.
type NotCachedError struct {
	Resource  api.Resource
	Namespace string // that was asked for and is not cached; empty where nothing of the resource is
}

// Error says what is not cached, and what would help.
func (e *NotCachedError) Error() string {
	if e.Namespace != "" {
		return fmt.Sprintf("cachedclient: the informer of %s does not hold namespace %q", e.Resource, e.Namespace)
	}
	return fmt.Sprintf("cachedclient: no informer holds %s: give the client one, let reads start one (Informers), or allow live reads (ReadLive)", e.Resource)
}

// Is matches ErrNotCached.
func (e *NotCachedError) Is(target error) bool { return target == ErrNotCached }

// NotSyncedError is the answer to a read that ended before the cache had its first list.
// It corresponds to the time-out error, and to ErrCacheNotStarted, of controller-runtime.
type NotSyncedError struct {
	Status informer.Status // says why
	Err    error           // that of the context, or informer.ErrStopped
}

// Error says what was waited for, and why it did not come.
func (e *NotSyncedError) Error() string {
	return fmt.Sprintf("cachedclient: the cache has not been filled: %v (%s)", e.Err, e.Status)
}

// Is matches ErrNotSynced.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns what ended the wait, and what the informer's list failed with last, if it did.
func (e *NotSyncedError) Unwrap() []error {
	if e.Status.Reflector.Err == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Status.Reflector.Err}
}

// ExpiredError is the answer to who asks for the next page of a list that is too old.
// It corresponds to the 410 of an API server for a continue token that has expired.
type ExpiredError struct {
	Resource        api.Resource
	ResourceVersion string        // of the list
	Age             time.Duration // how old a list may become
}

// Error says which list, and how old it may become.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("cachedclient: the list of %s at version %s is older than %v: begin anew", e.Resource, e.ResourceVersion, e.Age)
}

// Is matches ErrExpired.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }
