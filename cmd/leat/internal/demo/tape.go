package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/leatproject/leat/observe/recording"
)

// tape records the demonstration. The methods of a nil tape do nothing.
type tape struct {
	*recording.Recorder
	file *os.File
}

// newTape creates a file. It returns nil if the path is empty.
func newTape(path string) (*tape, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	recorder, err := recording.New(file, recording.Options{JSON: true})
	return &tape{recorder, file}, err
}

// wrap returns a transport that is recorded.
func (t *tape) wrap(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return t.Wrap(next)
}

// during records while do runs.
func (t *tape) during(ctx context.Context, do func(context.Context) error) error {
	if t == nil {
		return do(ctx)
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	written := make(chan error, 1)
	go func() { written <- t.Run(writing) }()
	err := do(ctx)
	stop()
	return errors.Join(err, <-written, t.file.Close())
}
