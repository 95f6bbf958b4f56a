package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/cli"
	"github.com/leatproject/leat/examples/webhooks/hooks"
	"github.com/leatproject/leat/examples/webhooks/job"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
)

func main() { command().Main() }

// name is the name of both configurations of webhooks in hooks/webhooks.yaml.
const name = "trainingjob"

// options are the flags of this program.
type options struct {
	install bool    // create or update the definition first
	service api.Key // the Service of the webhooks, if the program makes their certificate
	webhook webhook.Options
}

// command returns the command line of the program. It adds the flags of the webhooks to the common ones.
func command() cli.Command {
	var o options
	return cli.Command{
		Name: "webhooks",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&o.install, "install-crd", false, "create or update the CustomResourceDefinition first")
			f.StringVar(&o.webhook.Address, "listen", ":9443", "`address` of the webhooks")
			f.StringVar(&o.webhook.CertFile, "cert", "tls.crt", "`file` with the certificate; it is read again when it changes")
			f.StringVar(&o.webhook.KeyFile, "key", "tls.key", "`file` with the private key")
			f.Func("service", "`namespace/name` of the Service of the webhooks; the program then makes their certificate instead of reading files", func(value string) (err error) {
				if o.service, err = api.ParseKey(value); err == nil && o.service.Namespace == "" {
					err = fmt.Errorf("%q is not namespace/name", value)
				}
				return err
			})
		},
		Work: func(ctx context.Context, p *program.Program) error { return serve(ctx, p, o) },
	}
}

// serve runs the webhooks until ctx ends or they fail.
func serve(ctx context.Context, p *program.Program, o options) error {
	if o.install {
		if err := job.Install(ctx, p.Client); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	settings := o.webhook
	settings.Logger, settings.Observer = p.Logger, p.Metrics
	if o.service != (api.Key{}) {
		certificates, err := selfsigned.New(selfsigned.Options{
			Client: p.Client, Secret: o.service, Hosts: []string{o.service.Name + "." + o.service.Namespace + ".svc"},
			Mutating: []string{name}, Validating: []string{name}, CustomResources: []string{job.DefinitionName}, Logger: p.Logger,
		})
		if err != nil {
			return err
		}
		settings.CertFile, settings.KeyFile, settings.Certificates = "", "", certificates
	}
	s, err := webhook.New(settings)
	if err != nil {
		return err
	}
	hooks.Add(s, hooks.Rules{}, hooks.Rules{})
	p.Add(s)
	return p.Run(ctx)
}
