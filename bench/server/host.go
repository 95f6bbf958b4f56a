package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/leatproject/leat/internal/pipe"
)

// host is what all servers have: a listener on loopback, with TLS and HTTP/2 or without.
type host struct {
	listener net.Listener
	cert     *pipe.Certificate // nil without TLS
}

func newHost(secure bool) (h host, err error) {
	if h.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return h, fmt.Errorf("server: %w", err)
	}
	if secure {
		h.cert = pipe.NewCertificate()
	}
	return h, nil
}

// URL returns the base URL of the server.
func (h *host) URL() string {
	if h.cert != nil {
		return "https://" + h.listener.Addr().String()
	}
	return "http://" + h.listener.Addr().String()
}

// Authority returns the certificate authority of the server in PEM, or nil without TLS.
func (h *host) Authority() []byte {
	if h.cert == nil {
		return nil
	}
	return h.cert.PEM
}

// run serves until ctx ends, and then returns nil.
func (h *host) run(ctx context.Context, serve http.HandlerFunc, changed func(net.Conn, http.ConnState)) error {
	s := &http.Server{
		Handler: serve, ErrorLog: log.New(io.Discard, "", 0), ConnState: changed,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	var err error
	if h.cert != nil {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{h.cert.Pair}, MinVersion: tls.VersionTLS12}
		err = s.ServeTLS(h.listener, "", "")
	} else {
		err = s.Serve(h.listener)
	}
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("server: %w", err)
}
