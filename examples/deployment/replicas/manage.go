package replicas

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/reconcile/expectations"
	"github.com/leatproject/leat/reconcile/owner"
)

// manage creates the missing Pods or deletes the surplus ones, at most r.burst of them.
func (r *reconciler) manage(ctx context.Context, s *appsv1.ReplicaSet, active []*workload.Pod) outcome {
	switch n := int(wanted(s)) - len(active); {
	case n > 0:
		return outcome{tried: true, reason: "FailedCreate", err: r.create(ctx, s, min(n, r.burst))}
	case n < 0:
		surplus := toDelete(active, r.related(s, active), min(-n, r.burst), time.Now())
		return outcome{tried: true, reason: "FailedDelete", err: r.delete(ctx, s, surplus)}
	}
	return outcome{tried: true}
}

// wanted returns how many Pods a ReplicaSet wants. The default of apps/v1 is one.
func wanted(s *appsv1.ReplicaSet) int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// create creates n Pods, with a slow start. In a terminating namespace no Pod can be created: this is not a failure,
// and the Pods are not expected.
func (r *reconciler) create(ctx context.Context, s *appsv1.ReplicaSet, n int) error {
	key := api.KeyOf(s)
	r.expected.Expect(key, n)
	made, err := expectations.SlowStart(ctx, n, func(ctx context.Context, _ int) error {
		p, err := r.newPods.Create(ctx, newPod(s), metav1.CreateOptions{})
		switch {
		case err == nil:
			r.recordEvent(s, p, "SuccessfulCreate", "Created pod: %s", p.Name)
		case !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			r.recordEvent(s, nil, "FailedCreate", "Error creating: %v", err)
		}
		return err
	})
	r.expected.Created(key, n-made)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsInvalid(err):
		return controller.TerminalError(err)
	}
	return err
}

// newPod returns a Pod made from a ReplicaSet's template.
func newPod(s *appsv1.ReplicaSet) *corev1.Pod {
	t := s.Spec.Template.DeepCopy()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, GenerateName: s.Name + "-",
			Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
		},
		Spec: t.Spec,
	}
	if err := owner.SetController(s, workload.ReplicaSets, p); err != nil {
		panic(err) // the set is stored, and the Pod is new and in its namespace
	}
	return p
}

// delete deletes Pods, all at once. A Pod that is already gone, or that was replaced by one of the same name, is not
// expected to go.
func (r *reconciler) delete(ctx context.Context, s *appsv1.ReplicaSet, pods []*workload.Pod) error {
	key := api.KeyOf(s)
	var uids []types.UID
	for _, p := range pods {
		uids = append(uids, p.UID)
	}
	r.expected.Expect(key, 0, uids...)
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() {
			err := r.pods.Live().Delete(ctx, api.KeyOf(p), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
			switch {
			case err == nil:
				r.recordEvent(s, p, "SuccessfulDelete", "Deleted pod: %s", p.Name)
				return
			case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			default:
				errs[i] = err
				r.recordEvent(s, nil, "FailedDelete", "Error deleting: %v", err)
			}
			r.expected.Deleted(key, p.UID)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// related returns the active Pods of a ReplicaSet and of the other sets of its Deployment. Their nodes decide which
// Pods are deleted, so that the others stay spread over the nodes.
func (r *reconciler) related(s *appsv1.ReplicaSet, own []*workload.Pod) []*workload.Pod {
	all := slices.Clone(own)
	ref := metav1.GetControllerOfNoCopy(s)
	if ref == nil {
		return all
	}
	for _, other := range r.setsByOwner.ByIndex(workload.Owner{Controller: ref.UID}) {
		if other.UID != s.UID {
			all = append(all, r.podsByOwner.ByIndex(workload.Owner{Controller: other.UID})...)
		}
	}
	return all
}
