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
	"github.com/leatproject/leat/owner"
)

// change makes one change. It returns false, without an error, where the rest of the decision has lost its ground and the
// next reconcile, which is on its way, decides anew.
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
	r.tellScaled(d, c.to.Name, sizeOf(c.was), sizeOf(c.to))
	return true, nil
}

func (r *reconciler) tellScaled(d *appsv1.Deployment, set string, from, to int32) {
	switch {
	case from < to:
		r.tell(d, false, "ScalingReplicaSet", fmt.Sprintf("Scaled up replica set %s from %d to %d", set, from, to))
	case from > to:
		r.tell(d, false, "ScalingReplicaSet", fmt.Sprintf("Scaled down replica set %s from %d to %d", set, from, to))
	}
}

// remove deletes an old set if it is still the one that was looked at. Somebody may have scaled it up meanwhile.
func (r *reconciler) remove(ctx context.Context, s *appsv1.ReplicaSet) error {
	err := r.sets.Delete(ctx, api.KeyOf(s), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// create makes the ReplicaSet of the present template.
func (r *reconciler) create(ctx context.Context, d *appsv1.Deployment, s *appsv1.ReplicaSet) (done bool, err error) {
	if err := owner.SetController(d, workload.Deployments, s); err != nil {
		return false, err
	}
	_, err = r.sets.Create(ctx, s, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, r.collide(ctx, d, s)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, err
	case err != nil:
		return false, r.refused(ctx, d, s, err)
	}
	r.tellScaled(d, s.Name, 0, sizeOf(s))
	return true, nil
}

// collide finds out whose the name is that a new set was to have. Where it is what an earlier try made, whose answer or
// event is late, there is nothing to do; where another template has come to the same hash the next try gets another.
func (r *reconciler) collide(ctx context.Context, d *appsv1.Deployment, s *appsv1.ReplicaSet) error {
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

// refused says why there is no new set. What the server calls invalid stays so, however often it is sent.
func (r *reconciler) refused(ctx context.Context, d *appsv1.Deployment, s *appsv1.ReplicaSet, cause error) error {
	note := fmt.Sprintf("Failed to create new replica set %q: %v", s.Name, cause)
	r.tell(d, true, reasonRefused, note)
	if _, bounded := progressDeadline(d); bounded {
		status := *d.Status.DeepCopy()
		status.Conditions = put(status.Conditions,
			condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonRefused, note, metav1.Now().Rfc3339Copy()))
		_ = r.writeStatus(ctx, d, status) // the cause is the greater concern
	}
	if apierrors.IsInvalid(cause) {
		return controller.TerminalError(cause)
	}
	return cause
}
