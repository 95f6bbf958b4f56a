package main

import (
	"context"
	"flag"

	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/program"
)

func main() { command().Main() }

// command returns the command line of the program. It adds the flags of training jobs to the common ones.
func command() cli.Command {
	var o options
	return cli.Command{
		Name: name,
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&o.install, "install-crd", false, "create or update the CustomResourceDefinition first")
			f.BoolVar(&o.simulate, "simulate", false, "simulate nodes that run the Pods; only for servers without nodes")
			f.StringVar(&o.webhooks.Address, "webhooks", "", "`address` for the webhooks, such as :9443 (default: none); see README.md")
			f.StringVar(&o.webhooks.CertFile, "webhook-cert", "tls.crt", "`file` with the certificate of the webhooks; it is read again when it changes")
			f.StringVar(&o.webhooks.KeyFile, "webhook-key", "tls.key", "`file` with the private key of the webhooks")
			f.Func("webhook-service", "`namespace/name` of the Service of the webhooks; the program then makes their certificate instead of reading files", func(value string) (err error) {
				o.service, err = serviceKey(value)
				return err
			})
			f.DurationVar(&o.kubelet.Start, "pod-start", 0, "time until a simulated Pod is ready")
			f.DurationVar(&o.kubelet.Stop, "pod-stop", 0, "time that a simulated Pod takes to terminate")
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
