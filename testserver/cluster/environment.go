package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Environment is a Cluster with the fields and methods of envtest.Environment in controller-runtime. It serves on a
// port of loopback over TLS, so that other processes can use it too. As in envtest, requests are authorized by roles
// and bindings, and no controllers run. docs/envtest.md compares both. Its methods must not be called concurrently.
type Environment struct {
	// Options are those of the cluster. Their definitions are created besides those of the fields below.
	Options Options
	// Controllers runs the controllers that Options.Behaviour does not switch off. Otherwise, as in envtest, owners
	// leave their dependents, deleted namespaces keep the phase Terminating, and neither service accounts nor the
	// status of disruption budgets are written. Options.Behaviour.Workloads and Nodes have their effect in any case.
	Controllers bool
	// AlwaysAllow lets every user do everything. Otherwise, Start sets Options.RBAC.
	AlwaysAllow bool

	// CRDs are created during Start, and those in the files and directories of CRDDirectoryPaths. After Start, CRDs are
	// all definitions that it created.
	CRDs              []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing makes a path of a definition that does not exist an error.
	ErrorIfCRDPathMissing bool
	// CRDInstallOptions has more definitions.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions has webhook configurations, and says where the test serves webhooks.
	WebhookInstallOptions WebhookInstallOptions
	// Scheme says which definitions get a conversion webhook. These are the definitions whose types convert as in
	// controller-runtime: one type has the method Hub, and all others have ConvertTo and ConvertFrom. Nil means
	// scheme.Scheme of client-go.
	Scheme *runtime.Scheme

	// UseExistingCluster lets Start create no cluster. Definitions and webhook configurations are installed in the
	// cluster of Config, or of the usual kubeconfig if Config is nil. Nil means what the environment variable
	// USE_EXISTING_CLUSTER says: true, or anything else.
	UseExistingCluster *bool
	// BinaryAssetsDirectory has no effect, because the cluster needs no binaries. It is here so that the suites that
	// kubebuilder generates compile.
	BinaryAssetsDirectory string

	// Config is what Start returned. It is nil before the first Start, unless it names an existing cluster.
	Config *rest.Config
	// KubeConfig is a kubeconfig with the content of Config, for kubectl and other processes. Start sets it.
	KubeConfig []byte
	// Cluster is the cluster of the last Start. It is nil before, and if the cluster existed before.
	Cluster *Cluster

	started, stopped bool // only one of them is set, and none before the first Start
	// undo has what Stop and a failed Start do, in reverse order.
	undo []func() error
	last *startedFields // of the last Start that succeeded; nil before
}

// startedFields are the fields of an environment before and after a Start.
type startedFields struct{ before, after Environment }

// CRDInstallOptions are definitions that Start installs.
type CRDInstallOptions struct {
	// Paths are files and directories. Subdirectories are not read.
	Paths []string
	CRDs  []*apiextensionsv1.CustomResourceDefinition
	// ErrorIfPathMissing makes a path of a definition that does not exist an error.
	ErrorIfPathMissing bool
	// CleanUpAfterUse lets Stop delete the definitions that Start created in an existing cluster, with all objects of
	// their kinds.
	CleanUpAfterUse bool
	// MaxTime is how long Start waits until an existing cluster serves the definitions, and PollInterval how often it
	// looks. Zero means 10 s and 100 ms.
	MaxTime, PollInterval time.Duration
}

var (
	errStarted    = errors.New("cluster: the environment is running; call Stop before another Start")
	errNotStarted = errors.New("cluster: the environment was not started")
	errStopped    = errors.New("cluster: the environment was stopped")
)

// Start starts the cluster and returns a configuration for its clients. The clients are not limited: QPS is -1, unless
// Config was set. Start fails if the environment is running, if a definition or a webhook configuration is wrong, or if
// a port is not free. It then removes what it has made, or its error says what is left, and Start may be called again.
//
// Start after Stop creates a new cluster, which has nothing of the earlier one. The fields that the earlier Start set,
// such as LocalServingPort, first get their values from before it, except those that the test has changed since.
func (e *Environment) Start() (*rest.Config, error) {
	if e.started {
		return nil, errStarted
	}
	e.reset()
	before := *e
	if err := e.start(); err != nil {
		err = errors.Join(err, e.end())
		*e = before
		return nil, err
	}
	e.last = &startedFields{before, *e}
	e.started, e.stopped = true, false
	return e.Config, nil
}

// reset gives the fields that the last Start set their values from before it.
func (e *Environment) reset() {
	if e.last == nil {
		return
	}
	before, after := &e.last.before, &e.last.after
	e.Cluster, e.KubeConfig, e.last = nil, nil, nil
	resetField(&e.Config, before.Config, after.Config)
	resetField(&e.CRDs, before.CRDs, after.CRDs)
	o, had, got := &e.WebhookInstallOptions, &before.WebhookInstallOptions, &after.WebhookInstallOptions
	resetField(&o.MutatingWebhooks, had.MutatingWebhooks, got.MutatingWebhooks)
	resetField(&o.ValidatingWebhooks, had.ValidatingWebhooks, got.ValidatingWebhooks)
	resetField(&o.LocalServingHost, had.LocalServingHost, got.LocalServingHost)
	resetField(&o.LocalServingPort, had.LocalServingPort, got.LocalServingPort)
	resetField(&o.LocalServingCertDir, had.LocalServingCertDir, got.LocalServingCertDir)
	resetField(&o.LocalServingCAData, had.LocalServingCAData, got.LocalServingCAData)
}

