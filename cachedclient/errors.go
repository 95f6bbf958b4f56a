package cachedclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

var (
	// ErrNotCached matches every *NotCachedError.
	ErrNotCached = errors.New("cachedclient: not cached")
	// ErrNotSynced matches every *NotSyncedError.
	ErrNotSynced = errors.New("cachedclient: the cache does not have its first list")
	// ErrExpired matches every *ExpiredError.
	ErrExpired = errors.New("cachedclient: the list has expired")
)

// NotCachedError is the error of a read of objects that no informer caches.
// It corresponds to ErrResourceNotCached of controller-runtime.
type NotCachedError struct {
	Resource  api.Resource
	Namespace string // the requested namespace, if the informer caches another one; empty if there is no informer
}

// Error names what is not cached and the options that would help.
func (e *NotCachedError) Error() string {
	if e.Namespace != "" {
		return fmt.Sprintf("cachedclient: the informer of %s does not cache namespace %q", e.Resource, e.Namespace)
	}
	return fmt.Sprintf("cachedclient: no informer caches %s: give the client an informer, or set Options.Informers or Options.ReadLive", e.Resource)
}

// Is reports whether target is ErrNotCached.
func (e *NotCachedError) Is(target error) bool { return target == ErrNotCached }

// NotSyncedError is the error of a read that ended before the cache had its first list.
// It corresponds to the timeout error, and to ErrCacheNotStarted, of controller-runtime.
type NotSyncedError struct {
	Status informer.Status // of the informer; contains the last error of the list
	Err    error           // the error of the context, or informer.ErrStopped
}

// Error returns the reason why the read ended, and the status of the informer.
func (e *NotSyncedError) Error() string {
	return fmt.Sprintf("cachedclient: the cache does not have its first list: %v (%s)", e.Err, e.Status)
}

// Is reports whether target is ErrNotSynced.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns Err and, if the informer's list failed, the error of its last attempt.
func (e *NotSyncedError) Unwrap() []error {
	if e.Status.Reflector.Err == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Status.Reflector.Err}
}

// ExpiredError is the error of List.Next if the list is too old.
// It corresponds to the 410 of an API server for an expired continue token.
type ExpiredError struct {
	Resource        api.Resource
	ResourceVersion string        // of the list
	Age             time.Duration // the largest age of a list
}

// Error names the list and the largest age of a list.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("cachedclient: the list of %s at version %s is older than %v: list again", e.Resource, e.ResourceVersion, e.Age)
}

// Is reports whether target is ErrExpired.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }
