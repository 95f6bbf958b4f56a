package program

import (
	"errors"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/leaderelection"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
)

// Program has the parts that an example is built from.
type Program struct {
	Options
	Client *apiclient.Client
	Log    *zap.Logger
	// Metrics and Registry hold the metrics that the admin server serves.
	Metrics  *metrics.Metrics
	Registry *prometheus.Registry
}

// New returns a program without a client.
func New(o Options, log *zap.Logger) (*Program, error) {
	p := &Program{Options: o, Log: log, Registry: prometheus.NewRegistry()}
	p.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	p.Metrics, err = metrics.New(p.Registry)
	return p, err
}

// Manager returns a new manager. It has an election if Options.Lease is set.
func (p *Program) Manager() (*manager.Manager, error) {
	elector, err := p.elector()
	if err != nil {
		return nil, err
	}
	return manager.New(manager.Options{
		Elector: elector, SyncTimeout: p.SyncTimeout, Logger: p.Log,
		Admin: manager.AdminOptions{Address: p.Admin, Debug: true, Metrics: metrics.Handler(p.Registry)},
	})
}

// elector returns the election, or nil without a lease.
func (p *Program) elector() (manager.Elector, error) {
	if p.Lease == (api.Key{}) {
		return nil, nil
	}
	name := api.FormatKey(p.Lease)
	e, err := leaderelection.New(p.Client, leaderelection.Options{
		Namespace: p.Lease.Namespace, Name: p.Lease.Name, OnSlowPath: p.Metrics.SlowPath(name), Logger: p.Log,
	})
	if err != nil {
		return nil, err
	}
	_, err = p.Metrics.Elector(name, e)
	return e, err
}

// ShowCaches registers the metrics of caches. Their labels name the resources of the caches.
func (p *Program) ShowCaches(all ...metrics.Informer) (err error) {
	for _, c := range all {
		_, failed := p.Metrics.Informer("", c)
		err = errors.Join(err, failed)
	}
	return err
}

// ShowControllers registers the metrics of controllers.
func (p *Program) ShowControllers(all ...metrics.Controller) (err error) {
	for _, c := range all {
		_, failed := p.Metrics.Controller(c)
		err = errors.Join(err, failed)
	}
	return err
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
