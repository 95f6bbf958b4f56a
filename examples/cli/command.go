package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/program"
)

// Command describes the command line of an example.
type Command struct {
	// Name is the name of the program; its messages begin with it.
	Name string
	// Flags adds the flags of this example to the common ones. It may be nil.
	Flags func(*flag.FlagSet)
	// Work does all the work. It returns when ctx ends, or with an error.
	Work func(ctx context.Context, p *program.Program) error
}

// Main runs the command with the arguments of the process, and exits when the command has ended. The first interrupt
// ends the command's context, the second one the process.
func (c Command) Main() {
	var code int
	_ = manager.UntilSignal(context.Background(), func(ctx context.Context) error {
		code = c.Run(ctx, os.Args[1:], os.Stderr) // Run has printed the error
		return nil
	})
	os.Exit(code)
}

// Run does what Main does, without the process: it returns the exit code. That is 0 after an interrupt, 1 after a
// failure and 2 for an invalid command line.
func (c Command) Run(ctx context.Context, args []string, stderr io.Writer) int {
	o, err := c.parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: %s\n", c.Name, OneLine(err))
		return 2
	}
	p, err := o.program(ctx, c.Name, stderr)
	if err == nil {
		err = c.Work(ctx, p)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", c.Name, OneLine(err))
		return 1
	}
	return 0
}

// options are the values of the common flags.
type options struct {
	Options
	connection kubeconfig.Options
	page       bool
	verbose    bool
}

// parse reads the command line. It returns errors and does not print them.
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
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case err == nil && o.Workers < 1:
		err = fmt.Errorf("--workers is %d; it must be at least 1", o.Workers)
	case err == nil && o.page && o.Admin == "":
		err = errors.New("--page needs --admin, whose server serves the page")
	}
	return o, err
}

func (o *options) flags(f *flag.FlagSet) {
	c := &o.connection
	f.StringVar(&c.Path, "kubeconfig", "", "kubeconfig `file` (default: those in $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	f.StringVar(&c.Context, "context", "", "`context` of the kubeconfig (default: the current one)")
	f.StringVar(&c.Server, "server", "", "`URL` of the API server, instead of the kubeconfig's")
	f.StringVar(&c.CAFile, "certificate-authority", "", "`file` with the certificate authorities of the server")
	f.Func("token", "bearer `token`, instead of the kubeconfig's credentials", func(text string) error {
		c.Token = apiclient.NewSecret(text)
		return nil
	})
	f.StringVar(&o.Namespace, "namespace", "", "only this `namespace` (default: all)")
	f.IntVar(&o.Workers, "workers", 5, "objects of each kind that are reconciled at the same time")
	f.DurationVar(&o.SyncTimeout, "sync-timeout", 0, "limit for the first lists (default 2m)")
	f.Func("lease", "`namespace/name` of a Lease; of several replicas, only its holder works (default: no election)", func(text string) (err error) {
		o.Lease, err = parseLease(text)
		return err
	})
	f.StringVar(&o.Admin, "admin", "", "`address` for health checks, /metrics and /debug/controllers, such as 127.0.0.1:8081 (default: none)")
	f.BoolVar(&o.page, "page", false, "serve a live page of the pipeline at /page/ of the admin server, for this machine")
	f.BoolVar(&o.verbose, "v", false, "log every reconcile, and why it ran")
}

func parseLease(text string) (api.Key, error) {
	key, err := api.ParseKey(text)
	if err == nil && key.Namespace == "" {
		err = fmt.Errorf("%q is not namespace/name", text)
	}
	return key, err
}

// program makes the program. It sends no request.
func (o options) program(ctx context.Context, name string, stderr io.Writer) (*program.Program, error) {
	config, _, err := kubeconfig.Load(ctx, o.connection)
	if err != nil {
		return nil, err
	}
	p := o.Apply(program.Options{Name: name + "-controller", Config: config, Logger: NewLogger(stderr, o.verbose)})
	if o.page {
		if p.Manager.Admin.Page, err = livepage.New(livepage.Options{Program: name}); err != nil {
			return nil, err
		}
	}
	return program.New(p)
}

// OneLine returns the text of an error on one line. Joined errors have several lines.
func OneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
