package zapslog_test

import (
	"log/slog"
	"os"

	"go.uber.org/zap"

	"github.com/leatproject/leat/adapter/zapslog"
)

// withoutTime is an option of the handler, so that the output does not change.
var withoutTime = &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

// leat logs to the handler of a program that uses slog.
func ExampleNewCore() {
	handler := slog.NewTextHandler(os.Stdout, withoutTime)
	log := zap.New(zapslog.NewCore(handler))
	log.Info("synced", zap.String("resource", "pods"), zap.Int("objects", 3))
	// Output: level=INFO msg=synced resource=pods objects=3
}
