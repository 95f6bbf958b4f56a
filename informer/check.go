package informer

import (
	"context"
	"iter"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Check compares the cache of an informer with the server from time to time. Package driftcheck has one. It is not
// part of this package, so that programs without checks do not link it.
type Check interface {
	// Run checks until ctx ends. The informer calls it once, on a goroutine of its own. An informer of package scopes
	// calls it once for each scope.
	Run(ctx context.Context, i Checked)
}

// Checked is what a Check sees and does of an informer, or of one scope of it. The functions may be called on any
// goroutine.
type Checked struct {
	Source   any // the ListerWatcher
	Selector api.Selector
	PageSize int64          // as in reflector.Tuning; 0 means the default
	Rand     func() float64 // nil means math/rand/v2
	Logger   *zap.Logger
	Synced   <-chan struct{}

	State       func() Identities // at present, with an exact version
	Undecodable func() []*api.UndecodableError
	WaitFor     func(ctx context.Context, version string) error // blocks until the cache has the version
	Relist      func() bool                                     // see reflector.Reflector.Relist
	Report      func(CheckStatus)                               // sets Status.Check
}

// Identities is what a Check reads of a cache.Snapshot, or of a scope.
type Identities interface {
	// ResourceVersion returns the version of the snapshot.
	ResourceVersion() string
	// Keys yields the keys of all objects.
	Keys() iter.Seq[api.Key]
	// Identity returns the UID and the version of an object, and reports whether it is there.
	Identity(key api.Key) (uid types.UID, version string, exists bool)
}

// CheckStatus describes the consistency checks of an informer, or of one scope; see Options.Check.
type CheckStatus struct {
	// Checks is the number of checks that have ended. At is the end of the last one, and Err its error or nil.
	Checks int
	At     time.Time
	Err    error
	// Missed is the number of changes that the checks found and that the cache had missed. It never decreases.
	Missed int
}
