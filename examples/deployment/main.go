package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/leatproject/leat/examples/program"
)

func main() { command().Main() }

// command is the program: what every example has, and which parts of it are to run.
func command() program.Command {
	o := options{parts: map[string]bool{partDeployment: true, partReplicaSet: true}}
	return program.Command{
		Name: "deployment",
		Flags: func(f *flag.FlagSet) {
			f.Func("run", "what to run, of deployment, replicaset and kubelet, with commas (default: the first two); the last is a simulation, and not for clusters that have nodes",
				func(text string) (err error) {
					o.parts, err = readParts(text)
					return err
				})
			f.DurationVar(&o.kubelet.Start, "pod-start", 0, "how long a simulated Pod takes to be ready")
			f.DurationVar(&o.kubelet.Stop, "pod-stop", 0, "how long a simulated Pod takes to end")
		},
		Work: func(ctx context.Context, p *program.Program) error {
			o.Program = p
			return serve(ctx, o)
		},
	}
}

// readParts reads the names of what is to run.
func readParts(text string) (map[string]bool, error) {
	parts := map[string]bool{}
	for _, name := range strings.Split(text, ",") {
		switch name {
		case partDeployment, partReplicaSet, partKubelet:
			parts[name] = true
		default:
			return nil, fmt.Errorf("there is no %q; it is one of deployment, replicaset and kubelet, or more of them with commas", name)
		}
	}
	return parts, nil
}
