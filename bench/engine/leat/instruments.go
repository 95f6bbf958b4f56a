package leat

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/observe/recording"
)

// tapped is an informer whose lists and watches are recorded to a file.
type tapped struct {
	subject.Informer
	recorder *recording.Recorder
	file     *os.File
}

// newTapped returns an informer without its client. The client waits if the disk is slow, so that all of the work is
// measured.
func newTapped() (*tapped, error) {
	file, err := os.CreateTemp("", "bench-tap-")
	if err != nil {
		return nil, err
	}
	recorder, err := recording.New(file, recording.Options{Wait: true})
	return &tapped{recorder: recorder, file: file}, err
}

// Run runs the informer and records until ctx ends, and deletes the file. It fails if something was not recorded.
func (t *tapped) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.Informer.Run(ctx) })
	g.Go(func() error { return t.recorder.Run(ctx) })
	err := g.Wait()
	if stats := t.recorder.Stats(); err == nil && (stats.Lost > 0 || stats.Events == 0) {
		err = fmt.Errorf("leat: the tap recorded %d events and lost %d streams", stats.Events, stats.Lost)
	}
	return errors.Join(err, t.file.Close(), os.Remove(t.file.Name()))
}
