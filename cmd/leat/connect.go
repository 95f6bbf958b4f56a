package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// connectFlags adds the flags for the server and the credentials. They have the same names as those of kubectl.
func connectFlags(cmd *cobra.Command, o *kubeconfig.Options) {
	o.Plugins.Stderr = os.Stderr // a plugin may ask the user to log in
	f := cmd.Flags()
	f.StringVar(&o.Path, "kubeconfig", "", "kubeconfig file (default: those in $KUBECONFIG, else ~/.kube/config, else the pod's service account)")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig (default: the current one)")
	f.StringVar(&o.Cluster, "cluster", "", "cluster of the kubeconfig (default: the context's)")
	f.StringVar(&o.User, "user", "", "user of the kubeconfig (default: the context's)")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace (default: the context's)")

	f.StringVarP(&o.Server, "server", "s", "", "URL of the API server, instead of the kubeconfig's")
	f.StringVar(&o.TLSServerName, "tls-server-name", "", "name that the server's certificate must carry (default: the host of its URL)")
	f.StringVar(&o.CAFile, "certificate-authority", "", "file with the authorities that may have signed the server's certificate")
	f.BoolVar(&o.Insecure, "insecure-skip-tls-verify", false, "accept any certificate of the server")
	f.Var(secretFlag{&o.ProxyURL}, "proxy-url", "URL of a proxy: http, https or socks5")
	f.BoolVar(&o.DisableCompression, "disable-compression", false, "do not ask for compressed answers")

	f.Var(secretFlag{&o.Token}, "token", "bearer token, instead of the kubeconfig's credentials")
	f.StringVar(&o.Username, "username", "", "user name for basic authentication, instead of the kubeconfig's credentials")
	f.Var(secretFlag{&o.Password}, "password", "password for basic authentication")
	f.StringVar(&o.CertFile, "client-certificate", "", "file with a client certificate, instead of the kubeconfig's credentials")
	f.StringVar(&o.KeyFile, "client-key", "", "file with the key of the client certificate")

	f.StringVar(&o.Impersonate.UserName, "as", "", "user to impersonate")
	f.StringVar(&o.Impersonate.UID, "as-uid", "", "UID to impersonate")
	f.StringArrayVar(&o.Impersonate.Groups, "as-group", nil, "group to impersonate; may be repeated")
	f.Var(extraFlag{&o.Impersonate.Extra}, "as-user-extra", "key=value, more about the user to impersonate; may be repeated")
}

// secretFlag is a flag whose value is never shown.
type secretFlag struct{ secret *apiclient.Secret }

func (f secretFlag) Set(text string) error {
	*f.secret = apiclient.NewSecret(text)
	return nil
}

func (f secretFlag) String() string { return "" }
func (f secretFlag) Type() string   { return "string" }

// extraFlag collects values by key.
type extraFlag struct{ extra *map[string][]string }

func (f extraFlag) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("write it as key=value")
	}
	if *f.extra == nil {
		*f.extra = map[string][]string{}
	}
	(*f.extra)[key] = append((*f.extra)[key], value)
	return nil
}

func (f extraFlag) String() string { return "" }
func (f extraFlag) Type() string   { return "key=value" }

// connect returns a client and the namespace for the flags. It returns when ctx ends, even while it reads files.
// onRequest may be nil.
func connect(ctx context.Context, o kubeconfig.Options, onRequest func(apiclient.Request)) (*apiclient.Client, string, error) {
	return connectWith(ctx, o, func(cfg *apiclient.Config) { cfg.OnRequest = onRequest })
}

// connectWith is connect with a function that changes the configuration.
func connectWith(ctx context.Context, o kubeconfig.Options, configure func(*apiclient.Config)) (*apiclient.Client, string, error) {
	type connection struct {
		client    *apiclient.Client
		namespace string
	}
	c, err := untilInterrupted(ctx, func() (c connection, err error) {
		cfg, namespace, err := kubeconfig.Load(ctx, o)
		if err != nil {
			return c, err
		}
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 { // an informer would ask for it again and again
			return c, usagef("%q cannot be the name of a namespace: %s", namespace, wrong[0])
		}
		configure(&cfg)
		client, err := apiclient.New(cfg)
		return connection{client, namespace}, err
	})
	return c.client, c.namespace, err
}
