package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/manager"
)

// replicaVariable makes the program run as a replica. Its value is a replicaConfig in JSON.
const replicaVariable = "LEAT_FLEET_REPLICA"

type replicaConfig struct {
	Server, Kubeconfig, Namespace, Identity string
	Kubelet, Page                           bool
}

// options are the flags.
type options struct {
	replicas, deployments         int
	kill, join, rollout, duration time.Duration
	kubelet, page                 bool
	kubeconfig, namespace, server string
}

func main() {
	err := manager.UntilSignal(context.Background(), run)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if text := os.Getenv(replicaVariable); text != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent process
			os.Exit(1)
		}()
		var r replicaConfig
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("%s: %w", replicaVariable, err)
		}
		config, err := connection(ctx, r.Server, r.Kubeconfig)
		if err != nil {
			return err
		}
		return runReplica(ctx, config, r)
	}
	o, err := parse(os.Args[1:], os.Stdout)
	if err != nil {
		return err
	}
	return show(ctx, o, os.Stdout)
}

// parse reads the flags. It returns flag.ErrHelp after --help.
func parse(args []string, help io.Writer) (o options, err error) {
	f := flag.NewFlagSet("fleet", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.replicas, "replicas", 5, "number of replicas at the start, 1 to 50")
	f.IntVar(&o.deployments, "deployments", 500, "number of Deployments, ten in each namespace")
	f.DurationVar(&o.kill, "kill", 0, "kill a replica after this time; 0 means never")
	f.DurationVar(&o.join, "join", 0, "start one more replica after this time; 0 means never")
	f.DurationVar(&o.rollout, "rollout", 0, "give all Deployments a new image after this time; 0 means never")
	f.BoolVar(&o.kubelet, "kubelet", true, "simulate the kubelet, for a server without nodes")
	f.BoolVar(&o.page, "page", false, "give each replica a live page on a free port of loopback, and print its URL")
	f.DurationVar(&o.duration, "for", 0, "end after this time; 0 means at a signal")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of an API server; empty means an API server in memory")
	f.StringVar(&o.namespace, "namespace", "default", "namespace of the Leases")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(help, "fleet runs replicas of the deployment example, and shows which of them has which namespaces.")
		f.SetOutput(help)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; fleet has only flags, see --help", f.Arg(0))
	case o.replicas < 1 || o.replicas > 50:
		return o, fmt.Errorf("--replicas is %d; it must be 1 to 50", o.replicas)
	case o.deployments < 0:
		return o, fmt.Errorf("--deployments is %d; it must not be negative", o.deployments)
	case o.kill < 0 || o.join < 0 || o.rollout < 0 || o.duration < 0:
		return o, errors.New("--kill, --join, --rollout and --for must not be negative")
	case o.namespace == "":
		return o, errors.New("--namespace is empty")
	}
	return o, nil
}

// connection returns the configuration of a client of the server, or of the kubeconfig if the server is empty.
func connection(ctx context.Context, server, path string) (apiclient.Config, error) {
	if server != "" {
		return apiclient.Config{Host: server}, nil
	}
	config, _, err := kubeconfig.Load(ctx, kubeconfig.Options{Path: path})
	return config, err
}
