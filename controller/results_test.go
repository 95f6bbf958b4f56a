package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// never means that the key does not come again.
const never = -1

// TestResults checks the table in the package's documentation: every way to end, with every delay and priority, with
// one retry left and without.
func TestResults(t *testing.T) {
	failure := errors.New("no luck")
	terminal := controller.TerminalError(failure)
	type ways struct{ first, last controller.Outcome } // with a retry left, and without
	for _, end := range []struct {
		name string
		err  error // the reconciler panics with it if it is errPanic
		ways
	}{
		{"none", nil, ways{controller.Succeeded, controller.Succeeded}},
		{"error", failure, ways{controller.Failed, controller.Dropped}},
		{"joined error", errors.Join(failure, errors.New("and worse")), ways{controller.Failed, controller.Dropped}},
		{"context", fmt.Errorf("get: %w", context.Canceled), ways{controller.Failed, controller.Dropped}},
		{"panic", errPanic, ways{controller.Failed, controller.Dropped}},
		{"terminal", terminal, ways{controller.Terminal, controller.Terminal}},
		{"wrapped terminal", fmt.Errorf("check: %w", terminal), ways{controller.Terminal, controller.Terminal}},
		{"joined terminal", errors.Join(failure, terminal), ways{controller.Terminal, controller.Terminal}},
	} {
		for _, after := range []time.Duration{-time.Hour, 0, time.Hour} {
			for _, priority := range []int{0, 5, -7} {
				result := controller.Result{RequeueAfter: after, Priority: priority}
				for failures, outcome := range []controller.Outcome{end.first, end.last} {
					if outcome == controller.Succeeded && after > 0 {
						outcome = controller.Requeued
					}
					name := fmt.Sprintf("%s/after=%v/priority=%d/failures=%d", end.name, after, priority, failures)
					t.Run(name, func(t *testing.T) { checkResult(t, result, end.err, failures, outcome) })
				}
			}
		}
	}
}

var errPanic = errors.New("a bug")

// checkResult makes a key fail the given number of times and then end in the given way.
func checkResult(t *testing.T, result controller.Result, err error, failures int, outcome controller.Outcome) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		calls := 0
		ctl := traced(controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			switch calls++; {
			case calls <= failures:
				return controller.Result{}, errors.New("a failure before")
			case calls > failures+1:
				return controller.Result{}, nil
			case errors.Is(err, errPanic):
				panic(errPanic)
			}
			return result, err
		}), controller.Options{MaxRetries: 1, Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Minute}}}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{Priority: 3})
		pass(24 * time.Hour)

		all := seen.take()
		require.Greater(t, len(all), failures)
		all = all[failures:]
		require.Equal(t, outcome, all[0].Outcome)
		require.Equal(t, failures+1, all[0].Attempt)
		require.Equal(t, 3, all[0].Priority, "the priority of the event")
		again, attempt := time.Duration(never), 1
		switch outcome {
		case controller.Requeued:
			again = result.RequeueAfter
		case controller.Failed:
			again, attempt = time.Minute, 2
		}
		if again == never {
			require.Len(t, all, 1)
			return
		}
		require.Len(t, all, 2)
		require.Equal(t, again, all[1].Started.Sub(all[0].Started))
		require.Equal(t, attempt, all[1].Attempt)
		want := 3
		if result.Priority != 0 && !errors.Is(err, errPanic) { // a reconciler that panics returns no result
			want = result.Priority
		}
		require.Equal(t, want, all[1].Priority)
	})
}
