package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/observe/livepage"
)

// pageFlag adds the flag for the address of the live page. Without a value, the page gets a free port on loopback.
func pageFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "page", "", "serve a live page of the pipeline, on a free port or at an address: --page=127.0.0.1:8090 (default: none)")
	cmd.Flags().Lookup("page").NoOptDefVal = freePort
}

// freePort is the address of a page without one.
const freePort = "127.0.0.1:0"

// pageServer serves a live page. The methods of a nil pageServer do nothing.
type pageServer struct {
	*livepage.Page
	listener net.Listener
}

// newPageServer listens on an address. It returns nil if the address is empty.
func newPageServer(address string, o livepage.Options) (*pageServer, error) {
	if address == "" {
		return nil, nil
	}
	page, err := livepage.New(o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--page: %w", err)
	}
	return &pageServer{page, listener}, nil
}

// during serves the page while do runs. If the server fails, it ends the context of do.
func (s *pageServer) during(ctx context.Context, do func(context.Context) error) error {
	if s == nil {
		return do(ctx)
	}
	server, err := newPageProcess(s.listener, s.Handler(true))
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return server.Run(serving) })
	both.Go(func() error {
		defer stop()
		return do(ctx)
	})
	return both.Wait()
}

// where returns a line with the URL of the page, or "" for a nil pageServer.
func (s *pageServer) where() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("live page on http://%s/\n", s.listener.Addr())
}

// show adds informers, controllers and other parts to the page.
func (s *pageServer) show(parts ...any) {
	if s == nil {
		return
	}
	for _, part := range parts {
		_, _ = s.Register("", part) // the error is always nil, and the parts stay to the end
	}
}

// newPageProcess returns the server of a page.
func newPageProcess(l net.Listener, page http.Handler) (*manager.Server, error) {
	return manager.NewServer("page", manager.ServerOptions{Listener: l, Handler: page, SameOrigin: true})
}
