package clientgo_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/adapter/zapslog"
)

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
