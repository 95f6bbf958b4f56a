// Command leat-server serves a Kubernetes API from memory, with the types and rules of Kubernetes and the behaviour of
// a cluster. Clients in every language use it with their defaults.
//
//	leat-server --kubeconfig-out leat.kubeconfig
//	kubectl --kubeconfig leat.kubeconfig create deployment web --image nginx
//
// It is also etcd and kube-apiserver for the tools that start these programs, such as envtest of controller-runtime:
//
//	export KUBEBUILDER_ASSETS=$(leat-server assets)
//	go test ./...
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
	"github.com/leatproject/leat/testserver/cluster/internal/controlplane"
	"github.com/leatproject/leat/testserver/cluster/internal/controlplane/front"
)

func main() {
	if front.IsEtcd() { // front runs kube-apiserver
		os.Exit(front.Main(controlplane.RunEtcd))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const assetsHelp = "leat-server assets [DIR] makes a folder for KUBEBUILDER_ASSETS, and prints its path."

// assets prints the folder with the programs of a control plane.
func assets(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("assets", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, assetsHelp)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "leat-server: assets: %v (see leat-server assets --help)\n", err)
		return 2
	case flags.NArg() > 1:
		fmt.Fprintf(stderr, "leat-server: assets takes one folder, and got %q\n", flags.Args())
		return 2
	}
	folder, err := controlplane.Folder(flags.Arg(0))
	if err != nil {
		fmt.Fprintf(stderr, "leat-server: assets: %v\n", err)
		return 1
	}
	fmt.Fprintln(stdout, folder)
	return 0
}

// run returns the exit code: 0 for success and after an interrupt, 1 for a failure, 2 for a wrong command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "assets" {
		return assets(args[1:], stdout, visible.Writer(stderr))
	}
	stdout, stderr = visible.Writer(stdout), visible.Writer(stderr) // errors quote files and the states in them
	var o serve.Options
	flags := flag.NewFlagSet("leat-server", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	o.Flags(flags)
	c := clusterFlags{warn: func(err error) { fmt.Fprintf(stderr, "leat-server: %v\n", err) }}
	c.add(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "leat-server serves a Kubernetes API from memory until it is interrupted.")
		fmt.Fprintln(stdout, assetsHelp)
		fmt.Fprintln(stdout, "Flags of leat-server:")
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
