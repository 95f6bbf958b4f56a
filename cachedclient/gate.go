package cachedclient

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

const defaultGateTimeout = 5 * time.Second

// GateOptions configure a Gate. The zero value suits most controllers.
type GateOptions struct {
	// Timeout is the longest time that a Gate delays a reconcile. Zero means 5 seconds.
	Timeout time.Duration
	// OnWait is called after each wait, for metrics. No lock is held. It must not block.
	OnWait func(GateWait)
	// Logger gets a warning for each timeout. Nil means no log.
	Logger *zap.Logger
}

// GateWait describes one reconcile that a Gate delayed.
type GateWait struct {
	Key      any // of the controller: an api.Key, unless NewKeyedGate made the gate
	Took     time.Duration
	TimedOut bool // the wait ended although a cache did not show every write
}

// Gate delays a reconcile until the caches show what the previous reconciles of the same key wrote. So a reconcile does
// not read a state from before these writes. A Gate is a controller.Gate. Make one for each controller:
//
//	controller.New("web", controller.Gated(reconciler, cachedclient.NewGate(cachedclient.GateOptions{})), …)
//
// A Gate records each write that a Partial or Typed makes with the context of the reconciler, or with a context derived
// from it. It does not record the writes of other clients. A delayed reconcile occupies no worker.
//
// A Gate does not record a write that failed or whose answer was lost, because the version is unknown. A reconcile must
// be able to repeat such a write safely; an update with a version and a create with a name are safe. If such a write
// has created an object, and a reconcile deletes it before the cache has it, the Gate does not wait for this delete
// either: its answer contains no version.
//
// It corresponds to the consistency store of kube-controller-manager (KEP-5647), which fails a sync that comes too
// early.
type Gate = KeyedGate[api.Key]

// KeyedGate is a Gate for a controller whose keys have another type, for instance because it reconciles the objects of
// several clusters. Make one with NewKeyedGate.
type KeyedGate[K comparable] struct {
	timeout time.Duration
	onWait  func(GateWait)
	log     atomic.Pointer[zap.Logger]
	// ownLogger reports that the options had a logger.
	ownLogger bool

	mu      sync.Mutex // guards the fields below, and every unseenWrites
	unseen  map[K]*keyedWrites[K]
	sweepAt int // the number of keys at which record calls sweep
	stats   GateStats
}

// keyedWrites are the writes of one key.
type keyedWrites[K comparable] struct {
	unseenWrites
	key K
}

// GateStats are the counters of a Gate.
type GateStats struct {
	Keys     int   // keys with writes that no cache showed at the last look
	Waiting  int   // keys whose reconcile is delayed now
	Waits    int64 // delays that have ended
	TimedOut int64 // delays that ended at the timeout, before the caches showed every write
}

// sweepFrom is the smallest number of entries for which sweeping is worth its cost, in a Gate and in an overlay.
const sweepFrom = 64

// NewGate returns a Gate that has recorded no write.
func NewGate(o GateOptions) *Gate { return NewKeyedGate[api.Key](o) }

// NewKeyedGate returns a gate for keys of any type that has recorded no write.
func NewKeyedGate[K comparable](o GateOptions) *KeyedGate[K] {
	if o.Timeout <= 0 {
		o.Timeout = defaultGateTimeout
	}
	g := &KeyedGate[K]{
		timeout: o.Timeout, onWait: o.OnWait, ownLogger: o.Logger != nil, unseen: map[K]*keyedWrites[K]{}, sweepAt: sweepFrom,
	}
	g.log.Store(cmp.Or(o.Logger, zap.NewNop()))
	return g
}

// UseLogger sets the logger if GateOptions.Logger is nil. A controller with this gate calls it.
func (g *KeyedGate[K]) UseLogger(log *zap.Logger) {
	if !g.ownLogger {
		g.log.Store(log)
	}
}

// Ready reports whether the caches show what reconciles of the key have written. If not, Ready calls again once, on any
// goroutine, when they do or when the timeout is over.
func (g *KeyedGate[K]) Ready(key K, again func()) bool {
	g.mu.Lock()
	ready, callbacks := g.ready(key, again)
	g.mu.Unlock()
	for _, callback := range callbacks {
		callback()
	}
	return ready
}

// ready does the work of Ready with the mutex held. It also returns the callbacks of earlier callers if their wait has
// ended.
func (g *KeyedGate[K]) ready(key K, again func()) (ready bool, callbacks []func()) {
	u := g.unseen[key]
	if u == nil {
		return true, nil
	}
	if u.removeSeen() {
		return true, g.endWait(u, false)
	}
	if !u.isWaiting() {
		// Subscribe first and look again afterwards, so that no change between the two is missed.
		if u.subscribe(func() { g.recheck(u) }); u.removeSeen() {
			return true, g.endWait(u, false)
		}
		u.waitStart = time.Now()
		u.timer = time.AfterFunc(g.timeout, func() { g.timeOut(u) })
		g.stats.Waiting++
	}
	u.callbacks = append(u.callbacks, again)
	return false, nil
}

