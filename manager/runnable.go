package manager

import (
	"context"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

// Runnable is a part of a program that a Manager runs: a controller, an informer, a factory, a recorder or a server. It
// corresponds to Runnable of controller-runtime.
//
// A runnable of your own works only on the leader: it starts when this replica leads, and ends before the lease is
// released. A Placement, or a method NeedLeaderElection that returns false, makes it work on every replica.
//
// A Runnable may also implement the interfaces of this table. The manager checks for them at run time.
//
//	interface               method              what the manager does with it      implemented by
//	Named                   Name                uses the name in logs and errors   Controller, Servers
//	SyncNotifier            Synced              starts the next group after that   Controller, Factory, Informer, Servers
//	SyncExplainer           NotSynced           explains errors and /readyz        Controller
//	ReadyRunnable           Ready               adds the check to /readyz          Member of shard
//	ServerRunnable          Addr                runs it in Servers                 Server, also of webhook
//	InformerRunnable        Status              runs it in Caches; adds its error  Informer
//	FactoryRunnable         Status              runs it in Caches; adds its error  Factory
//	WarmUpRunnable          RunHeld             runs it in WarmUp                  Controller
//	LeaderElectionRunnable  NeedLeaderElection  false: runs it in Others           Member of shard, Recorder of recording
//	DeadlineRunnable        EndBy               tells it when Run has to return    Recorder
//	Debuggable              DebugHandler        serves /debug/controllers and why  Controller, Member of shard
//	OptionsReporter         Options             serves /debug/options              Controller
//	LoggerUser              UseLogger           hands on Options.Logger            all of these
//
// Options.Metrics decides what has metrics: *metrics.Metrics knows all of these except Server. A Server of webhook gets
// it by its method UseMetrics.
//
// The Elector of Options may implement CheckedElector and LoggerUser; *leaderelection.Elector does. *metrics.Metrics
// implements MetricsRegistry, for Options.Metrics, and *livepage.Page implements StatePage, for AdminOptions.Page.
type Runnable interface {
	// Run blocks until ctx ends and all its goroutines have ended. An error ends the manager. If a runnable of the
	// groups Servers or Caches returns nil before ctx ends, the manager ends too, because other runnables need it; any
	// other runnable may end early.
	Run(ctx context.Context) error
}

// Func is a function that implements Runnable.
type Func func(ctx context.Context) error

// Run calls f.
func (f Func) Run(ctx context.Context) error { return f(ctx) }

// Named is a runnable with a name.
type Named interface {
	// Name returns the name of the runnable in logs and errors, unless Placement.Name is set. It must be unique in the
	// manager; see ErrNameTaken. If it is empty, the manager makes up a name.
	Name() string
}

// SyncNotifier is a runnable that later groups may have to wait for.
type SyncNotifier interface {
	// Synced returns a channel that is closed when the runnable is ready: a server listens, a cache holds its first
	// list, the queue of a controller holds all keys. The manager calls Synced once, when the runnable is added. It
	// waits for the runnables of Servers, Caches and WarmUp; see Group.
	Synced() <-chan struct{}
}

// SyncExplainer is a runnable that tells why it is not synced.
type SyncExplainer interface {
	// NotSynced returns the reason why the runnable is not synced, or nil if it is synced or the reason is unknown. The
	// manager calls it on any goroutine; it must not block.
	NotSynced() error
}

// ReadyRunnable is a runnable with a readiness check.
type ReadyRunnable interface {
	// Ready is a Check of /readyz, under the name of the runnable, from Add until the runnable ends.
	Ready(ctx context.Context) error
}

// ServerRunnable is a runnable that serves requests. Its default group is Servers.
type ServerRunnable interface {
	// Addr returns the address of the listener. It is nil before the runnable listens. The manager does not call it.
	Addr() net.Addr
}

// InformerRunnable is an informer of any type. Its default group is Caches, and the manager names it after its
// resource.
type InformerRunnable interface {
	// Status returns the state of the informer.
	Status() informer.Status
}

// FactoryRunnable is a set of informers. Its default group is Caches.
type FactoryRunnable interface {
	// Status returns the state of each informer.
	Status() []informer.Status
}

// WarmUpRunnable is a runnable that prepares its work on every replica, and does it on the leader. Its default group is
// WarmUp. It corresponds to the warmupRunnable of controller-runtime, which is not exported.
type WarmUpRunnable interface {
	// RunHeld is Runnable.Run, except that the work begins when release is closed. The manager calls it instead of Run
	// if the group is WarmUp.
	RunHeld(ctx context.Context, release <-chan struct{}) error
}

// LeaderElectionRunnable is a runnable that says whether it works only on the leader. It corresponds to the interface
// of controller-runtime that has this name, so a runnable that was written for it keeps its place.
type LeaderElectionRunnable interface {
	// NeedLeaderElection returns false if the runnable works on every replica. Its default group is then Others, if no
	// other interface gives it one. The manager calls it once, when the runnable is added.
	NeedLeaderElection() bool
}

// DeadlineRunnable is a runnable that still has work to do after its context has ended. A recorder writes its last
// Events.
type DeadlineRunnable interface {
	// EndBy says when Run has to return. The zero time means no limit. The manager calls it before the context of the
	// runnable ends, unless the manager does not wait; see DoNotWait.
	EndBy(t time.Time)
}

// Debuggable is a runnable that shows its state if AdminOptions.Debug is set. Only a runnable that is Named can be
// found there.
type Debuggable interface {
	Named
	// DebugHandler returns a handler of /debug/controllers/NAME, of the paths below it, and of /debug/why/KEY. An
	// answer to /debug/why/KEY is JSON with status 200, or another status if the runnable does not know the key.
	DebugHandler() http.Handler
}

// OptionsReporter is a Debuggable whose options the manager serves at /debug/options.
type OptionsReporter interface {
	// Options returns the effective options.
	Options() controller.Options
}

// LoggerUser is a runnable that logs, and may have been made without a logger.
type LoggerUser interface {
	// UseLogger sets the logger if the runnable has no logger of its own. The manager calls it without a lock when the
	// runnable is added, unless Options.Logger is nil.
	UseLogger(log *zap.Logger)
}

// sharedInformer is a share of an informer that a factory runs, so the manager must not run it.
type sharedInformer interface {
	InformerRunnable
	Release()
}

// Elector decides which replica leads. *leaderelection.Elector implements it. An Elector may also implement
// CheckedElector.
type Elector interface {
	// Run calls lead when this replica becomes the leader. The context of lead ends with ctx, and when this replica no
	// longer leads; in the latter case its cause is the reason. Run returns after lead has returned; only then does it
	// release the lease.
	Run(ctx context.Context, lead func(ctx context.Context) error) error
}

// CheckedElector is an Elector that reports when its lease is not reliable. The manager then serves the check
// "election" at /healthz and /livez.
type CheckedElector interface {
	// Check returns an error if this replica leads although its lease ended more than tolerance ago. See
	// Options.ElectionTolerance.
	Check(tolerance time.Duration) error
}

// MetricsRegistry registers the metrics of runnables. *metrics.Metrics implements it.
type MetricsRegistry interface {
	// Register registers the metrics of r until the returned function is called. A value without metrics is no error,
	// and neither is one whose metrics are registered already; the function then does nothing. The manager holds no
	// lock while it calls them.
	Register(name string, r any) (remove func(), err error)
}

// StatePage is a web page that shows the manager and its runnables. *livepage.Page implements it.
type StatePage interface {
	// MetricsRegistry makes the page show a runnable until the returned function is called. New passes the manager and
	// its elector too.
	MetricsRegistry
	// Handler returns the page. With debug, it shows keys and the texts of errors, as /debug/why/ does.
	Handler(debug bool) http.Handler
}
