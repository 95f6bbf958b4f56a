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

// errUnknown is the readiness error until the server serves TrainingJobs.
var errUnknown = errors.New("the server does not serve trainingjobs." + job.Resource.Group + "; install their CustomResourceDefinition")

// waiter waits without limit until the server serves TrainingJobs. Any other failure, such as a missing permission,
// ends the wait after patience.
type waiter struct {
	client    *apiclient.Client
	namespace string
	log       *zap.Logger
	patience  time.Duration // zero means two minutes; a negative value means no limit
	then      func() error

	last atomic.Pointer[answer]
}

// answer is the result of the last list. Its err is nil after everything was started.
type answer struct{ err error }

// check returns the reason why nothing was started yet. It is a manager.Check.
func (w *waiter) check(context.Context) error {
	last := w.last.Load()
	switch {
	case last == nil:
		return errors.New("the first request to the server has not ended yet")
	case apierrors.IsNotFound(last.err):
		return errUnknown
	}
	return last.err
}

// NeedLeaderElection returns false: each replica has warm caches. See manager.LeaderElectionRunnable.
func (w *waiter) NeedLeaderElection() bool { return false }

// Run returns after the server has served TrainingJobs and then has returned.
func (w *waiter) Run(ctx context.Context) error {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	said := false
	failing := time.Time{} // start of the failures; zero without a failure
	for {
		err := w.ask(ctx)
		if err == nil {
			err = w.then()
			w.last.Store(&answer{err}) // from now on, the caches report whether they are synced
			return err
		}
		w.last.Store(&answer{err})
		switch {
		case ctx.Err() != nil:
			return nil
		case apierrors.IsNotFound(err):
			if failing = (time.Time{}); !said {
				w.log.Info("waiting until the server serves the resource", zap.Stringer("resource", job.Resource))
				said = true
			}
		case failing.IsZero():
			failing = time.Now()
			w.log.Warn("cannot list the resource; trying again", zap.Stringer("resource", job.Resource), zap.NamedError("err", err))
		case w.patience >= 0 && time.Since(failing) >= cmp.Or(w.patience, defaultPatience):
			return fmt.Errorf("cannot list training jobs: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// ask lists one job. A server answers with 404 if it does not serve the resource, and with 403 if the list is
// forbidden, whether or not it serves the resource.
func (w *waiter) ask(ctx context.Context) error {
	jobs := apiclient.NewPartial[*metav1.PartialObjectMetadata](w.client, job.Resource, w.namespace)
	one := api.Options[*metav1.PartialObjectMetadata]{ListOptions: metav1.ListOptions{Limit: 1}}
	_, err := jobs.List(ctx, one, func(*metav1.PartialObjectMetadata) error { return nil })
	return err
}
