package replicas

import (
	"context"
	"fmt"
	"slices"
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
	"github.com/leatproject/leat/expectations"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/owner"
	"github.com/leatproject/leat/recorder"
)

// Options of a controller of ReplicaSets. Client, ReplicaSets, Pods and Recorder are required.
type Options struct {
	Client *apiclient.Client
	// ReplicaSets and Pods are what the controller reads. None of them has run yet.
	ReplicaSets *informer.Share[*appsv1.ReplicaSet]
	Pods        *informer.Share[*workload.Pod]
	Recorder    *recorder.Recorder

	// Burst is how many Pods of one ReplicaSet are made or deleted in one go. Zero means 500.
	Burst int
	// Controller are the options of the engine.
	Controller controller.Options
}

// New returns a controller of ReplicaSets. It corresponds to NewReplicaSetController of kube-controller-manager.
func New(o Options) *controller.Controller[api.Key] {
	r := newReconciler(o)
	gate := cachedclient.NewGate(cachedclient.GateOptions{Logger: o.Controller.Logger})
	c := controller.New("replicaset", controller.Gated[api.Key](r, gate), o.Controller)
	r.watch(c, o)
	return c
}

func newReconciler(o Options) *reconciler {
	if o.Burst == 0 {
		o.Burst = 500
	}
	sets := apiclient.NewTyped[*appsv1.ReplicaSet](o.Client, workload.ReplicaSets, "")
	pods := apiclient.NewPartial[*workload.Pod](o.Client, workload.Pods, "")
	return &reconciler{
		sets:         cachedclient.NewTyped(sets, o.ReplicaSets.Informer, cachedclient.Options{}),
		pods:         cachedclient.NewPartial(pods, o.Pods.Informer, cachedclient.Options{}),
		cached:       o.ReplicaSets.Cache(),
		newPods:      apiclient.NewTyped[*corev1.Pod](o.Client, workload.Pods, ""),
		recorder:     o.Recorder,
		burst:        o.Burst,
		setsByKeeper: informer.AddIndex(o.ReplicaSets.Informer, workload.KeeperOf[*appsv1.ReplicaSet]),
		podsByKeeper: informer.AddIndex(o.Pods.Informer, workload.KeeperOf[*workload.Pod]),
		byNamespace: informer.AddIndex(o.ReplicaSets.Informer, func(s *appsv1.ReplicaSet) []string {
			return []string{s.Namespace}
		}),
		expected: expectations.New[api.Key](expectations.Options{}),
	}
}

// reconciler makes the Pods of ReplicaSets as many as they want. Pods that it makes and deletes are expected; for what
// else it writes, which is statuses and what is adopted and released, a gate before it waits.
type reconciler struct {
	sets         *cachedclient.Typed[*appsv1.ReplicaSet]
	pods         *cachedclient.Partial[*workload.Pod]
	newPods      *apiclient.TypedClient[*corev1.Pod] // whole ones
	cached       cache.Reader[*appsv1.ReplicaSet]    // for handlers, which wait for nothing
	byNamespace  *cache.Index[*appsv1.ReplicaSet, string]
	setsByKeeper *cache.Index[*appsv1.ReplicaSet, workload.Keeper]
	podsByKeeper *cache.Index[*workload.Pod, workload.Keeper]
	expected     *expectations.Expectations[api.Key]
	recorder     *recorder.Recorder
	burst        int
}

// Reconcile takes the next steps of one ReplicaSet.
func (r *reconciler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	s, err := r.sets.Peek(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		r.expected.Forget(key)
		return controller.Result{}, nil
	case err != nil:
		return controller.Result{}, err
	}
	selector, err := r.check(s)
	if err != nil {
		return controller.Result{}, err
	}
	// Asked before the Pods are looked at: what comes in between is seen, and what is seen is not expected.
	satisfied := r.expected.Satisfied(key)
	f, err := r.find(ctx, s, selector)
	if err != nil {
		return controller.Result{}, err
	}
	var o outcome
	if satisfied && s.DeletionTimestamp == nil {
		o = r.manage(ctx, s, f.active)
	}
	status, next := statusOf(s, r.withoutDoomed(key, f), o, time.Now())
	if err := r.writeStatus(ctx, s, status); err != nil {
		return controller.Result{}, err
	}
	return controller.Result{RequeueAfter: next}, o.err
}

// check finds what no retry would mend, says so, and ends the tries.
func (r *reconciler) check(s *appsv1.ReplicaSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	switch {
	case err != nil:
		err = fmt.Errorf("replicas: the selector is invalid: %w", err)
	case s.Spec.Selector == nil || selector.Empty():
		err = fmt.Errorf("replicas: the selector is empty and would select all Pods of the namespace")
	case !selector.Matches(labels.Set(s.Spec.Template.Labels)):
		err = fmt.Errorf("replicas: the selector %s does not select the template's own labels", selector)
	default:
		return selector, nil
	}
	r.tell(s, nil, "InvalidSpec", "%v", err)
	return nil, controller.TerminalError(fmt.Errorf("replica set %s: %w", api.FormatKey(api.KeyOf(s)), err))
}

// find finds the Pods of a ReplicaSet, adopting orphans that it selects and releasing what it selects no more.
func (r *reconciler) find(ctx context.Context, s *appsv1.ReplicaSet, selector labels.Selector) (family, error) {
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
	mine := r.podsByKeeper.ByIndex(workload.Keeper{Controller: s.UID})
	orphans := r.podsByKeeper.ByIndex(workload.Keeper{Namespace: s.Namespace})
	var f family
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

// withoutDoomed counts Pods whose deletion was asked for as terminating, though the cache does not show it yet: whoever
// relies on the status must not be told of Pods that are about to go.
func (r *reconciler) withoutDoomed(key api.Key, f family) family {
	pending, _ := r.expected.Pending(key)
	var left family
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

// writeStatus writes a status if it says something new. A Deployment's controller writes the spec of the same object all
// the time, so a conflict is tried once more with the newest state.
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
				return nil // it has a successor, which its own reconcile looks after
			}
			s = newest
			status.ObservedGeneration = min(generation, newest.Generation) // what was looked at, and no later
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// tell tells of something that happened to a ReplicaSet, and went wrong unless the Pod is given that it went well with.
func (r *reconciler) tell(s *appsv1.ReplicaSet, p api.Object, reason, format string, args ...any) {
	e := recorder.Event{
		Resource: workload.ReplicaSets, Object: s,
		Type: recorder.Warning, Reason: reason, Note: fmt.Sprintf(format, args...),
	}
	if p != nil {
		e.Type, e.RelatedResource, e.Related = recorder.Normal, workload.Pods, p
	}
	r.recorder.Event(e)
}
