package replicas

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/reconcile/expectations"
	"github.com/leatproject/leat/reconcile/owner"
	"github.com/leatproject/leat/scale/shard"
)

// Options are the options of a controller of ReplicaSets. Client, ReplicaSets, Pods and Recorder are required.
type Options struct {
	Client *apiclient.Client
	// ReplicaSets and Pods are the caches that the controller reads. They have not run yet.
	ReplicaSets *cachedclient.Typed[*appsv1.ReplicaSet]
	Pods        *cachedclient.Partial[*workload.Pod]
	Recorder    *events.Recorder

	// Burst is the largest number of Pods of one ReplicaSet that a reconcile creates or deletes. Zero means 500.
	Burst int
	// Shards divides the ReplicaSets among replicas of the program. Nil means that this one works on all.
	Shards *shard.Kind[*appsv1.ReplicaSet]
	// Controller are the options of the controller.
	Controller controller.Options
}

// New returns a controller of ReplicaSets. It corresponds to NewReplicaSetController of kube-controller-manager.
func New(o Options) *controller.Controller[api.Key] {
	r := newReconciler(o)
	gate := cachedclient.NewGate(cachedclient.GateOptions{Logger: o.Controller.Logger})
	var work controller.Reconciler[api.Key] = r
	if o.Shards != nil {
		work = o.Shards.Reconciler(work)
	}
	c := controller.New("replicaset", controller.Gated(work, gate), o.Controller)
	r.watch(c, o)
	return c
}

func newReconciler(o Options) *reconciler {
	if o.Burst == 0 {
		o.Burst = 500
	}
	return &reconciler{
		sets:        o.ReplicaSets,
		pods:        o.Pods,
		cached:      o.ReplicaSets.Informer().Cache(),
		newPods:     apiclient.NewTyped[*corev1.Pod](o.Client, workload.Pods, ""),
		recorder:    o.Recorder,
		burst:       o.Burst,
		setsByOwner: informer.AddIndex(o.ReplicaSets.Informer(), workload.OwnerOf[*appsv1.ReplicaSet]),
		podsByOwner: informer.AddIndex(o.Pods.Informer(), workload.OwnerOf[*workload.Pod]),
		byNamespace: informer.AddIndex(o.ReplicaSets.Informer(), func(s *appsv1.ReplicaSet) []string {
			return []string{s.Namespace}
		}),
		expected: expectations.New[api.Key](expectations.Options{}),
	}
}

// reconciler creates and deletes the Pods of ReplicaSets. Expectations cover the Pods that it creates and deletes. A
// gate covers its other writes: statuses, adoptions and releases.
type reconciler struct {
	sets        *cachedclient.Typed[*appsv1.ReplicaSet]
	pods        *cachedclient.Partial[*workload.Pod]
	newPods     *apiclient.TypedClient[*corev1.Pod] // creates whole Pods
	cached      cache.Reader[*appsv1.ReplicaSet]    // for handlers, which must not block
	byNamespace *cache.Index[*appsv1.ReplicaSet, string]
	setsByOwner *cache.Index[*appsv1.ReplicaSet, workload.Owner]
	podsByOwner *cache.Index[*workload.Pod, workload.Owner]
	expected    *expectations.Expectations[api.Key]
	last        sync.Map // key → UID of the ReplicaSet that was reconciled last
	recorder    *events.Recorder
	burst       int
}

// Reconcile takes the next steps of one ReplicaSet.
func (r *reconciler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	s, err := r.sets.Peek(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		r.expected.Forget(key)
		r.last.Delete(key)
		return controller.Result{}, nil
	case err != nil:
		return controller.Result{}, err
	}
	if last, _ := r.last.Swap(key, s.UID); last != nil && last != s.UID {
		r.expected.Forget(key) // of another ReplicaSet with this name, whose Pods do not count
	}
	selector, err := r.check(s)
	if err != nil {
		return controller.Result{}, err
	}
	// Check this before reading the Pods. A Pod that arrives in between is in the cache and is no longer expected.
	satisfied := r.expected.Satisfied(key)
	f, err := r.find(ctx, s, selector)
	if err != nil {
		return controller.Result{}, err
	}
	var o outcome
	if satisfied && s.DeletionTimestamp == nil {
		o = r.manage(ctx, s, f.active)
	}
	status, next := statusOf(s, r.withoutPendingDeletions(key, f), o, time.Now())
	if err := r.writeStatus(ctx, s, status); err != nil {
		return controller.Result{}, err
	}
	return controller.Result{RequeueAfter: next}, o.err
}

