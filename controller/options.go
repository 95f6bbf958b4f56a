package controller

import (
	"cmp"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

// LowPriority is the priority of keys that are added because of an initial list, a resync or an update without a new
// version. These keys wait for keys with a new event, but do not starve. It corresponds
// to handler.LowPriority of controller-runtime.
const LowPriority = -100

const (
	defaultCacheSyncTimeout = 2 * time.Minute
	defaultStuckAfter       = 5 * time.Minute
	defaultHistory          = 256
)

// Options configures a Controller. The zero value suits most controllers.
type Options struct {
	// Workers is the number of keys that may be reconciled at once. Zero means: the number in KindWorkers for the kind
	// of the keys, or else DefaultWorkers, or else 1. The first source that is watched before Run and knows the kind
	// decides it; sources made by For and Owns know it.
	Workers int

	// Queue has the options of the queue: Backoff and Bucket decide when a failed key is tried again, and MaxCauses is
	// the number of causes that a reconcile keeps; see Causes. Queue.Name is the name of the controller; New replaces
	// another one.
	Queue workqueue.Options
	// MaxRetries is how often a failed key is tried again before it is dropped until the next event. Zero means no
	// limit. It uses the count of the limiters: a limiter given to New whose NumRequeues stays zero means no limit too.
	MaxRetries int

	// ReconcileTimeout ends the context of a reconcile, with ErrReconcileTimeout as its cause. Zero means no timeout.
	ReconcileTimeout time.Duration
	// CacheSyncTimeout is how long Run waits until the sources are synced. Zero means 2 minutes; a negative value means
	// no limit.
	CacheSyncTimeout time.Duration

	// Logger receives log entries; nil means no log.
	Logger *zap.Logger

	Tuning
}

// Tuning is what few controllers change. The zero value is right for most.
type Tuning struct {
	// KindWorkers and DefaultWorkers are for programs that give the same Options to many controllers; see
	// Options.Workers. They correspond to GroupKindConcurrency and MaxConcurrentReconciles of controller-runtime's
	// manager.
	KindWorkers    map[schema.GroupKind]int
	DefaultWorkers int

	// StuckAfter is the duration after which a running reconcile is logged, and logged again whenever the duration has
	// doubled. The log entry is the only effect. Zero means 5 minutes; a negative value disables it.
	StuckAfter time.Duration
	// CrashOnPanic lets a panic of the reconciler end the process; otherwise a panic costs one attempt. It is the
	// opposite of RecoverPanic of controller-runtime.
	CrashOnPanic bool
	// History is the number of keys whose last four reconciles the controller remembers, for Why and DebugHandler. It
	// remembers the keys that were reconciled last. Zero means 256; a negative value disables the history. A key takes
	// between 1 and 5 KB, depending on the length of its errors and causes (TestHistoryIsBounded). A reconcile costs
	// less than 0.2 µs more, half a percent of the smallest reconcile that makes a request (BenchmarkHistory,
	// BenchmarkReconcileOverHTTP).
	History int
}

// withDefaults fills in the defaults, except those of the queue.
func (o Options) withDefaults(name string) Options {
	o.StuckAfter = cmp.Or(o.StuckAfter, defaultStuckAfter)
	o.CacheSyncTimeout = cmp.Or(o.CacheSyncTimeout, defaultCacheSyncTimeout)
	o.History = cmp.Or(o.History, defaultHistory)
	o.Queue.Name = name
	if o.Queue.Metrics == nil {
		o.Queue.Metrics = &workqueue.Metrics{} // so that Stats and Report have times
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// workers returns the number of workers for keys that name objects of a resource.
func (o Options) workers(r api.Resource) int {
	return cmp.Or(o.Workers, o.KindWorkers[schema.GroupKind{Group: r.Group, Kind: r.Kind}], o.DefaultWorkers, 1)
}
