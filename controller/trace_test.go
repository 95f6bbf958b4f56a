package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

func TestTraceOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		objects := c.collection(things)
		objects.apply(named("old"))
		failures := 1
		ctl := controller.New("test", controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
			linger(10 * time.Second)
			if key.Name == "new" && failures > 0 {
				failures--
				return controller.Result{}, errors.New("no")
			}
			return controller.Result{}, nil
		}), controller.Options{})
		ctl.Watch(controller.For(objects.running(t)))
		var seen []controller.Times
		stop := ctl.Trace(controller.Trace{Reconciled: func(r controller.Reconciled) { seen = append(seen, r.Times()) }})
		began := time.Now()
		at := func(d time.Duration) time.Time { return began.Add(d) }
		start(t, ctl.Run)
		pass(time.Second)
		objects.apply(named("new")) // while "old" is being reconciled
		pass(time.Minute)
		require.Equal(t, []controller.Times{
			{Ready: began, Started: began, Done: at(10 * time.Second)}, // an initial list is not an event
			{Received: at(time.Second), Ready: at(time.Second), Started: at(10 * time.Second), Done: at(20 * time.Second)},
			{
				Ready: at(20*time.Second + 5*time.Millisecond), Started: at(20*time.Second + 5*time.Millisecond),
				Done: at(30*time.Second + 5*time.Millisecond), // a retry is not an event
			},
		}, seen)
		stop()
		objects.apply(named("new"))
		pass(time.Minute)
		require.Len(t, seen, 3)
	})
}

// The oldest event counts, whatever other causes the reconcile has.
func TestReceivedIsTheTimeOfTheOldestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		var seen []controller.Times
		ctl.Trace(controller.Trace{Reconciled: func(r controller.Reconciled) { seen = append(seen, r.Times()) }})
		began := time.Now()
		for _, cause := range []workqueue.Cause{
			{Event: "resync", At: began.Add(-5 * time.Second)},
			{Event: "update", At: began.Add(-3 * time.Second)},
			{Event: "delete", At: began.Add(-4 * time.Second)},
			{Event: "add", At: began.Add(-2 * time.Second)},
		} {
			ctl.Add("a", workqueue.Item{Cause: cause})
		}
		ctl.Add("b", workqueue.Item{Cause: workqueue.Cause{Event: "update", At: began.Add(-time.Second)}})
		start(t, ctl.Run)
		synctest.Wait()
		require.Equal(t, []controller.Times{
			{Received: began.Add(-4 * time.Second), Ready: began, Started: began, Done: began},
			{Received: began.Add(-time.Second), Ready: began, Started: began, Done: began},
		}, seen)
	})
}

func TestATraceAllocatesNothing(t *testing.T) {
	allocations := func(prepare func(*controller.Controller[string])) float64 {
		done := make(chan struct{})
		ctl := controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			done <- struct{}{}
			return controller.Result{}, nil
		}), controller.Options{Tuning: controller.Tuning{History: -1}})
		prepare(ctl)
		start(t, ctl.Run)
		return testing.AllocsPerRun(1000, func() {
			ctl.Add("a", workqueue.Item{})
			<-done
		})
	}
	nobody := allocations(func(*controller.Controller[string]) {})
	told := allocations(func(c *controller.Controller[string]) {
		c.Trace(controller.Trace{Reconciled: func(r controller.Reconciled) { _ = r.Times() }})
	})
	require.Equal(t, nobody, told)
}

func TestTraceOfReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		results := []error{errors.New("no"), nil, controller.TerminalError(errors.New("never")), nil}
		ctl := controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			err := results[0]
			results = results[1:]
			return controller.Result{RequeueAfter: time.Hour}, err
		}), controller.Options{})
		seen := make(chan controller.Report, 9)
		stop := ctl.Trace(controller.Trace{Reconciled: func(ended controller.Reconciled) {
			r := ended.Report()
			r.Causes = nil // they belong to the queue
			seen <- r
		}})
		start(t, ctl.Run)
		ctl.Add("a", workqueue.Item{})
		synctest.Wait()
		require.Equal(t, began.Add(5*time.Millisecond), (<-seen).Next, "the retry of a failure")
		pass(time.Second)
		second := <-seen
		require.Equal(t, controller.Requeued, second.Outcome)
		require.Equal(t, began.Add(5*time.Millisecond+time.Hour), second.Next)
		require.Equal(t, second.Next, ctl.Why("a")[0].Next)
		pass(2 * time.Hour)
		third := <-seen
		require.Equal(t, controller.Terminal, third.Outcome)
		require.Zero(t, third.Next)
		stop()
		ctl.Add("a", workqueue.Item{})
		synctest.Wait()
		require.Empty(t, seen)
	})
}
