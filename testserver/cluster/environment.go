package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
)

// Environment is a Cluster with the fields and methods of envtest.Environment in controller-runtime. It serves on a
// port of loopback over TLS, so that other processes can use it too. docs/envtest.md compares both.
type Environment struct {
	// Options are those of the cluster. Their definitions are created besides those of the fields below.
	Options Options

	// CRDs are created during Start, and those in the files and directories of CRDDirectoryPaths.
	CRDs              []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing makes a path of CRDDirectoryPaths that does not exist an error.
	ErrorIfCRDPathMissing bool

	// Config is what Start returned. It is nil before.
	Config *rest.Config
	// Cluster is the running cluster. It is nil before Start.
	Cluster *Cluster

	stop  context.CancelFunc
	ended chan error
}

var (
	errStarted    = errors.New("cluster: the environment was already started")
	errNotStarted = errors.New("cluster: the environment was not started")
)

// Start starts the cluster and returns a configuration for its clients. The clients are not limited: QPS is -1. It
// fails if the environment was started before, if a definition is wrong, or if no port is free.
func (e *Environment) Start() (*rest.Config, error) {
	if e.stop != nil {
		return nil, errStarted
	}
	o := e.Options
	o.CRDs = append(o.CRDs[:len(o.CRDs):len(o.CRDs)], e.CRDs...)
	o.CRDDirectoryPaths = append(o.CRDDirectoryPaths[:len(o.CRDDirectoryPaths):len(o.CRDDirectoryPaths)], e.CRDDirectoryPaths...)
	o.ErrorIfCRDPathMissing = o.ErrorIfCRDPathMissing || e.ErrorIfCRDPathMissing
	o.Server.TLS, o.Server.HTTP2 = true, true
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cluster: listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	e.Cluster, e.stop, e.ended = c, cancel, ended
	e.Config = &rest.Config{
		Host:            "https://" + l.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.Server.CA()},
		BearerToken:     c.token,
		QPS:             -1,
	}
	return e.Config, nil
}

// Stop ends the cluster and returns after all of its goroutines have ended. A second call does nothing.
func (e *Environment) Stop() error {
	if e.stop == nil {
		return errNotStarted
	}
	e.stop()
	if e.ended == nil {
		return nil
	}
	err := <-e.ended
	e.ended = nil
	return err
}

// KubeConfig returns the content of a kubeconfig for kubectl and other processes.
func (e *Environment) KubeConfig() ([]byte, error) {
	if e.Config == nil {
		return nil, errNotStarted
	}
	dir, err := os.MkdirTemp("", "leat")
	if err != nil {
		return nil, fmt.Errorf("cluster: write a kubeconfig: %w", err)
	}
	defer os.RemoveAll(dir)
	path := dir + "/kubeconfig"
	cfg := apiclient.Config{Host: e.Config.Host, TLS: apiclient.TLS{CAData: e.Config.CAData}, BearerToken: apiclient.NewSecret(e.Config.BearerToken)}
	if err := kubeconfig.Write(path, cfg, kubeconfig.DefaultNamespace); err != nil {
		return nil, fmt.Errorf("cluster: write a kubeconfig: %w", err)
	}
	return os.ReadFile(path)
}
