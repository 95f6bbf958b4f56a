package leat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/observe/recording"
)

// ringBytes bounds the ring. It is small, so that a ring forgets while it is measured.
const ringBytes = 16 << 20

// tap records the lists and watches of a client to files in a folder.
type tap struct {
	*recording.Recorder
	folder string
	file   *os.File // nil for a ring
}

// newTap returns the tap of a spec. The client waits if the disk is slow, so that all of the work is measured.
func newTap(s subject.Spec) (t *tap, err error) {
	t = &tap{}
	if t.folder, err = os.MkdirTemp("", "bench-tap-"); err != nil {
		return nil, err
	}
	o := recording.Options{Wait: true}
	switch s.Tap {
	case subject.File:
		if t.file, err = os.Create(filepath.Join(t.folder, "bench.rec")); err == nil {
			t.Recorder, err = recording.New(t.file, o)
		}
	case subject.Ring:
		var ring *recording.Ring
		if ring, err = recording.NewRing(recording.RingOptions{Options: o, Dir: t.folder, MaxBytes: ringBytes}); err == nil {
			t.Recorder = ring.Recorder
		}
	default:
		err = fmt.Errorf("leat: unknown tap %q", s.Tap)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(t.folder))
	}
	return t, nil
}

// Run records until ctx ends, and deletes the files. It fails if something was not recorded.
func (t *tap) Run(ctx context.Context) error {
	err := t.Recorder.Run(ctx)
	if stats := t.Stats(); err == nil && (stats.Lost > 0 || stats.Events == 0) {
		err = fmt.Errorf("leat: the tap recorded %d events and lost %d streams", stats.Events, stats.Lost)
	}
	if t.file != nil {
		err = errors.Join(err, t.file.Close())
	}
	return errors.Join(err, os.RemoveAll(t.folder))
}

// servePage serves the page with one informer until ctx ends.
func servePage(ctx context.Context, address string, shown subject.Informer) error {
	page, err := livepage.New(livepage.Options{Program: "bench"})
	if err != nil {
		return err
	}
	remove, err := page.Register("", shown)
	if err != nil {
		return err
	}
	defer remove()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: page.Handler(true), ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// instrumented is an informer that is recorded, or shown on a page.
type instrumented struct {
	subject.Informer
	tap     *tap   // nil without a recording
	address string // empty without a page
}

// Run runs the informer with its instruments.
func (i instrumented) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return i.Informer.Run(ctx) })
	if i.tap != nil {
		g.Go(func() error { return i.tap.Run(ctx) })
	}
	if i.address != "" {
		g.Go(func() error { return servePage(ctx, i.address, i.Informer) })
	}
	return g.Wait()
}
