package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// protocol names the agreement of both programs. Programs of other builds may run together if it is the same.
const protocol = "leat-server-1"

const servePath = "/leat-server/serve"

// effectiveOfEtcd are the flags of etcd that have an effect, or whose effect is what happens anyway.
var effectiveOfEtcd = []string{
	"name", "data-dir", "listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls", "initial-cluster",
	"initial-cluster-state", "initial-cluster-token", "unsafe-no-fsync", "cert-file", "key-file", "client-cert-auth", "trusted-ca-file",
	"logger", "log-level", "log-outputs",
}

// RunEtcd runs the program etcd, and returns its exit code: 0 after ctx has ended, 1 for a failure, 2 for a wrong flag.
func RunEtcd(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	args = slices.Clone(args)
	for i, arg := range args {
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			args[i] = "-" + arg // etcd accepts one dash too
		}
	}
	f, err := parse("etcd", etcdFlags, args)
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unknown):
		fmt.Fprintf(stderr, "flag provided but not defined: -%s\n", unknown.GetSpecifiedName())
		return 2
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, usage(f, "etcd"))
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	case truth(f, "version", false):
		fmt.Fprintln(stdout, "etcd Version: "+etcdVersion)
		return 0
	case f.NArg() > 0:
		fmt.Fprintf(stderr, "etcd: %q is not a valid flag\n", f.Arg(0))
		return 1
	}
	notice(stderr, "etcd", without(f, effectiveOfEtcd))
	if err := runEtcd(ctx, f); err != nil {
		fmt.Fprintf(stderr, "etcd: %v\n", err)
		return 1
	}
	return 0
}

const etcdVersion = "3.7.0"

// notice names flags without an effect.
func notice(stderr io.Writer, name string, flags []string) {
	if len(flags) > 0 {
		fmt.Fprintf(stderr, "%s: flags without an effect in leat-server: %s\n", name, strings.Join(flags, " "))
	}
}

func runEtcd(ctx context.Context, f *pflag.FlagSet) error {
	folder := last(f, "data-dir", last(f, "name", "default")+".etcd")
	if _, err := os.Stat(filepath.Join(folder, "member")); err == nil {
		return fmt.Errorf("--data-dir %s: it contains the data of a real etcd, which leat-server cannot read", folder)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	urls := listed(f, "listen-client-urls")
	if len(urls) == 0 {
		urls = []string{"http://localhost:2379"}
	}
	e := &etcd{host: newHost(folder)}
	var all []net.Listener
	defer func() {
		for _, l := range all {
			_ = l.Close() // an earlier error says more
		}
	}()
	for _, text := range urls {
		l, err := listenAt(text, f)
		if err != nil {
			return fmt.Errorf("--listen-client-urls %s: %w", text, err)
		}
		all = append(all, l)
	}
	group, ctx := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler: e.handler(ctx), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
	}
	for _, l := range all {
		group.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	err := group.Wait()
	e.serving.wait()
	return errors.Join(err, e.host.save())
}

// listenAt listens on the address of a URL.
func listenAt(text string, f *pflag.FlagSet) (net.Listener, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
		return nil, errors.New("it must be http://HOST:PORT or https://HOST:PORT")
	}
	l, err := net.Listen("tcp", u.Host)
	if err != nil || u.Scheme == "http" {
		return l, err
	}
	config, err := etcdTLS(f)
	if err != nil {
		_ = l.Close() // the other error says more
		return nil, err
	}
	return tls.NewListener(l, config), nil
}

// etcdTLS returns the configuration of a listener with https.
func etcdTLS(f *pflag.FlagSet) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(last(f, "cert-file", ""), last(f, "key-file", ""))
	if err != nil {
		return nil, fmt.Errorf("--cert-file, --key-file: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if truth(f, "client-cert-auth", false) {
		if config.ClientCAs, err = readPool(last(f, "trusted-ca-file", "")); err != nil {
			return nil, fmt.Errorf("--trusted-ca-file: %w", err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// readPool reads certificates.
func readPool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM", path)
	}
	return pool, nil
}

// etcd answers what tools and API servers ask.
type etcd struct {
	host    *host
	serving tasks
}

func (e *etcd) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	for pattern, text := range map[string]string{
		"GET /health": `{"health":"true","reason":""}`, "GET /readyz": "ok", "GET /livez": "ok",
		"GET /version": `{"etcdserver":"` + etcdVersion + `","etcdcluster":"` + etcdVersion[:4] + `0","storage":"` + etcdVersion[:4] + `0"}`,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	mux.HandleFunc("POST "+servePath, func(w http.ResponseWriter, r *http.Request) { e.serve(ctx, w, r) })
	return mux
}

// maxRequest is the size of the largest request of an API server.
const maxRequest = 16 << 20

// serve serves the API for a kube-apiserver, until its connection ends. A page in a browser cannot ask for another
// protocol, so it cannot start an API server.
func (e *etcd) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		http.Error(w, "a kube-apiserver must run on the machine of this etcd", http.StatusForbidden)
		return
	}
	if got := r.Header.Get("Upgrade"); got != protocol {
		http.Error(w, fmt.Sprintf("etcd and kube-apiserver are of other builds of leat-server (%s and %q); "+
			"run \"leat-server assets\" again and start both", protocol, got), http.StatusBadRequest)
		return
	}
	var asked request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&asked); err != nil {
		http.Error(w, "the request is no JSON", http.StatusBadRequest)
		return
	}
	if !e.serving.begin() {
		http.Error(w, "etcd ends", http.StatusServiceUnavailable)
		return
	}
	defer e.serving.end()
	serve, err := e.host.start(&asked)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		cancel()
	} else {
		defer conn.Close()
		go func() {
			defer cancel()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
			_, _ = io.Copy(io.Discard, buffer) // until the API server ends
		}()
	}
	_ = serve(ctx) // its listener fails only if the machine does; the API server ends with the connection
}
