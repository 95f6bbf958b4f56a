package controller

import (
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

// LowPriority is the priority of keys that are added because of an initial list or a resync: they wait for those about
// which something happened, and are never starved by them (see workqueue.Options.Ageing).
// It corresponds to handler.LowPriority of controller-runtime.
const LowPriority = -100

const (
	defaultCacheSyncTimeout = 2 * time.Minute
	defaultMaxCauses        = 4
	defaultHistory          = 256
)

// Options of a Controller. The zero value is what most want.
type Options struct {
	// Workers is how many keys may be reconciled at once. Zero means 1.
	Workers int

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

func (o Options) withDefaults() Options {
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.CacheSyncTimeout == 0 {
		o.CacheSyncTimeout = defaultCacheSyncTimeout
	}
	if o.MaxCauses == 0 {
		o.MaxCauses = defaultMaxCauses
	}
	if o.History == 0 {
		o.History = defaultHistory
	}
	if o.QueueMetrics == nil {
		o.QueueMetrics = &workqueue.Metrics{} // so that Stats and Report have times
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

func (o Options) queue(name string) workqueue.Options {
	return workqueue.Options{
		Name: name, Backoff: o.Backoff, Bucket: o.Bucket,
		MaxCauses: o.MaxCauses, Ageing: o.Ageing, Metrics: o.QueueMetrics,
	}
}
