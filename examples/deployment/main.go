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
		fmt.Fprintf(stderr, "deployment: %s\n", oneLine(err))
		return 2
	}
	o.shown, err = newInstruments()
	if err == nil {
		o.client, err = connect(connection, o.shown.OnRequest)
	}
	if err == nil {
		err = serve(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(stderr, "deployment: %s\n", oneLine(err))
		return 1
	}
	return 0
}

// parse reads the command line. What is wrong with it is returned and not printed.
func parse(args []string, stderr io.Writer) (options, kubeconfig.Options, error) {
	var o options
	var c kubeconfig.Options
	var parts string
	var verbose bool
	f := flag.NewFlagSet("deployment", flag.ContinueOnError)
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
	f.StringVar(&parts, "run", "deployment,replicaset", "what to run, of deployment, replicaset and kubelet; the last is a simulation, and not for clusters that have nodes")
	f.IntVar(&o.workers, "workers", 5, "how many objects of each kind are worked on at once")
	f.DurationVar(&o.syncTimeout, "sync-timeout", 0, "how long the first lists may take (default 2m)")
	f.StringVar(&o.lease, "lease", "", "Lease, as `namespace/name`, for which several replicas contend; the one that holds it works (default: no contest)")
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
	o.parts, err = readParts(parts)
	return o, c, err
}

// readParts reads the names of what is to run.
func readParts(text string) (map[string]bool, error) {
	parts := map[string]bool{}
	for _, name := range strings.Split(text, ",") {
		switch name {
		case partDeployment, partReplicaSet, partKubelet:
			parts[name] = true
		default:
			return nil, fmt.Errorf("--run: there is no %q; it is one of deployment, replicaset and kubelet, or more of them with commas", name)
		}
	}
	return parts, nil
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
