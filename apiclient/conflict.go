package apiclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient/internal/call"
)

// ConflictOptions say how often RetryOnConflict tries and how long it waits between tries. The zero value is right if
// conflicts are rare. For an object that many clients write at once, a Factor of 5 soon spreads the writes.
type ConflictOptions struct {
	Tries  int           // includes the first one; zero means 5
	Wait   time.Duration // between the first two tries; zero means 10 ms
	Factor float64       // each wait is longer than the previous one by this factor; zero means 1
	Jitter float64       // the largest random part that is added to a wait; zero means 0.1, negative means none

	// Rand returns a number in [0, 1) for the jitter; nil means math/rand/v2.Float64.
	Rand func() float64
}

const (
	defaultConflictTries  = 5
	defaultConflictWait   = 10 * time.Millisecond
	defaultConflictJitter = 0.1
)

// RetryOnConflict calls try again while it fails because another client wrote the object. try must read the object each
// time:
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
// It blocks for the tries and the waits between them. It returns every other error as it is. This includes a conflict
// of a server-side apply, because that is about fields of another owner and does not go away by itself (KEP-555). After
// the last try, the error is wrapped with the number of tries. If ctx ends during a wait, the error wraps the error of
// ctx and the last conflict. It corresponds to retry.RetryOnConflict of client-go, with a context.
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
		if ended := call.Wait(ctx, o.jittered(wait)); ended != nil {
			return fmt.Errorf("%w while waiting to try again after: %w", ended, err)
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

// isVersionConflict reports whether a write was refused because the object has a newer version.
func isVersionConflict(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
