package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"
)

// result is the outcome of a function that runs on another goroutine.
type result[T any] struct {
	value T
	err   error
}

// background calls do on another goroutine. A read of a file and a write to a pipe do not end with a context: a
// network file system may not answer, and the reader of a pipe may not read. The goroutine of such a call ends with the
// process.
func background[T any](do func() (T, error)) <-chan result[T] {
	done := make(chan result[T], 1)
	go func() {
		value, err := do()
		done <- result[T]{value, err}
	}()
	return done
}

// untilInterrupted returns what do returns, or the error of the context if the context ends first.
func untilInterrupted[T any](ctx context.Context, do func() (T, error)) (T, error) {
	select {
	case r := <-background(do):
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("interrupted: %w", ctx.Err())
	}
}

// writeGrace is how long a write may take after the context has ended.
const writeGrace = 250 * time.Millisecond

// interruptibleWriter is a writer whose Write returns soon after the context has ended, even if the reader of the pipe
// has stopped. After a write that was given up all others fail at once, because many lines may follow.
type interruptibleWriter struct {
	w           io.Writer
	interrupted <-chan struct{} // closed when the context of the command ends
	givenUp     atomic.Bool
}

// Write writes a copy of p, because the caller may change p while a write that was given up still blocks.
func (w *interruptibleWriter) Write(p []byte) (int, error) {
	if w.givenUp.Load() {
		return 0, context.Canceled
	}
	line := slices.Clone(p)
	done := background(func() (int, error) { return w.w.Write(line) })
	select {
	case r := <-done:
		return r.value, r.err
	case <-w.interrupted:
	}
	grace := time.NewTimer(writeGrace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-grace.C:
		w.givenUp.Store(true)
		return 0, context.Canceled
	}
}
