package clientgo_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/adapter/zapslog"
)

func TestLogger(t *testing.T) {
	var lines []string
	sink := func(verbosity int) funcr.Options { return funcr.Options{Verbosity: verbosity} }
	logger := func(verbosity int) *zap.Logger {
		return clientgo.Logger(funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, sink(verbosity)))
	}
	take := func() []string {
		defer func() { lines = nil }()
		return lines
	}
	log := logger(0).Named("reflector").With(zap.String("resource", "pods"))
	log.Debug("hidden")
	log.Info("started", zap.Int("attempt", 2))
	log.Warn("slow", zap.NamedError("err", errors.New("late")))
	log.Error("failed", zap.Error(errors.New("no")), zap.Stringer("key", key("a")))
	require.Equal(t, []string{
		`reflector "level"=0 "msg"="started" "resource"="pods" "attempt"=2`,
		`reflector "level"=0 "msg"="slow" "resource"="pods" "err"="late"`,
		`reflector "msg"="failed" "error"="no" "resource"="pods" "key"="default/a"`,
	}, take())
	inlined := zap.Inline(zapcore.ObjectMarshalerFunc(func(e zapcore.ObjectEncoder) error {
		e.AddString("b", "2")
		e.AddInt("a", 1)
		return nil
	}))
	logger(0).With(inlined, zap.Namespace("pod")).Info("nested", zap.String("name", "x"), zap.Error(errors.New("late")))
	require.Equal(t, []string{` "level"=0 "msg"="nested" "a"=1 "b"="2" "pod.name"="x" "pod.err"="late"`}, take())
	logger(4).Debug("shown")
	require.Equal(t, []string{` "level"=4 "msg"="shown"`}, take())
	require.NoError(t, log.Sync())
	require.NotContains(t, fmt.Sprint(take()), "hidden")
}

// TestLogrThroughSlog tries the two lines that package zapslog names for a program whose logger is that of logr.
func TestLogrThroughSlog(t *testing.T) {
	var lines []string
	theirs := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{})
	leat := zap.New(zapslog.NewCore(logr.ToSlogHandler(theirs)))
	leat.Info("synced", zap.Int("objects", 3))
	leat.Error("failed", zap.String("resource", "pods"))
	leat.Debug("hidden")
	require.Equal(t, []string{
		` "level"=0 "msg"="synced" "objects"=3`,
		` "msg"="failed" "error"=null "resource"="pods"`,
	}, lines)

	core, entries := observer.New(zap.InfoLevel)
	log := logr.FromSlogHandler(zapslog.NewHandler(core))
	log.Info("grinding", "sacks", 7)
	log.Error(errors.New("late"), "stopped")
	log.V(1).Info("hidden")
	require.Len(t, entries.All(), 2)
	require.Equal(t, map[string]any{"sacks": int64(7)}, entries.All()[0].ContextMap())
	require.Equal(t, zap.ErrorLevel, entries.All()[1].Level)
	require.Contains(t, fmt.Sprint(entries.All()[1].ContextMap()), "late")
}