// resetField sets a field to its value from before Start, unless it has changed after Start.
func resetField[T any](field *T, before, after T) {
	if reflect.DeepEqual(*field, after) {
		*field = before
	}
}

func (e *Environment) start() error {
	crds, configurations, err := e.manifests()
	if err != nil {
		return err
	}
	if err := e.WebhookInstallOptions.prepare(); err != nil {
		return err
	}
	e.undo = append(e.undo, e.WebhookInstallOptions.cleanUp)
	e.redirect(crds, configurations)
	if e.existing() {
		err = e.useExisting(crds, configurations)
	} else {
		err = e.startCluster(append(crds, configurations...))
	}
	if err != nil {
		return err
	}
	e.KubeConfig, err = kubeconfigOf(e.Config)
	return err
}

// startCluster starts a cluster with some objects.
func (e *Environment) startCluster(objects []manifest) error {
	o := e.Options
	o.CRDs, o.CRDDirectoryPaths = nil, nil // they are among the objects
	o.RBAC = o.RBAC || !e.AlwaysAllow
	if !e.Controllers {
		o.Behaviour = o.Behaviour.withoutControllers()
	}
	o.Server.TLS, o.Server.HTTP2 = true, true
	c, err := New(o)
	if err != nil {
		return err
	}
	if err := c.install(objects); err != nil {
		return err
	}
	return e.serve(c)
}

// serve serves a cluster on a free port of loopback.
func (e *Environment) serve(c *Cluster) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cluster: listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	e.undo = append(e.undo, func() error {
		cancel()
		return <-ended
	})
	e.Cluster = c
	e.Config = &rest.Config{
		Host:            "https://" + l.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.Server.CA()},
		BearerToken:     c.token,
		QPS:             -1,
	}
	return nil
}

// Fork returns a running environment with a fork of the cluster, on a port of its own; see Cluster.Fork. The fork ends
// with the test. Its webhook configurations name the webhooks of this environment. This environment need not run. In a
// testing/synctest bubble, use Cluster.StartFork. The test fails before Start, and with an existing cluster.
func (e *Environment) Fork(t testing.TB) *Environment {
	t.Helper()
	if e.Cluster == nil {
		t.Fatal("cluster: an environment without a cluster of its own cannot be forked")
	}
	out := *e
	out.undo, out.last = nil, nil
	err := out.serve(e.Cluster.Fork())
	if err == nil {
		out.started, out.stopped = true, false
		t.Cleanup(func() {
			if err := out.Stop(); err != nil {
				t.Errorf("cluster: stop a fork: %v", err)
			}
		})
		out.KubeConfig, err = kubeconfigOf(out.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

// existing reports whether the environment uses a cluster that exists.
func (e *Environment) existing() bool {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster
	}
	return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true")
}

// Stop ends the cluster and returns after all of its goroutines have ended. It deletes the certificate of the webhooks,
// and removes the webhook configurations from an existing cluster. It does nothing if the environment is not running:
// before Start, after a Start that failed, and after Stop.
func (e *Environment) Stop() error {
	if !e.started {
		return nil
	}
	err := e.end()
	e.started, e.stopped = false, true
	return err
}

// end undoes what Start did.
func (e *Environment) end() error {
	var errs []error
	for len(e.undo) > 0 {
		last := len(e.undo) - 1
		errs = append(errs, e.undo[last]())
		e.undo = e.undo[:last]
	}
	return errors.Join(errs...)
}

// manifests returns copies of the objects that Start creates. Definitions come first, because other objects may be of
// their kinds.
func (e *Environment) manifests() (crds, configurations []manifest, err error) {
	all := e.Options
	all.CRDs = slices.Concat(all.CRDs, e.CRDs, e.CRDInstallOptions.CRDs)
	all.CRDDirectoryPaths = slices.Concat(all.CRDDirectoryPaths, e.CRDDirectoryPaths, e.CRDInstallOptions.Paths)
	all.ErrorIfCRDPathMissing = all.ErrorIfCRDPathMissing || e.ErrorIfCRDPathMissing || e.CRDInstallOptions.ErrorIfPathMissing
	if crds, err = all.definitions(); err != nil {
		return nil, nil, err
	}
	e.CRDs = nil
	for i, m := range crds {
		d := m.object.(*apiextensionsv1.CustomResourceDefinition).DeepCopy()
		crds[i].object = d
		e.CRDs = append(e.CRDs, d)
	}
	configurations, err = e.WebhookInstallOptions.manifests()
	return crds, configurations, err
}
