package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// listen runs a controller that watches a source, and returns it with its reports.
func listen(t *testing.T, s controller.Source[string]) (ctl *controller.Controller[string], seen *reports, stop func() error) {
	seen = new(reports)
	ctl = traced(controller.New("test", reconcileFunc(succeed), controller.Options{}), seen.add)
	ctl.Watch(s)
	stop = start(t, ctl.Run)
	<-ctl.Synced()
	return ctl, seen, stop
}

// keys waits until all goroutines are idle and returns the keys that were reconciled since the last call.
func (r *reports) keys() string {
	var keys []string
	for _, report := range r.take() {
		keys = append(keys, report.Key)
	}
	return strings.Join(keys, " ")
}

func TestSourceFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		source := controller.SourceFunc("clock", func(ctx context.Context, sink *controller.Sink[string]) error {
			calls.Add(1)
			tick := time.NewTicker(time.Minute)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
					sink.Add(fmt.Sprint(i), workqueue.Item{})
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		ctl, first, _ := listen(t, source)
		_, second, _ := listen(t, source)
		require.Equal(t, "clock", ctl.Stats().Sources[0].Name)
		pass(2 * time.Minute)
		require.Equal(t, "0 1", first.keys())
		require.Equal(t, "0 1", second.keys())
		require.EqualValues(t, 2, calls.Load())
		why := ctl.Why("1")
		require.Len(t, why, 1)
		require.Equal(t, "clock", why[0].Causes[0].Source)
		require.Equal(t, "request", why[0].Causes[0].Event)
		require.Equal(t, why[0].Started, why[0].Causes[0].At)
	})
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("the clock stands still")
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		ctl.Watch(controller.SourceFunc("clock", func(context.Context, *controller.Sink[string]) error { return failure }))
		require.ErrorIs(t, ctl.Run(t.Context()), failure)
	})
}
