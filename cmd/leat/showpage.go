package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/leatproject/leat/cmd/leat/internal/endpoint"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/observe/livepage/history"
	"github.com/leatproject/leat/observe/recording"
)

// servePage serves the page of a recording until an interrupt.
func (o showOptions) servePage(ctx context.Context, out *lines, path string, file *recording.File) error {
	page, err := history.New(ctx, file.Reader, history.Options{Name: filepath.Base(path), Page: livepage.Options{}})
	if errors.Is(err, history.ErrEmpty) {
		return errors.Join(fmt.Errorf("%s: the recording has no lists and no watches", path), incomplete(path, file))
	}
	if err != nil {
		return err
	}
	first, last := page.Span()
	at := last
	if o.at != "" {
		if at, err = parseMoment(o.at, first, last); err != nil {
			return usagef("--at: %w", err)
		}
	}
	listener, err := net.Listen("tcp", o.page)
	if err != nil {
		return fmt.Errorf("--page: %w", err)
	}
	server, err := endpoint.NewServer("page", listener, page)
	if err != nil {
		return err
	}
	out.printf("recorded from %s to %s (%s)\n", stamp(first), stamp(last), last.Sub(first).Round(time.Millisecond))
	if err := incomplete(path, file); err != nil {
		out.printf("%s\n", oneLine(err))
	}
	out.printf("page of the recording on http://%s/?at=%d\n", listener.Addr(), at.UnixMicro())
	if err := out.flush(); err != nil {
		return errors.Join(err, listener.Close())
	}
	return server.Run(ctx)
}
