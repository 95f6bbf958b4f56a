package cachedclient

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

const defaultGateTimeout = 5 * time.Second

// GateOptions of a Gate. The zero value is what most want.
type GateOptions struct {
	// Timeout is how long a reconcile is held back at most. Zero means 5 seconds.
	Timeout time.Duration
	// OnWait is called with each wait that has ended, for metrics, with no lock held. It must not block.
	OnWait func(GateWait)
	// Logger is silent when nil.
	Logger *zap.Logger
}

// Wait is a reconcile that was held back.
type GateWait struct {
	Key      api.Key
	Took     time.Duration
	TimedOut bool // it went on although a cache did not show everything that was written
}

// Gate keeps a reconcile from reading a state that is older than what the last reconcile of the same key wrote: the
// next one is held back until the caches have caught up. It is a controller.Gate, one for each controller:
//
//	controller.New("web", controller.Gated(reconciler, cachedclient.NewGate(cachedclient.GateOptions{})), …)
//
// It learns of what a Partial or Typed writes with the context that the reconciler was given, or one that comes of it.
// What it holds back needs no worker; what others wrote it does not wait for. A write that fails is not noted, and
// neither is one whose outcome is unknown, because there is no version to wait for: what repeats it has to be safe to
// repeat, as an update with a version and a creation with a name are. It corresponds to the consistency store of
// kube-controller-manager (KEP-5647), which fails a sync that comes too early.
type Gate struct {
	timeout time.Duration
	onWait  func(GateWait)
	log     *zap.Logger

	mu      sync.Mutex // guards the fields below, and every unseenWrites
	unseen  map[api.Key]*unseenWrites
	sweepAt int // how many there may be before those that are settled are looked for
	stats   GateStats
}

// GateStats is what a Gate has done.
type GateStats struct {
	Keys     int   // of which something is noted that was not seen when it was last looked for
	Waiting  int   // keys that are held back
	Waits    int64 // reconciles that were held back and have gone on
	TimedOut int64 // of these, those that went on without having seen everything
}

// sweepFrom is how many keys have unseen writes before sweep looks for those whose writes have been seen.
const sweepFrom = 64

// NewGate returns a gate to which nothing has been written yet.
func NewGate(o GateOptions) *Gate {
	if o.Timeout <= 0 {
		o.Timeout = defaultGateTimeout
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Gate{timeout: o.Timeout, onWait: o.OnWait, log: o.Logger, unseen: map[api.Key]*unseenWrites{}, sweepAt: sweepFrom}
}

// Ready tells whether the caches show what reconciles of the key have written. If not, again is called once, on any
// goroutine, when they do, or when the time-out is over.
func (g *Gate) Ready(key api.Key, again func()) bool {
	g.mu.Lock()
	ready, held := g.ready(key, again)
	g.mu.Unlock()
	for _, again := range held {
		again()
	}
	return ready
}

// ready also returns whom to call, if that who is held back already may go on. The lock is held.
func (g *Gate) ready(key api.Key, again func()) (ready bool, held []func()) {
	l := g.unseen[key]
	if l == nil {
		return true, nil
	}
	if l.allSeen() {
		return true, g.close(l, false)
	}
	if !l.isWaiting() {
		// Listen first and look again then: what came in between is not missed.
		if l.subscribe(func() { g.look(l) }); l.allSeen() {
			return true, g.close(l, false)
		}
		l.since = time.Now()
		l.timer = time.AfterFunc(g.timeout, func() { g.giveUp(l) })
		g.stats.Waiting++
	}
	l.waiting = append(l.waiting, again)
	return false, nil
}

// look lets a key go on if everything has been seen. It is called when a cache has changed.
func (g *Gate) look(l *unseenWrites) {
	g.mu.Lock()
	var held []func()
	if l.isWaiting() && l.allSeen() {
		held = g.close(l, false)
	}
	g.mu.Unlock()
	for _, again := range held {
		again()
	}
}

// giveUp lets a key go on although not everything has been seen. What has not is forgotten: a cache that is stuck costs
// each key one time-out and not one for each reconcile.
func (g *Gate) giveUp(l *unseenWrites) {
	g.mu.Lock()
	var held []func()
	if l.isWaiting() {
		timedOut := !l.allSeen()
		if timedOut {
			g.complain(l)
		}
		held = g.close(l, timedOut)
	}
	g.mu.Unlock()
	for _, again := range held {
		again()
	}
}

// complain logs one of the writes that have not been seen.
func (g *Gate) complain(l *unseenWrites) {
	w := l.unseen()
	g.log.Warn("reconcile goes on before the cache shows what was written",
		zap.String("key", api.FormatKey(l.key)), zap.Duration("after", g.timeout), zap.Int("count", len(l.writes)),
		zap.Stringer("resource", w.target.resource()), zap.String("object", api.FormatKey(w.key)),
		zap.String("rv", w.version), zap.String("cached", w.target.position()))
}

// close forgets the writes of a key and returns the functions to call.
func (g *Gate) close(l *unseenWrites, timedOut bool) []func() {
	delete(g.unseen, l.key)
	l.unsubscribe()
	if !l.isWaiting() {
		return nil
	}
	l.timer.Stop()
	l.timer = nil
	g.stats.Waiting--
	g.stats.Waits++
	if timedOut {
		g.stats.TimedOut++
	}
	held := l.waiting
	if g.onWait != nil {
		ended := GateWait{Key: l.key, Took: time.Since(l.since), TimedOut: timedOut}
		held = append(held, func() { g.onWait(ended) })
	}
	return held
}

// Begin returns the context of a reconcile of the key.
func (g *Gate) Begin(ctx context.Context, key api.Key) context.Context {
	return context.WithValue(ctx, gateKey{}, gateContext{g, key})
}

// Stats returns what the gate has done so far.
func (g *Gate) Stats() GateStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Keys = len(g.unseen)
	return s
}

// gateKey finds the gate in a context.
type gateKey struct{}

// gateContext is the gate and the key that a reconcile's context carries.
type gateContext struct {
	gate *Gate
	key  api.Key
}

// noted tells whether a context has a gate.
func noted(ctx context.Context) bool { return ctx.Value(gateKey{}) != nil }

// note tells the gate of a context, if there is one, what was written.
func note(ctx context.Context, w write) {
	if n, ok := ctx.Value(gateKey{}).(gateContext); ok {
		n.gate.note(n.key, w)
	}
}

func (g *Gate) note(key api.Key, w write) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.unseen[key]
	if l == nil {
		g.sweep()
		l = &unseenWrites{key: key, writes: map[objectID]write{}, caches: map[writeTarget]struct{}{}}
		g.unseen[key] = l
	}
	l.note(w)
	if l.isWaiting() { // whoever writes has outlived its reconcile
		l.subscribe(func() { g.look(l) })
	}
}

// sweep forgets the keys of which everything has been seen, every so often: they may never be reconciled again.
func (g *Gate) sweep() {
	if len(g.unseen) < g.sweepAt {
		return
	}
	for key, l := range g.unseen {
		if !l.isWaiting() && l.allSeen() {
			delete(g.unseen, key)
		}
	}
	g.sweepAt = max(sweepFrom, 2*len(g.unseen))
}
