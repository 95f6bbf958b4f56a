package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/program"
)

func main() { command().Main() }

// command returns the command line of the program. It adds the flags of the parts to the common ones.
func command() cli.Command {
	o := options{parts: map[string]bool{partDeployment: true, partReplicaSet: true}}
	return cli.Command{
		Name: "deployment",
		Flags: func(f *flag.FlagSet) {
			f.Func("run", "comma-separated list of deployment, replicaset and kubelet (default: the first two); kubelet is a simulation and only for servers without nodes",
				func(text string) (err error) {
					o.parts, err = readParts(text)
					return err
				})
			f.DurationVar(&o.kubelet.Start, "pod-start", 0, "time until a simulated Pod is ready")
			f.DurationVar(&o.kubelet.Stop, "pod-stop", 0, "time that a simulated Pod takes to terminate")
		},
		Work: func(ctx context.Context, p *program.Program) error {
			o.Program = p
			return serve(ctx, o)
		},
	}
}

// readParts parses the value of --run.
func readParts(text string) (map[string]bool, error) {
	parts := map[string]bool{}
	for _, name := range strings.Split(text, ",") {
		switch name {
		case partDeployment, partReplicaSet, partKubelet:
			parts[name] = true
		default:
			return nil, fmt.Errorf("unknown part %q; the parts are deployment, replicaset and kubelet", name)
		}
	}
	return parts, nil
}
