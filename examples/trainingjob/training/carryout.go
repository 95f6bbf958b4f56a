package training

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/reconcile/expectations"
)

// carryOut makes the changes of a plan. A job fails if the server rejects a replica as invalid.
func (r *reconciler) carryOut(ctx context.Context, j *job.TrainingJob, p plan.Plan) error {
	// Services come first, because replicas look for each other as soon as they run.
	err := errors.Join(
		carryOut(ctx, r, j, r.services, p.CreateServices, p.DeleteServices),
		carryOut(ctx, r, j, r.pods, p.CreatePods, p.DeletePods),
	)
	switch {
	case among(err, endsNamespace):
		return nil // the namespace is terminating: nothing can be created, and everything will be deleted
	case among(err, apierrors.IsInvalid):
		s, notes := plan.Fail(j, time.Now(), "ReplicaRefused", err.Error())
		_, err = r.writeStatus(ctx, j, s, notes)
		return settled(err)
	}
	return err
}

func carryOut[T, W metav1.Object](ctx context.Context, r *reconciler, j *job.TrainingJob, c children[T, W], create []plan.Replica, remove []T) error {
	var errs error
	for _, t := range batchTypes() {
		b := batch{job: j.UID, kind: c.resource.Kind, replicas: t}
		var missing []plan.Replica
		for _, m := range create {
			if m.Type == t {
				missing = append(missing, m)
			}
		}
		var doomed []T
		var uids []types.UID
		for _, o := range remove {
			if typeOf(o) == t {
				doomed, uids = append(doomed, o), append(uids, o.GetUID())
			}
		}
		if len(missing)+len(doomed) == 0 {
			continue
		}
		r.expected.Expect(b, len(missing), uids...)
		errs = errors.Join(errs, deleteAll(ctx, r, j, c, b, doomed), createAll(ctx, r, j, c, b, missing))
	}
	return errs
}

// createAll creates objects, with a slow start. Failed requests, and those that are not sent because of them, are not
// expected.
func createAll[T, W metav1.Object](ctx context.Context, r *reconciler, j *job.TrainingJob, c children[T, W], b batch, missing []plan.Replica) error {
	var made atomic.Int32
	defer func() { r.expected.Created(b, len(missing)-int(made.Load())) }() // also after a panic
	_, err := expectations.SlowStart(ctx, len(missing), func(ctx context.Context, i int) error {
		name, err := c.create(ctx, j, missing[i])
		switch {
		case err == nil:
			made.Add(1)
			r.tell(j, events.Normal, "SuccessfulCreate"+c.resource.Kind, "Created: "+name)
		case !endsNamespace(err):
			r.tell(j, events.Warning, "FailedCreate"+c.resource.Kind, "Error creating: "+err.Error())
		}
		return err
	})
	return err
}

// deleteAll deletes objects, all at once. An object that is already gone, or that was replaced by one of the same name,
// is not expected to go.
func deleteAll[T, W metav1.Object](ctx context.Context, r *reconciler, j *job.TrainingJob, c children[T, W], b batch, doomed []T) error {
	errs := make([]error, len(doomed))
	var all sync.WaitGroup
	for i, o := range doomed {
		all.Go(func() {
			err := c.delete(ctx, o)
			if err == nil {
				r.tell(j, events.Normal, "SuccessfulDelete"+c.resource.Kind, "Deleted: "+o.GetName())
				return
			}
			r.expected.Deleted(b, o.GetUID())
			if apierrors.IsConflict(err) {
				return // the UID belongs to another object by now
			}
			if errs[i] = settled(err); errs[i] != nil {
				r.tell(j, events.Warning, "FailedDelete"+c.resource.Kind, "Error deleting: "+err.Error())
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// endsNamespace reports whether an error says that the namespace is being deleted.
func endsNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// among reports whether one of several joined errors is of a kind. The functions of apimachinery check only the first
// one.
func among(err error, is func(error) bool) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return among(err, is) })
	}
	return is(err)
}

func (r *reconciler) tell(j *job.TrainingJob, kind events.Type, reason, note string) {
	r.recorder.Event(events.Event{Resource: job.Resource, Object: j, Type: kind, Reason: reason, Note: note})
}
