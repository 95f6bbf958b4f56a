package main

import (
	"context"
	"flag"

	"github.com/leatproject/leat/examples/program"
)

func main() { command().Main() }

// command is the program: what every example has, and what is special about jobs.
func command() program.Command {
	var o options
	return program.Command{
		Name: name,
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&o.install, "install-crd", false, "first install the CustomResourceDefinition, or bring it up to date")
			f.BoolVar(&o.simulate, "simulate", false, "have the Pods of jobs run without nodes; not for clusters that have some")
			f.DurationVar(&o.kubelet.Start, "pod-start", 0, "how long a simulated Pod takes to be ready")
			f.DurationVar(&o.kubelet.Stop, "pod-stop", 0, "how long a simulated Pod takes to end")
		},
		Work: func(ctx context.Context, p *program.Program) (err error) {
			o.Program = p
			if o.counts, err = countJobs(p.Registry); err != nil {
				return err
			}
			return serve(ctx, o)
		},
	}
}
