package endpoint

import (
	"context"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/manager"
)

// NewServer returns a server that refuses web pages of other origins.
func NewServer(name string, l net.Listener, h http.Handler) (*manager.Server, error) {
	return manager.NewServer(name, manager.ServerOptions{Listener: l, Handler: h, SameOrigin: true})
}

// during serves while do runs. If the server fails, it ends the context of do.
func during(ctx context.Context, name string, l net.Listener, h http.Handler, do func(context.Context) error) error {
	server, err := NewServer(name, l, h)
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
