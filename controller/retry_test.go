package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

func TestBackoffDoublesUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		began, failures := time.Now(), 6
		ctl := controller.New("test", reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
			times = append(times, time.Since(began))
			require.Equal(t, (len(times)-1)%7+1, controller.Attempt(ctx))
			if len(times)%7 != 0 && failures > 0 {
				failures--
				return controller.Result{}, errors.New("no luck")
			}
			return controller.Result{}, nil
		}), controller.Options{Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Second, Max: 10 * time.Second}}})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		pass(time.Hour)
		seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
		require.Equal(t, []time.Duration{0, seconds(1), seconds(3), seconds(7), seconds(15), seconds(25), seconds(35)}, times)

		times, began, failures = nil, time.Now(), 1
		f.add("a", workqueue.Item{})
		pass(time.Hour)
		require.Equal(t, []time.Duration{0, seconds(1)}, times, "a success forgets the failures")
	})
}

func TestRequeueAfterForgetsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		ctl := controller.New("test", reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
			attempts = append(attempts, controller.Attempt(ctx))
			switch len(attempts) {
			case 1, 2, 4:
				return controller.Result{}, errors.New("no luck")
			case 3:
				return controller.Result{RequeueAfter: time.Minute}, nil
			}
			return controller.Result{}, nil
		}), controller.Options{})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		pass(time.Hour)
		require.Equal(t, []int{1, 2, 3, 1, 2}, attempts)
	})
}

func TestTerminalErrorRemembersBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		ctl := controller.New("test", reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
			attempts = append(attempts, controller.Attempt(ctx))
			if len(attempts) == 2 {
				return controller.Result{}, controller.TerminalError(errors.New("hopeless"))
			}
			return controller.Result{}, errors.New("no luck")
		}), controller.Options{MaxRetries: 3})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		pass(time.Hour)
		require.Equal(t, []int{1, 2}, attempts)
		f.add("a", workqueue.Item{})
		pass(time.Hour)
		require.Equal(t, []int{1, 2, 2, 3, 4}, attempts)
		require.EqualValues(t, 1, ctl.Stats().Terminal)
	})
}

func TestMaxRetriesDropsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		ctl := traced(controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			return controller.Result{}, errors.New("no luck")
		}), controller.Options{MaxRetries: 2}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		for range 2 { // the second round shows that the failures were forgotten
			f.add("a", workqueue.Item{})
			pass(time.Hour)
			var outcomes []controller.Outcome
			for _, report := range seen.take() {
				outcomes = append(outcomes, report.Outcome)
			}
			require.Equal(t, []controller.Outcome{controller.Failed, controller.Failed, controller.Dropped}, outcomes)
		}
		require.EqualValues(t, 2, ctl.Stats().Dropped)
	})
}

func TestLimiterOfTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		began := time.Now()
		ctl := controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			if times = append(times, time.Since(began)); len(times) < 4 {
				return controller.Result{}, errors.New("no luck")
			}
			return controller.Result{}, nil
		}), controller.Options{}, workqueue.FastSlow[string](time.Second, time.Minute, 2))
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		pass(time.Hour)
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 62 * time.Second}, times)
	})
}
