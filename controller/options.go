package controller

import (
	"cmp"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

// LowPriority is the priority of keys that are added because of an initial list or a resync, unless their source says
// otherwise: see InformerSource.Prioritized. They wait for those about which something happened, and are never starved by
// them (see workqueue.Options.Ageing).
// It corresponds to handler.LowPriority of controller-runtime.
const LowPriority = -100

const (
	defaultCacheSyncTimeout = 2 * time.Minute
	defaultStuckAfter       = 5 * time.Minute
	defaultMaxCauses        = 4
	defaultHistory          = 256
	defaultAgeing           = 8
)

// Options of a Controller. The zero value is what most want.
type Options struct {
	// Workers is how many keys may be reconciled at once. Zero means what KindWorkers says of the kind that the keys name,
	// or else DefaultWorkers, or else 1. That kind is the one of the first source that was watched before Run and knows
	// it: For and Owns do.
	Workers int
	// KindWorkers and DefaultWorkers are for programs that give many controllers the same Options.
	// They correspond to GroupKindConcurrency and MaxConcurrentReconciles of controller-runtime's manager.
	KindWorkers    map[schema.GroupKind]int
	DefaultWorkers int

	// When are predicates that must all pass what any informer tells, before those of the source are asked; a source may
	// be exempted with its method Regardless. What comes from channels and functions is not asked about. They see objects
	// of any type: see predicate.OfType.
	When []func(informer.Notification[api.Object]) bool

	// Backoff and Bucket say when a failed key is tried again: the longer of the two delays counts. The zero values are
	// 5 ms, doubling with each failure up to 1000 s, and 10 retries a second of all keys together with a burst of 100; a
	// negative Bucket.QPS is no bound.
	Backoff workqueue.Backoff
	Bucket  workqueue.Bucket
	// MaxRetries is how often a failed key is tried again before it is dropped until something happens; zero is no end.
	// It goes by what the limiters count: one that is given to New and whose NumRequeues stays zero knows no end either.
	MaxRetries int

	// ReconcileTimeout ends the context of a reconcile, with ErrReconcileTimeout as its cause. Zero is never.
	ReconcileTimeout time.Duration
	// StuckAfter is how long a reconcile may take before that is logged, and logged again whenever the time has doubled.
	// Nothing else happens to it. Zero means 5 minutes, a negative value never.
	StuckAfter time.Duration
	// CrashOnPanic lets a panic of the reconciler end the process, as panics do, instead of costing one attempt.
	// It is the opposite of RecoverPanic of controller-runtime.
	CrashOnPanic bool
	// CacheSyncTimeout is how long Run waits for sources to be synced before the workers begin. Zero means 2 minutes, a
	// negative value for ever.
	CacheSyncTimeout time.Duration

	// MaxCauses is how many causes of a reconcile are kept; see Causes. Zero means 4, a negative value none. Ageing is
	// that of workqueue.Options.
	MaxCauses int
	Ageing    int

	// History is how many keys the controller remembers the last four reconciles of, for Why and DebugHandler: the keys
	// that were reconciled last. Zero means 256, a negative value none. A key takes between 1 and 5 KB, the more the longer
	// its errors and its causes are (TestHistoryIsBounded), and a reconcile less than 0.2 µs, a half of a percent of the
	// smallest that makes a request (BenchmarkHistory, BenchmarkReconcileOverHTTP).
	History int

	// QueueMetrics is told of the times that keys spend in the queue and in work.
	QueueMetrics *workqueue.Metrics
	// OnReconcile is called after every reconcile, on the worker's goroutine, while its key is still in work: for
	// metrics and traces. It must neither block nor panic.
	OnReconcile func(Report)

	// Logger is silent when nil.
	Logger *zap.Logger
}

// anyPredicate is a predicate on objects of any type.
type anyPredicate = func(informer.Notification[api.Object]) bool

// withDefaults says everything that the queue would, so that Settings does not guess. Limiters that are given take the
// place of Backoff and Bucket.
func (o Options) withDefaults(limiters int) Options {
	if limiters == 0 {
		o.Backoff.Base = cmp.Or(o.Backoff.Base, 5*time.Millisecond)
		o.Backoff.Max = cmp.Or(o.Backoff.Max, 1000*time.Second)
		o.Bucket.QPS = cmp.Or(o.Bucket.QPS, 10)
		o.Bucket.Burst = cmp.Or(o.Bucket.Burst, 100)
	}
	o.Ageing = cmp.Or(o.Ageing, defaultAgeing)
	o.StuckAfter = cmp.Or(o.StuckAfter, defaultStuckAfter)
	o.CacheSyncTimeout = cmp.Or(o.CacheSyncTimeout, defaultCacheSyncTimeout)
	o.MaxCauses = cmp.Or(o.MaxCauses, defaultMaxCauses)
	o.History = cmp.Or(o.History, defaultHistory)
	if o.QueueMetrics == nil {
		o.QueueMetrics = &workqueue.Metrics{} // so that Stats and Report have times
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// workers is how many there are for keys that name objects of a resource.
func (o Options) workers(r api.Resource) int {
	return cmp.Or(o.Workers, o.KindWorkers[schema.GroupKind{Group: r.Group, Kind: r.Kind}], o.DefaultWorkers, 1)
}

func (o Options) queue(name string) workqueue.Options {
	return workqueue.Options{
		Name: name, Backoff: o.Backoff, Bucket: o.Bucket,
		MaxCauses: o.MaxCauses, Ageing: o.Ageing, Metrics: o.QueueMetrics,
	}
}
