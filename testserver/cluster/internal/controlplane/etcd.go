package controlplane

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/internal/visible"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/cluster/internal/controlplane/front"
)

// RunEtcd runs the program etcd, and returns its exit code: 0 after ctx has ended, 1 for a failure, 2 for a wrong flag.
func RunEtcd(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, code := front.ParseEtcd(args, stdout, stderr)
	if f == nil {
		return code
	}
	f.Notice(stderr)
	if err := runEtcd(ctx, f, stderr); err != nil {
		fmt.Fprintf(stderr, "etcd: %v\n", err)
		return 1
	}
	return 0
}

func runEtcd(ctx context.Context, f *front.Flags, stderr io.Writer) error {
	folder := f.Last("data-dir", f.Last("name", "default")+".etcd")
	if _, err := os.Stat(filepath.Join(folder, "member")); err == nil {
		return fmt.Errorf("--data-dir %s: it contains the data of a real etcd, which leat-server cannot read", folder)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	urls := f.Listed("listen-client-urls")
	if len(urls) == 0 {
		urls = []string{"http://localhost:2379"}
	}
	quota, err := strconv.ParseInt(f.Last("quota-backend-bytes", "0"), 0, strconv.IntSize)
	if err != nil {
		return fmt.Errorf("--quota-backend-bytes: %w", err)
	}
	e := &etcd{host: newHost(folder, max(int(quota), 0)), stderr: stderr}
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
	group.Go(warm)
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	err = group.Wait()
	e.serving.wait()
	return errors.Join(err, e.host.save())
}

// warm builds what all clusters of a process share, and kube-apiserver then starts 100 ms faster.
func warm() error {
	_, err := cluster.New(cluster.Options{RBAC: true, Server: testserver.Options{TLS: true}})
	return err
}

// listenAt listens on the address of a URL.
func listenAt(text string, f *front.Flags) (net.Listener, error) {
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
func etcdTLS(f *front.Flags) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Last("cert-file", ""), f.Last("key-file", ""))
	if err != nil {
		return nil, fmt.Errorf("--cert-file, --key-file: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if f.Truth("client-cert-auth", false) {
		if config.ClientCAs, err = front.ReadPool(f.Last("trusted-ca-file", "")); err != nil {
			return nil, fmt.Errorf("--trusted-ca-file: %w", err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// etcd answers requests of tools and API servers.
type etcd struct {
	host    *host
	stderr  io.Writer // for errors of API servers
	serving tasks
}

func (e *etcd) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	for pattern, text := range map[string]string{
		"GET /health": `{"health":"true","reason":""}`, "GET /readyz": "ok", "GET /livez": "ok",
		"GET /version": `{"etcdserver":"` + front.EtcdVersion + `","etcdcluster":"` + front.EtcdVersion[:4] + `0","storage":"` + front.EtcdVersion[:4] + `0"}`,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	}
	mux.HandleFunc("POST "+front.Path, func(w http.ResponseWriter, r *http.Request) { e.serve(ctx, w, r) })
	return mux
}

// refuse answers with a sentence that kube-apiserver prints. A header has one line.
func refuse(w http.ResponseWriter, code int, sentence string) {
	w.Header().Set(front.FailureHeader, visible.Text(sentence))
	w.WriteHeader(code)
}

// maxRequest is the size of the largest request of an API server.
const maxRequest = 16 << 20

// serve serves the API for a kube-apiserver, until its connection ends. A page in a browser cannot ask for another
// protocol, so it cannot start an API server.
func (e *etcd) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || !front.SameMachine(local.String(), r.RemoteAddr) {
		refuse(w, http.StatusForbidden, "a kube-apiserver must run on the machine of this etcd")
		return
	}
	if got := r.Header.Get("Upgrade"); got != front.Protocol {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("etcd and kube-apiserver come from different builds of leat-server (%s and %q); "+
			"run \"leat-server assets\" again and start both", front.Protocol, got))
		return
	}
	var asked front.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, "the request is not JSON")
		return
	}
	if !e.serving.begin() {
		refuse(w, http.StatusServiceUnavailable, "etcd ends")
		return
	}
	defer e.serving.end()
	serve, err := e.host.start(&asked)
	if err != nil {
		refuse(w, http.StatusConflict, err.Error())
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
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+front.Protocol+"\r\n\r\n")
			_, _ = io.Copy(io.Discard, buffer) // until the API server ends
		}()
	}
	if err := serve(ctx); err != nil {
		fmt.Fprintf(e.stderr, "etcd: kube-apiserver at %s: %v\n", asked.Address, err)
	}
}
