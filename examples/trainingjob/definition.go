package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/examples/trainingjob/job"
)

const (
	askAgain        = 2 * time.Second
	defaultPatience = 2 * time.Minute
)

// errUnknown is what readiness fails with until the server knows TrainingJobs.
var errUnknown = errors.New("the server does not know trainingjobs." + job.Resource.Group + "; install their CustomResourceDefinition")

// waiter waits until the server knows TrainingJobs, for as long as it takes. What else may be wrong, a missing permission
// above all, is not waited for longer than the first list of a cache is.
type waiter struct {
	client    *apiclient.Client
	namespace string
	log       *zap.Logger
	patience  time.Duration // zero means two minutes, and less that there is no end to it
	then      func() error

	last atomic.Pointer[answer]
}

// answer is what the server said, or what kept it from that. It is nil once everything was started.
type answer struct{ err error }

// check says why nothing was started yet. It is a manager.Check.
func (w *waiter) check(context.Context) error {
	last := w.last.Load()
	switch {
	case last == nil:
		return errors.New("the server was not asked yet")
	case apierrors.IsNotFound(last.err):
		return errUnknown
	}
	return last.err
}

// Run returns when TrainingJobs are known and what needs them was started.
func (w *waiter) Run(ctx context.Context) error {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	said := false
	failing := time.Time{} // since when; zero if the last answer was one
	for {
		err := w.ask(ctx)
		if err == nil {
			err = w.then()
			w.last.Store(&answer{err}) // from here on the caches say whether they are synced
			return err
		}
		w.last.Store(&answer{err})
		switch {
		case ctx.Err() != nil:
			return nil
		case apierrors.IsNotFound(err):
			if failing = (time.Time{}); !said {
				w.log.Info("waiting until the server knows the resource", zap.Stringer("resource", job.Resource))
				said = true
			}
		case failing.IsZero():
			failing = time.Now()
			w.log.Warn("cannot list the resource, and will try again", zap.Stringer("resource", job.Resource), zap.NamedError("err", err))
		case w.patience >= 0 && time.Since(failing) >= cmp.Or(w.patience, defaultPatience):
			return fmt.Errorf("training jobs cannot be listed: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// ask lists one job. A server that does not know the resource answers with 404; one that does not let us with 403, whether
// it knows the resource or not.
func (w *waiter) ask(ctx context.Context) error {
	jobs := apiclient.NewPartial[*metav1.PartialObjectMetadata](w.client, job.Resource, w.namespace)
	one := api.Options[*metav1.PartialObjectMetadata]{ListOptions: metav1.ListOptions{Limit: 1}}
	_, err := jobs.List(ctx, one, func(*metav1.PartialObjectMetadata) error { return nil })
	return err
}
