package runner

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/bench/measure"
	"github.com/leatproject/leat/e2e/cluster"
)

// apiServer is a running API server and the client that drives it. The client is part of this process, and is the same
// for every server.
type apiServer struct {
	url       string
	client    *http.Client
	another   func() *http.Client // a client with a connection of its own
	processes []int               // of the server
	took      time.Duration       // from the start of the process to the first answer
	stop      func() error
}

// cpu returns the processor time of the server's processes since their start.
func (s *apiServer) cpu() (sum time.Duration, err error) {
	for _, pid := range s.processes {
		used, err := measure.CPU(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// rss returns the resident memory of the server's processes, in MB.
func (s *apiServer) rss() (sum float64, err error) {
	for _, pid := range s.processes {
		size, err := measure.RSS(pid)
		if err != nil {
			return 0, err
		}
		sum += float64(size) / 1e6
	}
	return sum, nil
}

// newAPIClient returns a client that trusts a certificate for a name. Over TLS it uses HTTP/2. It accepts compressed
// answers, as clients do by default.
func newAPIClient(ca []byte, name, token string) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: withToken{token, &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: realWriters,
	}}}
}

type withToken struct {
	token string
	next  *http.Transport
}

// RoundTrip sends a request with the token.
func (w withToken) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	if w.token != "" {
		q.Header.Set("Authorization", "Bearer "+w.token)
	}
	return w.next.RoundTrip(q)
}

// startOwn starts one of leat's servers, with its defaults and the flags.
func (r *run) startOwn(ctx context.Context, program string, flags ...string) (*apiServer, error) {
	config := filepath.Join(r.Binaries, program+".kubeconfig")
	args := append([]string{"--listen", "127.0.0.1:0", "--kubeconfig-out", config}, flags...)
	if program == untyped {
		args = append([]string{"serve"}, args...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(r.Binaries, program), args...)
	cmd.Env = environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() error {
		_ = cmd.Process.Kill() // it has no state that anyone needs
		_ = cmd.Wait()
		return nil
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "serving on ")
	if err != nil || !found {
		return nil, errors.Join(fmt.Errorf("runner: %s said %q", program, line), err, stop())
	}
	cfg, _, err := kubeconfig.Load(ctx, kubeconfig.Options{Path: config})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	another := func() *http.Client { return newAPIClient(cfg.TLS.CAData, cfg.TLS.ServerName, "") }
	s := &apiServer{url: url, client: another(), another: another, processes: []int{cmd.Process.Pid}, stop: stop}
	if _, err := s.do(ctx, http.MethodGet, "/readyz", nil); err != nil {
		return nil, errors.Join(err, stop())
	}
	s.took = time.Since(began)
	return s, nil
}

// startKube starts etcd and kube-apiserver.
func (r *run) startKube(ctx context.Context) (c *cluster.Cluster, stop func() error, err error) {
	c = cluster.New(cluster.Options{Binaries: r.Real})
	ended, stop := background(ctx, c.Run)
	select {
	case <-c.Ready():
		return c, stop, nil
	case err := <-ended:
		return nil, nil, errors.Join(err, stop())
	}
}

// startReal starts etcd and kube-apiserver with a client.
func (r *run) startReal(ctx context.Context) (*apiServer, error) {
	began := time.Now()
	c, stop, err := r.startKube(ctx)
	if err != nil {
		return nil, err
	}
	another := func() *http.Client { return newAPIClient(c.CA(), "", cluster.AdminToken) }
	return &apiServer{url: c.URL(), client: another(), another: another, processes: c.Processes(), took: time.Since(began), stop: stop}, nil
}
