package cli

import (
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
)

// Options are the settings that all examples have.
type Options struct {
	Namespace   string        // empty means all namespaces
	Workers     int           // of each controller
	SyncTimeout time.Duration // of the first lists; 0 means the manager's default
	Admin       string        // address of the admin server; empty means no admin server
	Lease       api.Key       // empty means no election
}

// Apply returns the options of a program with these settings.
func (o Options) Apply(to program.Options) program.Options {
	to.Namespace, to.Lease = o.Namespace, o.Lease
	to.Controller.Workers, to.Controller.CacheSyncTimeout = o.Workers, o.SyncTimeout
	to.Manager.SyncTimeout = o.SyncTimeout
	to.Manager.Admin = manager.AdminOptions{Address: o.Admin, Debug: true}
	return to
}

// NewLogger returns a logger that writes one line for each entry; verbose includes every reconcile.
func NewLogger(to io.Writer, verbose bool) *zap.Logger {
	level := zapcore.InfoLevel
	if verbose {
		level = zapcore.DebugLevel
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(c), zapcore.Lock(zapcore.AddSync(to)), level))
}
