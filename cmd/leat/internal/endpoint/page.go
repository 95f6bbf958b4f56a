package endpoint

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/leatproject/leat/observe/livepage"
)

// PageFlag adds the flag for the address of the live page. Without a value, the page gets a free port on loopback.
func PageFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "page", "", "serve a live page of the pipeline, on a free port or at an address: --page=127.0.0.1:8090 (default: none)")
	cmd.Flags().Lookup("page").NoOptDefVal = FreePort
}

// FreePort is the address of a page without one.
const FreePort = "127.0.0.1:0"

// Page serves a live page. The methods of a nil Page do nothing.
type Page struct {
	*livepage.Page
	listener net.Listener
}

// NewPage listens on an address. It returns nil if the address is empty.
func NewPage(address string, o livepage.Options) (*Page, error) {
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
	return &Page{page, listener}, nil
}

// During serves the page while do runs. If the server fails, it ends the context of do.
func (p *Page) During(ctx context.Context, do func(context.Context) error) error {
	if p == nil {
		return do(ctx)
	}
	return during(ctx, "page", p.listener, p.Handler(true), do)
}

// Where returns a line with the URL of the page, or "" for a nil Page.
func (p *Page) Where() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("live page on http://%s/\n", p.listener.Addr())
}

// Show adds informers, controllers and other parts to the page.
func (p *Page) Show(parts ...any) {
	if p == nil {
		return
	}
	for _, part := range parts {
		_, _ = p.Register("", part) // the error is always nil, and the parts stay to the end
	}
}
