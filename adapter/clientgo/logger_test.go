package clientgo_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/adapter/zapslog"
)

// TestLogrThroughSlog tries the line that package zapslog names for a program that logs with logr.
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
}
