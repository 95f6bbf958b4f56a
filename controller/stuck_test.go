package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/workqueue"
)

// TestStuckReconcileIsSeen has two reconciles that take too long.
func TestStuckReconcileIsSeen(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		want  []string // the log entries, with their times
	}{
		{"default", 0, []string{"a 5m0s", "b 5m0s", "a 10m0s", "b 10m0s", "a 20m0s"}},
		{"chosen", 7 * time.Minute, []string{"a 7m0s", "b 7m0s", "a 14m0s"}},
		{"never", -1, nil},
	} {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.WarnLevel)
			leave := make(chan struct{})
			ctl := controller.New("test", reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
				<-leave
				return controller.Result{}, nil
			}), controller.Options{Workers: 2, Logger: zap.New(core), Tuning: controller.Tuning{StuckAfter: c.after}})
			start(t, ctl.Run)
			pass(3 * time.Minute)
			ctl.Add("a", because("first"))
			pass(9 * time.Minute)
			ctl.Add("b", because("second"))
			pass(13 * time.Minute)
			require.Equal(t, 22*time.Minute, ctl.Stats().Queue.LongestRunning)
			close(leave)
			pass(time.Hour)
			require.ElementsMatch(t, c.want, stuck(logs))
			for _, entry := range logs.All() {
				require.Equal(t, zapcore.WarnLevel, entry.Level)
				require.Len(t, entry.ContextMap()["causes"], 1)
				require.NotEmpty(t, entry.ContextMap()["reconcileID"])
			}
		})
	}
}

func stuck(logs *observer.ObservedLogs) (lines []string) {
	for _, entry := range logs.FilterMessage("reconcile takes long").All() {
		fields := entry.ContextMap()
		lines = append(lines, fields["key"].(string)+" "+fields["took"].(time.Duration).String())
	}
	return lines
}

// TestEndLogsWhatItWaitsFor ends a controller whose reconciler ignores its context.
func TestEndLogsWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		ctl := controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			linger(time.Hour)
			return controller.Result{}, nil
		}), controller.Options{Logger: zap.New(core)})
		stop := start(t, ctl.Run)
		ctl.Add("a", workqueue.Item{})
		pass(time.Minute)
		require.NoError(t, stop())
		waiting := logs.FilterMessage("waiting for a reconcile").All()
		require.Len(t, waiting, 1)
		require.Equal(t, "a", waiting[0].ContextMap()["key"])
		require.Equal(t, time.Minute, waiting[0].ContextMap()["took"])
	})
}
