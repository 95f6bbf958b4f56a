package harness

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/testserver"
	typed "github.com/leatproject/leat/testserver/cluster"
)

// The values of the flag -server.
const (
	InMemory = "cluster" // testserver/cluster
	Real     = "real"    // etcd and kube-apiserver
)

var which = flag.String("server", InMemory, "the API server: "+InMemory+" or "+Real)

// Options say what runs beside the API server.
type Options struct {
	ControllerManager bool // kube-controller-manager with its default flags, and nodes that run pods
	Bare              bool // no controllers in the test server, as with envtest
}

// Server is a running API server.
type Server struct {
	Config *rest.Config // of an administrator; callers copy it before they change it
	// Kubeconfig is a file with the same user, and Folder one for the files of the tests.
	Kubeconfig, Folder string
}

// Clientset returns a clientset with the defaults of client-go.
func (s *Server) Clientset() kubernetes.Interface { return kubernetes.NewForConfigOrDie(s.Config) }

// Main starts the server that the flag names, calls use, runs the tests, stops everything and returns the exit code.
// Tests run against one server because a start of kube-apiserver takes up to half a minute.
func Main(m *testing.M, o Options, use func(*Server)) int {
	flag.Parse()
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // Endpoints are deprecated; the log would consist of it
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code, err := run(ctx, m, o, use)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func run(ctx context.Context, m *testing.M, o Options, use func(*Server)) (int, error) {
	folder, err := os.MkdirTemp("", "leat-conformance-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	s, stop, err := Start(ctx, o, folder)
	if err != nil {
		return 0, err
	}
	defer stop()
	use(s)
	return m.Run(), nil
}

// IsReal reports whether the flag -server names the real server.
func IsReal() bool { return *which == Real }

// Start starts the server that the flag -server names, with files in folder. The function that it returns stops the
// server and waits for its end.
func Start(ctx context.Context, o Options, folder string) (*Server, func(), error) {
	binaries, err := Binaries()
	if err != nil {
		return nil, nil, err
	}
	config, stop, err := start(ctx, o, binaries)
	if err != nil {
		return nil, nil, err
	}
	config.QPS, config.Burst = -1, 0 // the limit of client-go's defaults would make the tests slow
	s := &Server{Config: config, Folder: folder, Kubeconfig: filepath.Join(folder, "kubeconfig")}
	if err := s.writeKubeconfig(); err != nil {
		stop()
		return nil, nil, err
	}
	if !o.ControllerManager {
		return s, stop, nil
	}
	stopController, err := s.startController(ctx, binaries)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return s, func() {
		stopController()
		stop()
	}, nil
}

// Binaries returns the folder of the programs that make servers builds.
func Binaries() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		binaries := filepath.Join(folder, "e2e", "bin")
		if _, err := os.Stat(filepath.Join(binaries, "kubectl")); err == nil {
			return binaries, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("harness: e2e/bin/kubectl is missing (make servers builds it)")
		}
		folder = parent
	}
}

// start starts the API server, and returns what stops it and waits for its end.
func start(ctx context.Context, o Options, binaries string) (*rest.Config, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	stop := func() {
		cancel()
		<-ended
	}
	switch *which {
	case InMemory:
		config, err := startInMemory(ctx, o, ended)
		if err != nil {
			cancel()
		}
		return config, stop, err
	case Real:
		c := cluster.New(cluster.Options{Binaries: binaries})
		go func() { ended <- c.Run(ctx) }()
		select {
		case <-c.Ready():
		case err := <-ended:
			cancel()
			return nil, nil, err
		}
		return &rest.Config{Host: c.URL(), BearerToken: cluster.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA()}}, stop, nil
	}
	cancel()
	return nil, nil, fmt.Errorf("harness: -server=%s is unknown; it is %s or %s", *which, InMemory, Real)
}

// startInMemory serves the typed test server on a loopback port, because kubectl is a process of its own. Where
// kube-controller-manager runs, the server leaves its work to it.
func startInMemory(ctx context.Context, o Options, ended chan<- error) (*rest.Config, error) {
	options := typed.Options{Tokens: typed.Tokens{
		cluster.AdminToken: {Name: "admin", Groups: []string{"system:masters"}},
	}, Server: testserver.Options{
		HTTP2: true,
	}}
	if o.ControllerManager {
		options.Behaviour = typed.Behaviour{NoGarbageCollection: true, NoNamespaceDeletion: true, Nodes: &typed.Nodes{}}
	}
	if o.Bare {
		options.Behaviour = typed.Behaviour{
			NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true,
		}
	}
	c, err := typed.New(options)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { ended <- c.Serve(ctx, l) }()
	return &rest.Config{
		Host: "https://" + l.Addr().String(), BearerToken: cluster.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.Server.CA()},
	}, nil
}

func (s *Server) writeKubeconfig() error {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: s.Config.Host, CertificateAuthorityData: s.Config.CAData}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		Token: s.Config.BearerToken, ClientCertificateData: s.Config.CertData, ClientKeyData: s.Config.KeyData,
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, s.Kubeconfig)
}

// startController starts kube-controller-manager, and nodes for the real server. The port is the only flag that is not
// a default, because two tests may run at the same time.
func (s *Server) startController(ctx context.Context, binaries string) (func(), error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	client, err := apiclient.New(apiclient.Config{
		Host: s.Config.Host, BearerToken: apiclient.NewSecret(s.Config.BearerToken), TLS: apiclient.TLS{CAData: s.Config.CAData},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	manager, nodes := make(chan error, 1), make(chan error, 1)
	log := filepath.Join(s.Folder, "kube-controller-manager.log")
	go func() {
		err := cluster.RunProgram(ctx, filepath.Join(binaries, "kube-controller-manager"), log,
			"--kubeconfig="+s.Kubeconfig, "--secure-port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
			"--cert-dir="+s.Folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // the tests that wait for it fail
		}
		manager <- err
	}()
	go func() {
		if IsReal() { // the test server simulates nodes
			nodes <- typed.Nodes{}.Run(ctx, client)
			return
		}
		nodes <- nil
	}()
	return func() {
		cancel()
		<-manager
		<-nodes
	}, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
