package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/leatproject/leat/bench/load"
)

// Custom serves many custom resources with a few objects each, over TLS and HTTP/2. Its objects never change.
type Custom struct {
	resources, objects int
	listener           net.Listener
	authority          []byte // PEM
	certificate        tls.Certificate

	accepted atomic.Int64 // connections
}

// NewCustom listens on loopback.
func NewCustom(resources, objects int) (*Custom, error) {
	c := &Custom{resources: resources, objects: objects}
	var err error
	if c.certificate, c.authority, err = newCertificate(); err != nil {
		return nil, fmt.Errorf("server: make a certificate: %w", err)
	}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return c, nil
}

// URL returns the base URL of the server.
func (c *Custom) URL() string { return "https://" + c.listener.Addr().String() }

// Authority returns the certificate authority of the server in PEM.
func (c *Custom) Authority() []byte { return c.authority }

// Accepted returns the number of connections so far.
func (c *Custom) Accepted() int { return int(c.accepted.Load()) }

// Run serves until ctx ends, and then returns nil.
func (c *Custom) Run(ctx context.Context) error {
	h := &http.Server{
		Handler: http.HandlerFunc(c.serve), ErrorLog: log.New(io.Discard, "", 0), ConnState: c.count,
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{c.certificate}, MinVersion: tls.VersionTLS12},
	}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	if err := h.ServeTLS(c.listener, "", ""); ctx.Err() == nil || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (c *Custom) count(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		c.accepted.Add(1)
	}
}

// serve answers a list or a watch of one of the resources, in JSON.
func (c *Custom) serve(w http.ResponseWriter, r *http.Request) {
	number := -1
	plural, ok := strings.CutPrefix(r.URL.Path, "/apis/"+load.CustomGroup+"/"+load.CustomVersion+"/")
	for i := range c.resources {
		if ok && plural == load.CustomPlural(i) {
			number = i
		}
	}
	if number < 0 || r.Method != http.MethodGet {
		http.Error(w, fmt.Sprintf("this server only lists and watches %d custom resources: %s %s", c.resources, r.Method, r.URL), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	if !boolean(q.Get("watch")) {
		_, _ = w.Write(c.list(number)) // the client has gone, so the error does not matter
		return
	}
	if boolean(q.Get("sendInitialEvents")) {
		if _, err := w.Write(c.initial(number)); err != nil {
			return
		}
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (c *Custom) list(number int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"apiVersion":"%s/%s","kind":"%sList","metadata":{"resourceVersion":"%d"},"items":[`,
		load.CustomGroup, load.CustomVersion, load.CustomKind(number), load.FirstVersion)
	for i := range c.objects {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(load.Custom(number, i))
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

func (c *Custom) initial(number int) []byte {
	var b bytes.Buffer
	for i := range c.objects {
		fmt.Fprintf(&b, `{"type":"ADDED","object":%s}`+"\n", load.Custom(number, i))
	}
	fmt.Fprintf(&b, `{"type":"BOOKMARK","object":{"apiVersion":"%s/%s","kind":%q,"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n",
		load.CustomGroup, load.CustomVersion, load.CustomKind(number), load.FirstVersion)
	return b.Bytes()
}
