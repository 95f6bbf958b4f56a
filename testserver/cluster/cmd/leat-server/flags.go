package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/leatproject/leat/internal/regularfile"
	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
)

// clusterFlags are the flags that `leat serve` does not have.
type clusterFlags struct {
	behaviour       cluster.Behaviour
	nodes           int
	stages          string
	rbac, envtest   bool
	enable, disable names
	warn            func(error)
}

// names is a flag with a list of names, separated by commas. It may be repeated.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

// Set adds names.
func (n *names) Set(text string) error {
	*n = append(*n, strings.Split(text, ",")...)
	return nil
}

// serviceAccount is the plugin that gives pods a service account and its token.
const serviceAccount = "ServiceAccount"

func (c *clusterFlags) add(f *flag.FlagSet) {
	b := &c.behaviour
	f.IntVar(&c.nodes, "nodes", 0, "`number` of simulated nodes, on which pods are scheduled and run; without nodes, pods stay pending")
	f.StringVar(&c.stages, "stages", "", "`file` with changes of pods and nodes: crashes, evictions, conditions")
	f.BoolVar(&b.Workloads, "workloads", false, "run controllers of Deployments and ReplicaSets")
	f.BoolVar(&b.NoGarbageCollection, "no-garbage-collection", false, "keep objects whose owners are gone")
	f.BoolVar(&b.NoNamespaceDeletion, "no-namespace-deletion", false, "leave deleted namespaces in the phase Terminating, for a controller outside")
	f.BoolVar(&b.NoServiceAccounts, "no-service-accounts", false,
		"create neither the service account \"default\" nor the ConfigMap kube-root-ca.crt of a namespace; pods then get no service account")
	f.BoolVar(&b.NoDisruptionBudgets, "no-disruption-budgets", false, "leave the status of PodDisruptionBudgets to a controller outside")
	f.BoolVar(&c.rbac, "rbac", false, "authorize requests by roles and bindings; the user of --token may do everything; needs --token and --tls")
	f.Var(&c.enable, "enable-admission-plugins", "`names` of admission plugins that are off because of another flag: ServiceAccount")
	f.Var(&c.disable, "disable-admission-plugins", "`names` of admission plugins to switch off, such as LimitRanger,ServiceAccount")
	f.BoolVar(&c.envtest, "envtest", false, "what envtest has: --tls, --rbac, a random --token, and no controllers (--no-...), unless these flags are given")
}

// complete sets the flags that --envtest stands for.
func (c *clusterFlags) complete(f *flag.FlagSet) error {
	if !c.envtest {
		return nil
	}
	given := map[string]bool{}
	f.Visit(func(one *flag.Flag) { given[one.Name] = true })
	for name, value := range map[string]string{
		"tls": "true", "rbac": "true", "token": rand.Text(), "no-garbage-collection": "true", "no-namespace-deletion": "true",
		"no-service-accounts": "true", "no-disruption-budgets": "true",
	} {
		if given[name] {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// backend returns the cluster. With --lenient, namespaces need not exist, so pods need no service account.
func (c *clusterFlags) backend(o testserver.Options, lenient bool) (serve.Backend, error) {
	co := cluster.Options{
		Server: o, Lenient: lenient, Behaviour: c.behaviour, RBAC: c.rbac,
		EnableAdmissionPlugins: c.enable, DisableAdmissionPlugins: c.disable,
	}
	switch {
	case c.nodes < 0:
		return serve.Backend{}, &serve.UsageError{Err: fmt.Errorf("--nodes %d: it is a number that is not negative", c.nodes)}
	case c.nodes > 0:
		co.Behaviour.Nodes = &cluster.Nodes{Count: c.nodes}
	}
	if c.stages != "" {
		file, err := regularfile.Read(c.stages)
		if err != nil {
			return serve.Backend{}, &serve.UsageError{Err: fmt.Errorf("--stages: %w", err)}
		}
		if co.Behaviour.Stages, err = cluster.ParseStages(file); err != nil {
			return serve.Backend{}, &serve.UsageError{Err: fmt.Errorf("--stages %s: %w", c.stages, err)}
		}
		co.Behaviour.Stages.OnError = c.warn
	}
	if !lenient && !c.behaviour.NoServiceAccounts {
		co.EnableAdmissionPlugins = append(co.EnableAdmissionPlugins, serviceAccount)
	}
	if c.rbac && (len(o.Tokens) == 0 || !o.TLS) {
		return serve.Backend{}, &serve.UsageError{Err: errors.New(
			"--rbac: it needs --token and --tls, because kubectl sends the token of its user only over TLS")}
	}
	if len(o.Tokens) > 0 {
		co.Tokens = cluster.Tokens{}
		for token, name := range o.Tokens {
			co.Tokens[token] = cluster.User{Name: name, Groups: []string{"system:masters"}}
		}
	}
	out, err := cluster.New(co)
	if err != nil {
		return serve.Backend{}, &serve.UsageError{Err: err} // the flags are all that may be wrong
	}
	return backendOf(out), nil
}

func backendOf(c *cluster.Cluster) serve.Backend {
	return serve.Backend{Server: c.Server, Serve: c.Serve, Run: c.Run, Fork: func() serve.Backend { return backendOf(c.Fork()) }}
}
