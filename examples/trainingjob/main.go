package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run is main without the process. It returns the exit code: 0 after an interrupt, 1 when something failed, 2 when the
// command line was wrong.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	o, connection, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "trainingjob: %s\n", oneLine(err))
		return 2
	}
	if o.shown, err = newShown(); err == nil {
		o.client, err = connect(connection, o.shown.OnRequest)
	}
	if err == nil {
		err = serve(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(stderr, "trainingjob: %s\n", oneLine(err))
		return 1
	}
	return 0
}

// parse reads the command line. What is wrong with it is returned and not printed.
func parse(args []string, stderr io.Writer) (options, kubeconfig.Options, error) {
	var o options
	var c kubeconfig.Options
	var verbose bool
	var lease string
	f := flag.NewFlagSet("trainingjob", flag.ContinueOnError)
	f.SetOutput(io.Discard)

	f.StringVar(&c.Path, "kubeconfig", "", "kubeconfig `file` (default: those in $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	f.StringVar(&c.Context, "context", "", "`context` of the kubeconfig (default: the current one)")
	f.StringVar(&c.Server, "server", "", "`URL` of the API server, instead of the kubeconfig's")
	f.StringVar(&c.CAFile, "certificate-authority", "", "`file` with the authorities that may have signed the server's certificate")
	f.Func("token", "bearer `token`, instead of the kubeconfig's credentials", func(text string) error {
		c.Token = apiclient.NewSecret(text)
		return nil
	})
	f.StringVar(&o.namespace, "namespace", "", "`namespace` to keep to (default: all)")
	f.BoolVar(&o.install, "install-crd", false, "first install the CustomResourceDefinition, or bring it up to date")
	f.BoolVar(&o.simulate, "simulate", false, "have the Pods of jobs run without nodes; not for clusters that have some")
	f.IntVar(&o.workers, "workers", 5, "how many jobs are worked on at once")
	f.DurationVar(&o.syncTimeout, "sync-timeout", 0, "how long the first lists may take (default 2m)")
	f.StringVar(&lease, "lease", "", "Lease, as `namespace/name`, for which several replicas contend; the one that holds it works (default: no contest)")
	f.StringVar(&o.admin, "admin", "", "`address` for health checks, /metrics and /debug/controllers, such as 127.0.0.1:8081 (default: none)")
	f.DurationVar(&o.kubelet.Start, "pod-start", 0, "how long a simulated Pod takes to be ready")
	f.DurationVar(&o.kubelet.Stop, "pod-stop", 0, "how long a simulated Pod takes to end")
	f.BoolVar(&verbose, "v", false, "log every reconcile, and why it ran")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		f.Usage()
		return o, c, err
	case err != nil:
		return o, c, err
	case f.NArg() > 0:
		return o, c, fmt.Errorf("there is no argument %q", f.Arg(0))
	case o.workers < 1:
		return o, c, fmt.Errorf("--workers is %d, and somebody has to work", o.workers)
	}
	o.log = newLogger(stderr, verbose)
	o.lease, err = parseLease(lease)
	return o, c, err
}

func parseLease(text string) (api.Key, error) {
	if text == "" {
		return api.Key{}, nil
	}
	key, err := api.ParseKey(text)
	switch {
	case err != nil:
		return key, fmt.Errorf("--lease: %w", err)
	case key.Namespace == "":
		return key, fmt.Errorf("--lease is %q, and not namespace/name", text)
	}
	return key, nil
}

func newLogger(to io.Writer, verbose bool) *zap.Logger {
	level := zapcore.InfoLevel
	if verbose {
		level = zapcore.DebugLevel
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(c), zapcore.Lock(zapcore.AddSync(to)), level))
}

func connect(o kubeconfig.Options, onRequest func(apiclient.Request)) (*apiclient.Client, error) {
	c, _, err := kubeconfig.Load(o)
	if err != nil {
		return nil, err
	}
	c.OnRequest = onRequest
	return apiclient.New(c)
}

// oneLine joins the lines of an error: a cause may have several.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
