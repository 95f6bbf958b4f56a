package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/reconcile/owner"
)

// change makes one change. It returns false without an error if the rest of the decision is no longer valid. The next
// reconcile, which is already caused, then decides again.
func (r *reconciler) change(ctx context.Context, d *appsv1.Deployment, c change) (done bool, err error) {
	switch {
	case c.was == nil:
		return r.create(ctx, d, c.to)
	case c.to == nil:
		return true, r.remove(ctx, c.was)
	}
	if _, err := r.sets.Update(ctx, c.to, metav1.UpdateOptions{}); err != nil {
		return false, err
	}
	r.recordScaled(d, c.to.Name, sizeOf(c.was), sizeOf(c.to))
	return true, nil
}

func (r *reconciler) recordScaled(d *appsv1.Deployment, set string, from, to int32) {
	switch {
	case from < to:
		r.recordEvent(d, false, "ScalingReplicaSet", fmt.Sprintf("Scaled up replica set %s from %d to %d", set, from, to))
	case from > to:
		r.recordEvent(d, false, "ScalingReplicaSet", fmt.Sprintf("Scaled down replica set %s from %d to %d", set, from, to))
	}
}

// remove deletes an old set unless it has changed since it was read: a user may have scaled it up.
func (r *reconciler) remove(ctx context.Context, s *appsv1.ReplicaSet) error {
	err := r.sets.Delete(ctx, api.KeyOf(s), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// create creates the ReplicaSet of the current template.
func (r *reconciler) create(ctx context.Context, d *appsv1.Deployment, s *appsv1.ReplicaSet) (done bool, err error) {
	if err := owner.SetController(d, workload.Deployments, s); err != nil {
		return false, err
	}
	_, err = r.sets.Create(ctx, s, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, r.resolveNameConflict(ctx, d, s)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, err
	case err != nil:
		return false, r.createFailed(ctx, d, s, err)
	}
	r.recordScaled(d, s.Name, 0, sizeOf(s))
	return true, nil
}

// resolveNameConflict looks at the set that has the name of the new one. If an earlier try has created that set, and
// the answer or the event is late, it does nothing. If another template has the same hash, it increments the collision
// count, so that the next try gets another name.
func (r *reconciler) resolveNameConflict(ctx context.Context, d *appsv1.Deployment, s *appsv1.ReplicaSet) error {
	there, err := r.sets.Live().Get(ctx, api.KeyOf(s), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if owner.Controls(d, there) && sameTemplate(&there.Spec.Template, &d.Spec.Template) {
		r.sets.Wrote(ctx, there)
		return nil
	}
	status := *d.Status.DeepCopy()
	if status.CollisionCount == nil {
		status.CollisionCount = new(int32)
	}
	*status.CollisionCount++
	return r.writeStatus(ctx, d, status)
}

// createFailed reports why there is no new set. It does not retry if the server calls the set invalid.
func (r *reconciler) createFailed(ctx context.Context, d *appsv1.Deployment, s *appsv1.ReplicaSet, cause error) error {
	note := fmt.Sprintf("Failed to create new replica set %q: %v", s.Name, cause)
	r.recordEvent(d, true, reasonRefused, note)
	if _, bounded := progressDeadline(d); bounded {
		status := *d.Status.DeepCopy()
		status.Conditions = put(status.Conditions,
			condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonRefused, note, metav1.Now().Rfc3339Copy()))
		_ = r.writeStatus(ctx, d, status) // the cause is more important than this error
	}
	if apierrors.IsInvalid(cause) {
		return controller.TerminalError(cause)
	}
	return cause
}
