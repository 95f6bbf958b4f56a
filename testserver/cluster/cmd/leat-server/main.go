// Command leat-server serves a Kubernetes API from memory, with the types and rules of Kubernetes and the behaviour of
// a cluster. Clients in every language use it with their defaults.
//
//	leat-server --kubeconfig-out leat.kubeconfig
//	kubectl --kubeconfig leat.kubeconfig create deployment web --image nginx
//
// It has the flags of `leat serve` without --metrics and --page, and those of a cluster; docs/serve.md describes them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/internal/visible"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 for success and after an interrupt, 1 for a failure, 2 for a wrong command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = visible.Writer(stdout), visible.Writer(stderr) // errors quote files and the states in them
	var o serve.Options
	flags := flag.NewFlagSet("leat-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	o.Flags(flags)
	var c clusterFlags
	c.add(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "leat-server serves a Kubernetes API from memory until it is interrupted. Its flags:")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "leat-server: %v (see leat-server --help)\n", err)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "leat-server: it takes no argument, and got %q\n", flags.Args())
		return 2
	}
	if err = c.complete(flags); err == nil {
		err = o.Run(ctx, stdout, serve.Hooks{New: c.backend})
	}
	var usage *serve.UsageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "leat-server: %v\n", err)
		return 2
	default:
		fmt.Fprintf(stderr, "leat-server: %v\n", err)
		return 1
	}
}
