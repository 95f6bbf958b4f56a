package front

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"time"
)

// FailureHeader is the header of an answer with the reason why an etcd does not serve.
const FailureHeader = "Leat-Server-Failure"

// errPassing means that an etcd may still come.
var errPassing = errors.New("etcd does not answer")

// connect asks the first etcd that answers to serve, and returns the connection for which it serves.
func connect(ctx context.Context, f *Flags, r *Request) (net.Conn, error) {
	servers := f.Listed("etcd-servers")
	wait, err := time.ParseDuration(f.Last("storage-initialization-timeout", etcdWait))
	if err != nil {
		return nil, fmt.Errorf("--storage-initialization-timeout: %w", err)
	}
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		for _, server := range servers {
			conn, failed := connectTo(limit, f, server, r)
			var late net.Error
			switch {
			case failed == nil:
				return conn, nil
			case !errors.Is(failed, errPassing):
				return nil, failed
			case err == nil || !errors.As(failed, &late) || !late.Timeout(): // the limit says less than an earlier error
				err = failed
			}
		}
		select {
		case <-limit.Done():
			return nil, fmt.Errorf("%w within %v", err, wait)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func connectTo(ctx context.Context, f *Flags, server string, r *Request) (net.Conn, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("--etcd-servers %q: it is not a URL", server)
	}
	var dialer interface {
		DialContext(context.Context, string, string) (net.Conn, error)
	} = &net.Dialer{}
	if u.Scheme == "https" {
		config, err := clientTLS(f)
		if err != nil {
			return nil, err
		}
		dialer = &tls.Dialer{Config: config}
	}
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", server, errPassing, err)
	}
	if !SameMachine(conn.LocalAddr().String(), conn.RemoteAddr().String()) {
		_ = conn.Close() // the request with the keys must not leave this machine
		return nil, fmt.Errorf("--etcd-servers %s: the etcd of a kube-apiserver of leat-server must run on the same machine", server)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := ask(conn, u.Host, r); err != nil {
		_ = conn.Close() // the other error says more
		return nil, err
	}
	return conn, nil
}

// SameMachine reports whether both ends of a connection are on one machine: the remote one has an address of loopback,
// or the local address.
func SameMachine(local, remote string) bool {
	there, err := netip.ParseAddrPort(remote)
	here, failed := netip.ParseAddrPort(local)
	return err == nil && failed == nil && (there.Addr().Unmap().IsLoopback() || there.Addr() == here.Addr())
}

// ask sends a request and reads the answer. It does without net/http; see early.go.
func ask(conn net.Conn, host string, r *Request) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: %d\r\n\r\n%s",
		Path, host, Protocol, len(body), body)
	if err != nil {
		return fmt.Errorf("%w: %w", errPassing, err)
	}
	answer := textproto.NewReader(bufio.NewReader(conn))
	status, err := answer.ReadLine()
	if err != nil {
		return fmt.Errorf("%w: %w", errPassing, err)
	}
	header, err := answer.ReadMIMEHeader()
	switch {
	case strings.HasPrefix(status, "HTTP/1.1 101 "):
		return nil
	case err != nil || header.Get(FailureHeader) == "":
		return fmt.Errorf("the etcd at %s is not the one of leat-server", host)
	}
	return errors.New(header.Get(FailureHeader))
}

// clientTLS returns the configuration for an etcd with https.
func clientTLS(f *Flags) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if path := f.Last("etcd-cafile", ""); path != "" {
		if config.RootCAs, err = ReadPool(path); err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
	}
	if path := f.Last("etcd-certfile", ""); path != "" {
		pair, err := tls.LoadX509KeyPair(path, f.Last("etcd-keyfile", ""))
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile, --etcd-keyfile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