// check returns an error that no retry can repair. It also records an Event.
func (r *reconciler) check(s *appsv1.ReplicaSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	switch {
	case err != nil:
		err = fmt.Errorf("replicas: the selector is invalid: %w", err)
	case s.Spec.Selector == nil || selector.Empty():
		err = fmt.Errorf("replicas: the selector is empty and would select all Pods of the namespace")
	case !selector.Matches(labels.Set(s.Spec.Template.Labels)):
		err = fmt.Errorf("replicas: the selector %s does not match the labels of the template", selector)
	default:
		return selector, nil
	}
	r.recordEvent(s, nil, "InvalidSpec", "%v", err)
	return nil, controller.TerminalError(fmt.Errorf("replica set %s: %w", api.FormatKey(api.KeyOf(s)), err))
}

// find returns the Pods of a ReplicaSet. It adopts orphans that the selector matches, and releases Pods that it no
// longer matches.
func (r *reconciler) find(ctx context.Context, s *appsv1.ReplicaSet, selector labels.Selector) (ownedPods, error) {
	claimer := owner.Claimer[*appsv1.ReplicaSet, *workload.Pod]{
		Owner: s, Resource: workload.ReplicaSets,
		Selects: func(p *workload.Pod) bool { return selector.Matches(labels.Set(p.Labels)) },
		Live: func(ctx context.Context) (*appsv1.ReplicaSet, error) {
			return r.sets.Live().Get(ctx, api.KeyOf(s), metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, p *workload.Pod, patch []byte) (*workload.Pod, error) {
			return r.pods.Patch(ctx, api.KeyOf(p), apiclient.Patch{Type: types.MergePatchType, Data: patch}, apiclient.PatchOptions{})
		},
	}
	mine := r.podsByOwner.ByIndex(workload.Owner{Controller: s.UID})
	orphans := r.podsByOwner.ByIndex(workload.Owner{Namespace: s.Namespace})
	var f ownedPods
	var candidates []*workload.Pod
	for _, p := range append(mine, orphans...) {
		switch {
		case workload.Active(p):
			candidates = append(candidates, p)
		case workload.Terminating(p) && owner.Controls(s, p) && claimer.Selects(p):
			f.terminating = append(f.terminating, p)
		}
	}
	var err error
	f.active, err = claimer.Claim(ctx, candidates)
	return f, err
}

// withoutPendingDeletions counts a Pod whose deletion was requested as terminating, even if the cache still shows it as
// active. Otherwise the reader of the status would count Pods that are about to go.
func (r *reconciler) withoutPendingDeletions(key api.Key, f ownedPods) ownedPods {
	pending, _ := r.expected.Pending(key)
	var left ownedPods
	left.terminating = slices.Clone(f.terminating)
	for _, p := range f.active {
		if slices.Contains(pending.Deletions, p.UID) {
			left.terminating = append(left.terminating, p)
		} else {
			left.active = append(left.active, p)
		}
	}
	return left
}

// writeStatus writes a changed status. The Deployment controller often updates the spec of the same object, so this
// method repeats a conflicting write once, with the newest state.
func (r *reconciler) writeStatus(ctx context.Context, s *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) error {
	if equality.Semantic.DeepEqual(s.Status, status) {
		return nil
	}
	uid, generation := s.UID, s.Generation
	err := apiclient.RetryOnConflict(ctx, apiclient.ConflictOptions{}, func(ctx context.Context) error {
		s = s.DeepCopy()
		s.Status = status
		_, err := r.sets.UpdateStatus(ctx, s, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			newest, getErr := r.sets.Live().Get(ctx, api.KeyOf(s), metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			if newest.UID != uid {
				return nil // a new ReplicaSet of the same name has its own reconcile
			}
			s = newest
			status.ObservedGeneration = min(generation, newest.Generation) // the generation that this reconcile has read, and no later one
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// recordEvent records an Event about a ReplicaSet. The Event is a warning unless it relates to a Pod.
func (r *reconciler) recordEvent(s *appsv1.ReplicaSet, p api.Object, reason, format string, args ...any) {
	e := events.Event{
		Resource: workload.ReplicaSets, Object: s,
		Type: events.Warning, Reason: reason, Note: fmt.Sprintf(format, args...),
	}
	if p != nil {
		e.Type, e.RelatedResource, e.Related = events.Normal, workload.Pods, p
	}
	r.recorder.Event(e)
}
