package main

import (
	"github.com/spf13/cobra"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// connectFlags say which server to talk to, as kubectl's do.
func connectFlags(cmd *cobra.Command, o *kubeconfig.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Path, "kubeconfig", "", "kubeconfig file (default: those in $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig (default: the current one)")
	f.StringVar(&o.Server, "server", "", "URL of the API server, instead of the kubeconfig's")
	f.Var(tokenFlag{&o.Token}, "token", "bearer token, instead of the kubeconfig's credentials")
	f.StringVar(&o.CAFile, "certificate-authority", "", "file with the authorities that may have signed the server's certificate")
	f.BoolVar(&o.Insecure, "insecure-skip-tls-verify", false, "accept any certificate of the server")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace (default: the context's)")
}

// tokenFlag is a flag whose value is never shown.
type tokenFlag struct{ token *apiclient.Secret }

func (f tokenFlag) Set(text string) error {
	*f.token = apiclient.NewSecret(text)
	return nil
}

func (f tokenFlag) String() string { return "" }
func (f tokenFlag) Type() string   { return "string" }

// connect makes a client of what the flags say, and tells the namespace.
func connect(o kubeconfig.Options) (*apiclient.Client, string, error) {
	cfg, namespace, err := kubeconfig.Load(o)
	if err != nil {
		return nil, "", err
	}
	client, err := apiclient.New(cfg)
	return client, namespace, err
}
