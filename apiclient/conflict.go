package apiclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConflictOptions say how often RetryOnConflict tries and how long it waits in between. The zero value is right where a
// few writers meet now and then. For an object that many write at once, a Factor of 5 makes room quickly.
type ConflictOptions struct {
	Tries  int           // the first one counts; zero means 5
	Wait   time.Duration // between the first two tries; zero means 10 ms
	Factor float64       // by which each wait is longer than the one before; zero means 1
	Jitter float64       // a wait is longer by a random part of it up to this; zero means 0.1, negative none

	// Rand returns a number in [0, 1) for the jitter; nil means math/rand/v2.Float64.
	Rand func() float64
}

const (
	defaultConflictTries  = 5
	defaultConflictWait   = 10 * time.Millisecond
	defaultConflictJitter = 0.1
)

// RetryOnConflict calls try again as long as it fails because somebody else wrote the object in between, which try reads
// anew each time:
//
//	err := apiclient.RetryOnConflict(ctx, apiclient.ConflictOptions{}, func(ctx context.Context) error {
//		pod, err := pods.Get(ctx, key, metav1.GetOptions{})
//		if err != nil {
//			return err
//		}
//		pod.Labels["seen"] = "yes"
//		_, err = pods.Update(ctx, pod, metav1.UpdateOptions{})
//		return err
//	})
//
// It blocks for the tries and the waits in between. Any other error is returned as it is, and so is the conflict of a
// server-side apply, which is about fields that somebody else owns and does not go away by itself (KEP-555). The last of
// too many conflicts is wrapped with their number. When ctx ends during a wait, the error is that of ctx and the last
// conflict, both.
// It corresponds to retry.RetryOnConflict of client-go, with a context.
func RetryOnConflict(ctx context.Context, o ConflictOptions, try func(context.Context) error) error {
	o = o.withDefaults()
	wait := o.Wait
	for n := 1; ; n++ {
		err := try(ctx)
		switch {
		case !isVersionConflict(err):
			return err
		case n >= o.Tries:
			return fmt.Errorf("after %d tries: %w", n, err)
		}
		if ended := pause(ctx, o.jittered(wait)); ended != nil {
			return fmt.Errorf("%w before the next try after: %w", ended, err)
		}
		wait = time.Duration(float64(wait) * o.Factor)
	}
}

func (o ConflictOptions) withDefaults() ConflictOptions {
	if o.Tries <= 0 {
		o.Tries = defaultConflictTries
	}
	if o.Wait <= 0 {
		o.Wait = defaultConflictWait
	}
	if o.Factor <= 0 {
		o.Factor = 1
	}
	if o.Jitter == 0 {
		o.Jitter = defaultConflictJitter
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

func (o ConflictOptions) jittered(wait time.Duration) time.Duration {
	return wait + time.Duration(float64(wait)*max(0, o.Jitter)*o.Rand())
}

// isVersionConflict tells whether a write was refused because of the version that it was based on.
func isVersionConflict(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// pause waits for d, or until ctx ends, whose error it then returns.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
