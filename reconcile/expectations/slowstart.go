package expectations

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// SlowStart calls do for 0 to n-1 in batches of 1, 2, 4 and so on. It runs the calls of a batch concurrently. It stops
// after a batch in which a call failed, and when ctx has ended. So if a quota rejects the first of a thousand pods,
// SlowStart does not try the others. It returns the number of successful calls and the joined errors; take back the
// other n-succeeded creations with Created. It blocks until every call has returned. If a call panicked, it then panics
// on the caller's goroutine, with a *Panic. It corresponds to slowStartBatch of kube-controller-manager.
func SlowStart(ctx context.Context, n int, do func(ctx context.Context, i int) error) (succeeded int, err error) {
	for next, size := 0, 1; next < n; size *= 2 {
		if ctx.Err() != nil {
			return succeeded, context.Cause(ctx)
		}
		batch := min(size, n-next)
		var c calls
		for i := range batch {
			c.Go(func() { c.call(ctx, next+i, do) })
		}
		c.Wait()
		if c.panicked != nil {
			panic(c.panicked)
		}
		succeeded += batch - len(c.failed)
		if len(c.failed) > 0 {
			return succeeded, errors.Join(c.failed...)
		}
		next += batch
	}
	return succeeded, nil
}

// Panic is the value with which SlowStart panics after a call panicked.
type Panic struct {
	Value any
	Stack []byte // of the call's goroutine
}

// String returns the value and the stack.
func (p *Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// calls are the calls of one batch.
type calls struct {
	sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	failed   []error
	panicked *Panic // the first panic
}

func (c *calls) call(ctx context.Context, i int, do func(context.Context, int) error) {
	defer func() {
		if value := recover(); value != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.panicked == nil {
				c.panicked = &Panic{Value: value, Stack: debug.Stack()}
			}
		}
	}()
	if err := do(ctx, i); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = append(c.failed, err)
	}
}
