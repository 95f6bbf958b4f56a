package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/manager"
)

// Command is a program as it is called.
type Command struct {
	// Name is the program's, in its messages.
	Name string
	// Flags adds the program's own to those of every program. It may be nil.
	Flags func(*flag.FlagSet)
	// Work does everything, until ctx ends or something fails.
	Work func(ctx context.Context, p *Program) error
}

// Main runs the command with the arguments of the process, ends its context with the first interrupt, and exits with the
// second one or when the command has ended.
func (c Command) Main() {
	var code int
	_ = manager.UntilSignal(context.Background(), func(ctx context.Context) error {
		code = c.Run(ctx, os.Args[1:], os.Stderr) // which has said what is wrong
		return nil
	})
	os.Exit(code)
}

// Run is Main without the process. It returns the exit code: 0 after an interrupt, 1 when something failed, 2 when the
// command line was wrong.
func (c Command) Run(ctx context.Context, args []string, stderr io.Writer) int {
	o, err := c.parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: %s\n", c.Name, OneLine(err))
		return 2
	}
	p, err := o.program(stderr)
	if err == nil {
		err = c.Work(ctx, p)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", c.Name, OneLine(err))
		return 1
	}
	return 0
}

// options are what the command line says to every program.
type options struct {
	Options
	connection kubeconfig.Options
	verbose    bool
}

// parse reads the command line. What is wrong with it is returned and not printed.
func (c Command) parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.flags(f)
	if c.Flags != nil {
		c.Flags(f)
	}
	err = f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		f.Usage()
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("there is no argument %q", f.Arg(0))
	case err == nil && o.Workers < 1:
		err = fmt.Errorf("--workers is %d, and somebody has to work", o.Workers)
	}
	return o, err
}

func (o *options) flags(f *flag.FlagSet) {
	c := &o.connection
	f.StringVar(&c.Path, "kubeconfig", "", "kubeconfig `file` (default: those in $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	f.StringVar(&c.Context, "context", "", "`context` of the kubeconfig (default: the current one)")
	f.StringVar(&c.Server, "server", "", "`URL` of the API server, instead of the kubeconfig's")
	f.StringVar(&c.CAFile, "certificate-authority", "", "`file` with the authorities that may have signed the server's certificate")
	f.Func("token", "bearer `token`, instead of the kubeconfig's credentials", func(text string) error {
		c.Token = apiclient.NewSecret(text)
		return nil
	})
	f.StringVar(&o.Namespace, "namespace", "", "`namespace` to keep to (default: all)")
	f.IntVar(&o.Workers, "workers", 5, "how many objects of each kind are worked on at once")
	f.DurationVar(&o.SyncTimeout, "sync-timeout", 0, "how long the first lists may take (default 2m)")
	f.Func("lease", "Lease, as `namespace/name`, for which several replicas contend; the one that holds it works (default: no contest)", func(text string) (err error) {
		o.Lease, err = parseLease(text)
		return err
	})
	f.StringVar(&o.Admin, "admin", "", "`address` for health checks, /metrics and /debug/controllers, such as 127.0.0.1:8081 (default: none)")
	f.BoolVar(&o.verbose, "v", false, "log every reconcile, and why it ran")
}

func parseLease(text string) (api.Key, error) {
	key, err := api.ParseKey(text)
	if err == nil && key.Namespace == "" {
		err = fmt.Errorf("%q is not namespace/name", text)
	}
	return key, err
}

// program connects to the server.
func (o options) program(stderr io.Writer) (*Program, error) {
	p, err := New(o.Options, NewLogger(stderr, o.verbose))
	if err != nil {
		return nil, err
	}
	c, _, err := kubeconfig.Load(o.connection)
	if err != nil {
		return nil, err
	}
	c.OnRequest = p.Metrics.OnRequest
	p.Client, err = apiclient.New(c)
	return p, err
}

// OneLine is what an error says, on one line: a cause may have several.
func OneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

// Options are the settings of every program.
type Options struct {
	Namespace   string        // empty means all
	Workers     int           // of each kind of controller
	SyncTimeout time.Duration // of the first lists; 0 is the manager's
	Admin       string        // where the admin server listens; empty is nowhere
	Lease       api.Key       // empty means that there is one replica
}
