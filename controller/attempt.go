package controller

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

// attempt is one call of a reconciler. The context of the call contains it.
type attempt[K comparable] struct {
	controller *Controller[K]
	work       workqueue.Work[K]
	number     int // 1 for the first attempt; counted from the last Forget
	id         [2]uint64
	started    time.Time
	took       time.Duration
	timedOut   bool

	mu   sync.Mutex // guards over
	over bool       // the causes belong to the queue again
}

// ended is an attempt that has ended, as traces see it. Each worker has one and uses it again.
type ended[K comparable] struct {
	*attempt[K]
	outcome Outcome
	result  Result
	next    time.Time // when the key is due again because of this reconcile; see Report.Next
	err     error
}

func (c *Controller[K]) newAttempt(w workqueue.Work[K]) *attempt[K] {
	return &attempt[K]{
		controller: c, work: w, number: c.queue.NumRequeues(w.Key) + 1,
		id: [2]uint64{rand.Uint64(), rand.Uint64()}, started: time.Now(),
	}
}

// end records that the reconciler has returned.
func (a *attempt[K]) end() {
	a.took = time.Since(a.started)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

func (a *attempt[K]) reconcileID() string { return formatID(a.id) }

// formatID formats an identifier as a random UUID (RFC 9562, version 4). Most identifiers are never formatted.
func formatID(id [2]uint64) string {
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(id[0]>>(8*i)), byte(id[1]>>(8*i))
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func (a *attempt[K]) currentCauses() []workqueue.Cause {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil
	}
	return slices.Clone(a.work.Causes)
}

func (a *attempt[K]) attemptNumber() int { return a.number }

func (a *attempt[K]) logger() *zap.Logger {
	return a.controller.log.With(zap.String("key", formatKey(a.work.Key)), zap.String("reconcileID", a.reconcileID()))
}

// logEnd writes one entry about the end of an attempt: failures at level error, all others at level debug.
func (c *Controller[K]) logEnd(a *ended[K]) {
	level, message := zapcore.DebugLevel, "reconciled"
	switch a.outcome {
	case Failed:
		level, message = zapcore.ErrorLevel, "reconcile failed"
	case Terminal:
		level, message = zapcore.ErrorLevel, "reconcile failed and is not retried"
	case Dropped:
		level, message = zapcore.ErrorLevel, "reconcile failed too often and is not retried"
	case Cancelled:
		message = "reconcile cancelled"
	}
	entry := c.log.Check(level, message)
	if entry == nil {
		return
	}
	fields := a.fields(a.took, a.work.Causes)
	after := "after"
	if a.err != nil {
		fields, after = append(fields, zap.NamedError("err", a.err)), "ignored_after"
	}
	if a.result.RequeueAfter > 0 {
		fields = append(fields, zap.Duration(after, a.result.RequeueAfter))
	}
	if a.timedOut {
		fields = append(fields, zap.Bool("timed_out", true))
	}
	var p *api.PanicError
	if errors.As(a.err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	entry.Write(fields...)
}

// fields are the fields of every log entry about an attempt.
func (a *attempt[K]) fields(took time.Duration, causes []workqueue.Cause) []zap.Field {
	return []zap.Field{
		zap.String("key", formatKey(a.work.Key)), zap.String("reconcileID", a.reconcileID()),
		zap.Int("attempt", a.number), zap.Duration("took", took),
		zap.Strings("causes", describeCauses(causes, a.work.CausesOmitted)),
	}
}

// describeCauses formats each cause like "pods update default/web-0 at version 4711".
func describeCauses(causes []workqueue.Cause, omitted int) []string {
	var lines []string
	for _, c := range causes {
		line := c.Source + " " + c.Event + " " + c.Object
		if c.Version != "" {
			line += " at version " + c.Version
		}
		lines = append(lines, line)
	}
	if omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", omitted))
	}
	return lines
}

// formatKey formats a key for logs.
func formatKey[K comparable](key K) string {
	switch k := any(key).(type) {
	case api.Key:
		return api.FormatKey(k)
	case string:
		return k
	}
	return fmt.Sprint(key)
}

// attemptInContext hides the type of an attempt's key.
type attemptInContext interface {
	reconcileID() string
	currentCauses() []workqueue.Cause
	attemptNumber() int
	logger() *zap.Logger
}

type contextKey struct{}

func withAttempt(ctx context.Context, a attemptInContext) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

func attemptIn(ctx context.Context) attemptInContext {
	a, _ := ctx.Value(contextKey{}).(attemptInContext)
	return a
}

// ReconcileID returns the identifier of the reconcile that ctx belongs to. The identifier is a random UUID; the log
// entries and the Report of the reconcile contain it, and every retry has its own. It is "" outside a reconcile. It
// corresponds to ReconcileIDFromContext of controller-runtime.
func ReconcileID(ctx context.Context) string {
	if a := attemptIn(ctx); a != nil {
		return a.reconcileID()
	}
	return ""
}

// Causes returns the causes of the reconcile that ctx belongs to: the first events since the last reconcile of the key,
// oldest first. It returns nil after the reconcile has returned, and outside a reconcile. Causes are for people. A
// reconciler that acts on them instead of on the current state will be wrong after the next restart. controller-runtime
// has nothing like it.
func Causes(ctx context.Context) []workqueue.Cause {
	if a := attemptIn(ctx); a != nil {
		return a.currentCauses()
	}
	return nil
}

// Attempt returns the number of failures that the limiters remember of the key, plus one: 1 for a first attempt, 2 for
// the first retry. It returns 0 outside a reconcile.
func Attempt(ctx context.Context) int {
	if a := attemptIn(ctx); a != nil {
		return a.attemptNumber()
	}
	return 0
}

// Logger returns the controller's logger with the key and the identifier of the reconcile that ctx belongs to. Outside
// a reconcile, the logger is silent. Each call makes a new logger. It corresponds to FromContext of
// controller-runtime's log package.
func Logger(ctx context.Context) *zap.Logger {
	if a := attemptIn(ctx); a != nil {
		return a.logger()
	}
	return zap.NewNop()
}