// recheck ends the wait of a key if the caches show all its writes. It runs when a cache has changed.
func (g *KeyedGate[K]) recheck(u *keyedWrites[K]) {
	g.mu.Lock()
	var callbacks []func()
	if u.isWaiting() && u.removeSeen() {
		callbacks = g.endWait(u, false)
	}
	g.mu.Unlock()
	for _, callback := range callbacks {
		callback()
	}
}

// timeOut ends the wait of a key although caches do not show all its writes. It forgets these writes, so that a cache
// that is stuck costs each key one timeout and not one for each reconcile.
func (g *KeyedGate[K]) timeOut(u *keyedWrites[K]) {
	g.mu.Lock()
	var callbacks []func()
	if u.isWaiting() {
		timedOut := !u.removeSeen()
		if timedOut {
			count, w := len(u.writes), u.anyWrite()
			callbacks = append(callbacks, func() { g.logTimeout(u.key, count, w) })
		}
		callbacks = append(callbacks, g.endWait(u, timedOut)...)
	}
	g.mu.Unlock()
	for _, callback := range callbacks {
		callback()
	}
}

// logTimeout logs one of the writes that the caches do not show.
func (g *KeyedGate[K]) logTimeout(key K, count int, w write) {
	g.log.Load().Warn("reconcile begins before the cache shows the writes of the previous one",
		zap.String("key", formatKey(key)), zap.Duration("timeout", g.timeout), zap.Int("count", count),
		zap.Stringer("resource", w.target.resource()), zap.String("object", api.FormatKey(w.key)),
		zap.String("rv", w.version), zap.String("cached", w.target.version(w.key.Namespace)))
}

// endWait forgets the writes of a key, and returns the functions to call without the mutex if callers wait for them.
func (g *KeyedGate[K]) endWait(u *keyedWrites[K], timedOut bool) []func() {
	delete(g.unseen, u.key)
	u.unsubscribe()
	if !u.isWaiting() {
		return nil
	}
	u.timer.Stop()
	u.timer = nil
	g.stats.Waiting--
	g.stats.Waits++
	if timedOut {
		g.stats.TimedOut++
	}
	callbacks := u.callbacks
	if g.onWait != nil {
		wait := GateWait{Key: u.key, Took: time.Since(u.waitStart), TimedOut: timedOut}
		callbacks = append(callbacks, func() { g.onWait(wait) })
	}
	return callbacks
}

// Begin returns the context for a reconcile of the key. Writes with this context are recorded for the key.
func (g *KeyedGate[K]) Begin(ctx context.Context, key K) context.Context {
	return context.WithValue(ctx, gateKey{}, gateContext[K]{g, key})
}

// Stats returns the counters.
func (g *KeyedGate[K]) Stats() GateStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Keys = len(g.unseen)
	return s
}

// gateKey is the key of the gateContext in a context.
type gateKey struct{}

// gateContext is what the context of a reconcile carries: its gate and its key.
type gateContext[K comparable] struct {
	gate *KeyedGate[K]
	key  K
}

func (c gateContext[K]) record(w write) { c.gate.record(c.key, w) }

// hasGate reports whether a context comes from Gate.Begin.
func hasGate(ctx context.Context) bool { return ctx.Value(gateKey{}) != nil }

// record passes a write to the gate of a context, if there is one.
func record(ctx context.Context, w write) {
	if c, ok := ctx.Value(gateKey{}).(interface{ record(w write) }); ok {
		c.record(w)
	}
}

// formatKey formats a key for the log.
func formatKey[K comparable](key K) string {
	if k, ok := any(key).(api.Key); ok {
		return api.FormatKey(k)
	}
	return fmt.Sprint(key)
}

func (g *KeyedGate[K]) record(key K, w write) {
	u, waiting := g.add(key, w)
	if !waiting {
		return
	}
	// A goroutine that has outlived its reconcile made the write.
	g.mu.Lock()
	if u.isWaiting() {
		u.subscribe(func() { g.recheck(u) })
	}
	g.mu.Unlock()
	g.recheck(u)
}

// add adds a write to those of its key, and reports whether callers wait for them.
func (g *KeyedGate[K]) add(key K, w write) (u *keyedWrites[K], waiting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	u = g.unseen[key]
	if u == nil {
		g.sweep()
		u = &keyedWrites[K]{unseenWrites{writes: map[objectID]write{}, subscribed: map[writeTarget]struct{}{}}, key}
		g.unseen[key] = u
	}
	u.add(w)
	return u, u.isWaiting()
}

// sweep forgets the keys whose writes the caches show, because such a key may never be reconciled again. It looks at
// all keys, so it runs only when their number has doubled.
func (g *KeyedGate[K]) sweep() {
	if len(g.unseen) < g.sweepAt {
		return
	}
	for key, u := range g.unseen {
		if !u.isWaiting() && u.removeSeen() {
			delete(g.unseen, key)
		}
	}
	g.sweepAt = max(sweepFrom, 2*len(g.unseen))
}
