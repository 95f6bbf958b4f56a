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

// attempt is one call of a reconciler. It is in the context of that call.
type attempt[K comparable] struct {
	controller *Controller[K]
	work       workqueue.Work[K]
	number     int // 1 for the first one, counted from when the failures were last forgotten
	id         [2]uint64
	started    time.Time
	took       time.Duration
	timedOut   bool

	mu   sync.Mutex // guards over
	over bool       // the causes belong to the queue again
}

func (c *Controller[K]) newAttempt(w workqueue.Work[K]) *attempt[K] {
	return &attempt[K]{
		controller: c, work: w, number: c.queue.NumRequeues(w.Key) + 1,
		id: [2]uint64{rand.Uint64(), rand.Uint64()}, started: time.Now(),
	}
}

// end notes that the reconciler has returned.
func (a *attempt[K]) end() {
	a.took = time.Since(a.started)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

func (a *attempt[K]) reconcileID() string { return formatID(a.id) }

// formatID writes an identifier, which is rarely wanted, as a random UUID (RFC 9562, version 4).
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

// log says once what came of the attempt: failures for people to see, the rest for debugging.
func (a *attempt[K]) log(outcome Outcome, r Result, err error) {
	level, message := zapcore.DebugLevel, "reconciled"
	switch outcome {
	case Failed:
		level, message = zapcore.ErrorLevel, "reconcile failed"
	case Terminal:
		level, message = zapcore.ErrorLevel, "reconcile failed and is not retried"
	case Dropped:
		level, message = zapcore.ErrorLevel, "reconcile failed too often and is not retried"
	case Cancelled:
		message = "reconcile cancelled"
	}
	entry := a.controller.log.Check(level, message)
	if entry == nil {
		return
	}
	fields := a.fields(a.took, a.work.Causes)
	if r.RequeueAfter > 0 && err == nil {
		fields = append(fields, zap.Duration("after", r.RequeueAfter))
	}
	if err != nil {
		fields = append(fields, zap.NamedError("err", err))
	}
	if r.RequeueAfter > 0 && err != nil {
		fields = append(fields, zap.Duration("ignored_after", r.RequeueAfter))
	}
	if a.timedOut {
		fields = append(fields, zap.Bool("timed_out", true))
	}
	var p *PanicError
	if errors.As(err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	entry.Write(fields...)
}

// fields are what every log entry of an attempt has.
func (a *attempt[K]) fields(took time.Duration, causes []workqueue.Cause) []zap.Field {
	return []zap.Field{
		zap.String("key", formatKey(a.work.Key)), zap.String("reconcileID", a.reconcileID()),
		zap.Int("attempt", a.number), zap.Duration("took", took),
		zap.Strings("causes", describeCauses(causes, a.work.CausesOmitted)),
	}
}

// describeCauses writes each cause as "pods update default/web-0 at version 4711".
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

// formatKey writes a key for people.
func formatKey[K comparable](key K) string {
	switch k := any(key).(type) {
	case api.Key:
		return api.FormatKey(k)
	case string:
		return k
	}
	return fmt.Sprint(key)
}

// attemptInContext is an attempt whatever its type of keys.
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

// ReconcileID returns the identifier of the reconcile that ctx was given to, a random UUID that stands in its log
// entries and its Report; empty outside of a reconcile. Every retry has its own.
// It corresponds to ReconcileIDFromContext of controller-runtime.
func ReconcileID(ctx context.Context) string {
	if a := attemptIn(ctx); a != nil {
		return a.reconcileID()
	}
	return ""
}

// Causes returns why the reconcile that ctx was given to is run: the first few of the events since the last one, oldest
// first. It returns nil once the reconcile has returned, and outside of one. A reconciler that acts on them instead of
// on what it finds will be wrong after the next restart; they are for people.
// Nothing in controller-runtime corresponds to it.
func Causes(ctx context.Context) []workqueue.Cause {
	if a := attemptIn(ctx); a != nil {
		return a.currentCauses()
	}
	return nil
}

// Attempt returns one more than the failures that the limiters remember of the key: 1 for a reconcile that is no retry, 2
// for the first retry, and so on; 0 outside of a reconcile.
func Attempt(ctx context.Context) int {
	if a := attemptIn(ctx); a != nil {
		return a.attemptNumber()
	}
	return 0
}

// Logger returns the controller's logger with the key and the identifier of the reconcile that ctx was given to; it is
// silent outside of one. It is made anew at each call.
// It corresponds to FromContext of controller-runtime's log package.
func Logger(ctx context.Context) *zap.Logger {
	if a := attemptIn(ctx); a != nil {
		return a.logger()
	}
	return zap.NewNop()
}
