package rollout

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/leatproject/leat/reconcile/owner"
	"github.com/leatproject/leat/scale/shard"
)

// Options are the options of a controller of Deployments. Shards and Controller are optional.
type Options struct {
	// Deployments, ReplicaSets and Pods are the caches that the controller reads. They have not run yet.
	Deployments *cachedclient.Typed[*appsv1.Deployment]
	ReplicaSets *cachedclient.Typed[*appsv1.ReplicaSet]
	Pods        *cachedclient.Partial[*workload.Pod]
	Recorder    *events.Recorder

	// Shards divides the Deployments among replicas. Nil means that this replica works on all.
	Shards *shard.Kind[*appsv1.Deployment]
	// Controller are the options of the controller. MaxRetries 0 means 15, as in kube-controller-manager.
	Controller controller.Options
}

// New returns a controller of Deployments. It corresponds to NewDeploymentController of kube-controller-manager.
func New(o Options) *controller.Controller[api.Key] {
	if o.Controller.MaxRetries == 0 {
		o.Controller.MaxRetries = 15
	}
	r := newReconciler(o)
	gate := cachedclient.NewGate(cachedclient.GateOptions{Logger: o.Controller.Logger})
	var work controller.Reconciler[api.Key] = r
	if o.Shards != nil {
		work = o.Shards.Reconciler(work)
	}
	c := controller.New("deployment", controller.Gated(work, gate), o.Controller)
	r.watch(c, o)
	return c
}

func newReconciler(o Options) *reconciler {
	return &reconciler{
		deployments:       o.Deployments,
		sets:              o.ReplicaSets,
		pods:              o.Pods.Informer(),
		cachedDeployments: o.Deployments.Informer().Cache(),
		cachedSets:        o.ReplicaSets.Informer().Cache(),
		recorder:          o.Recorder,
		setsByOwner:       informer.AddIndex(o.ReplicaSets.Informer(), workload.OwnerOf[*appsv1.ReplicaSet]),
		podsByOwner:       informer.AddIndex(o.Pods.Informer(), workload.OwnerOf[*workload.Pod]),
		byNamespace: informer.AddIndex(o.Deployments.Informer(), func(d *appsv1.Deployment) []string {
			return []string{d.Namespace}
		}),
	}
}

// reconciler reads the caches, calls decide and writes the result. A gate delays a Deployment until the caches show the
// last writes, because a decision from old state is usually wrong. The server's check of versions would not find this
// if several objects are written together.
type reconciler struct {
	deployments *cachedclient.Typed[*appsv1.Deployment]
	sets        *cachedclient.Typed[*appsv1.ReplicaSet]
	byNamespace *cache.Index[*appsv1.Deployment, string]
	setsByOwner *cache.Index[*appsv1.ReplicaSet, workload.Owner]
	podsByOwner *cache.Index[*workload.Pod, workload.Owner]
	recorder    *events.Recorder
	pods        *informer.Informer[*workload.Pod]

	// for handlers, which must not block
	cachedDeployments cache.Reader[*appsv1.Deployment]
	cachedSets        cache.Reader[*appsv1.ReplicaSet]
}

// snapshots are one state of each cache. A reconcile reads nothing else. If it read a cache twice, a ReplicaSet that is
// adopted between the two reads could be missing in both: it is not owned yet, and then it is no orphan any more.
type snapshots struct {
	deployments *cache.Snapshot[*appsv1.Deployment]
	sets        *cache.Snapshot[*appsv1.ReplicaSet]
	pods        *cache.Snapshot[*workload.Pod]
	at          time.Time
}

// read takes the snapshots for one reconcile.
func (r *reconciler) read() snapshots {
	return snapshots{r.deployments.Informer().Snapshot(), r.sets.Informer().Snapshot(), r.pods.Snapshot(), time.Now()}
}

// conflictRetry is the time after a conflict until the next reconcile, if no event comes earlier.
const conflictRetry = 5 * time.Second

// Reconcile takes the next steps of one Deployment's rollout.
//
// A conflict is not an error that people must see: the newer state is on its way to the cache and causes another
// reconcile. But a conflict can also come from something else, such as a quota. Then no event follows, so the
// Deployment is reconciled again after a while.
func (r *reconciler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	result, err := r.reconcile(ctx, key)
	if apierrors.IsConflict(err) {
		return controller.Result{RequeueAfter: conflictRetry}, nil
	}
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	if _, err := r.deployments.Peek(ctx, key); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, err // the cache does not have the scope of the key yet
	}
	seen := r.read()
	d, found := seen.deployments.Get(key)
	if !found {
		return controller.Result{}, nil // the garbage collector deletes the ReplicaSets
	}
	selector, err := check(d)
	switch {
	case errors.Is(err, errSelectsAll):
		return controller.Result{}, r.reportSelectsAll(ctx, d)
	case err != nil:
		return controller.Result{}, r.reportInvalid(ctx, d, err, seen.at)
	}
	sets, err := r.claim(ctx, d, selector, seen.sets)
	if err != nil {
		return controller.Result{}, err
	}
	todo := decide(observed{deployment: d, sets: sets, pods: r.podsOf(sets, seen.pods), now: seen.at})
	if todo.rollback != nil {
		return controller.Result{}, settled(r.rollBack(ctx, todo.rollback))
	}
	if err := r.carryOut(ctx, d, todo); err != nil {
		return controller.Result{}, settled(err)
	}
	return controller.Result{RequeueAfter: todo.after}, nil
}

// settled returns nil for errors that need no retry: in a terminating namespace nothing can be created.
func settled(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// claim returns the ReplicaSets of a Deployment. It adopts orphans that the selector matches, and releases sets that it
// no longer matches.
func (r *reconciler) claim(ctx context.Context, d *appsv1.Deployment, selector labels.Selector, cached *cache.Snapshot[*appsv1.ReplicaSet]) ([]*appsv1.ReplicaSet, error) {
	claimer := owner.Claimer[*appsv1.Deployment, *appsv1.ReplicaSet]{
		Owner: d, Resource: workload.Deployments,
		Selects: func(s *appsv1.ReplicaSet) bool { return selector.Matches(labels.Set(s.Labels)) },
		Live: func(ctx context.Context) (*appsv1.Deployment, error) {
			return r.deployments.Live().Get(ctx, api.KeyOf(d), metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, s *appsv1.ReplicaSet, patch []byte) (*appsv1.ReplicaSet, error) {
			return r.sets.Patch(ctx, api.KeyOf(s), apiclient.Patch{Type: types.MergePatchType, Data: patch}, apiclient.PatchOptions{})
		},
	}
	var candidates []*appsv1.ReplicaSet
	for _, of := range []workload.Owner{{Controller: d.UID}, {Namespace: d.Namespace}} { // its own, and orphans
		for _, s := range r.setsByOwner.In(cached, of) {
			candidates = append(candidates, s)
		}
	}
	return claimer.Claim(ctx, candidates)
}

// podsOf returns the Pods of each set.
func (r *reconciler) podsOf(sets []*appsv1.ReplicaSet, cached *cache.Snapshot[*workload.Pod]) map[types.UID][]*workload.Pod {
	pods := map[types.UID][]*workload.Pod{}
	for _, s := range sets {
		for _, p := range r.podsByOwner.In(cached, workload.Owner{Controller: s.UID}) {
			pods[s.UID] = append(pods[s.UID], p)
		}
	}
	return pods
}

// carryOut makes the changes of a decision and then writes the status. If a change fails permanently, the status says
// so if it can be written.
func (r *reconciler) carryOut(ctx context.Context, d *appsv1.Deployment, todo decision) error {
	for _, c := range todo.changes {
		done, err := r.change(ctx, d, c)
		if err != nil || !done {
			return err
		}
	}
	if todo.revision == "" {
		return r.writeStatus(ctx, d, todo.status)
	}
	d = d.DeepCopy()
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, revisionAnnotation, todo.revision)
	d.Status = todo.status
	return r.putStatus(ctx, d)
}

// writeStatus writes a changed status.
func (r *reconciler) writeStatus(ctx context.Context, d *appsv1.Deployment, status appsv1.DeploymentStatus) error {
	if equality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	d = d.DeepCopy()
	d.Status = status
	return r.putStatus(ctx, d)
}

// putStatus writes the status of a Deployment together with its annotations. A server accepts annotations in an update
// of a Deployment's status; in an ordinary update they would increment metadata.generation. A Deployment that is gone
// is no error.
func (r *reconciler) putStatus(ctx context.Context, d *appsv1.Deployment) error {
	if _, err := r.deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// rollBack writes the result of a rollback request, and records an Event.
func (r *reconciler) rollBack(ctx context.Context, b *rollback) error {
	stored, err := r.deployments.Update(ctx, b.to, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	r.recordEvent(stored, b.warning, b.reason, b.note)
	return nil
}

// reportSelectsAll records an Event about a Deployment with an empty selector, once a generation. The Deployment is not
// reconciled further.
func (r *reconciler) reportSelectsAll(ctx context.Context, d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration >= d.Generation {
		return nil
	}
	r.recordEvent(d, true, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
	status := *d.Status.DeepCopy()
	status.ObservedGeneration = d.Generation
	return settled(r.writeStatus(ctx, d, status))
}

// reportInvalid reports an error of a Deployment in a condition and an Event, once. It does not retry, because only the
// user can correct the Deployment.
func (r *reconciler) reportInvalid(ctx context.Context, d *appsv1.Deployment, wrong error, at time.Time) error {
	status := *d.Status.DeepCopy()
	status.ObservedGeneration = d.Generation
	said := find(status.Conditions, appsv1.DeploymentProgressing)
	if said == nil || said.Reason != reasonInvalid || said.Message != wrong.Error() {
		r.recordEvent(d, true, reasonInvalid, wrong.Error())
		now := metav1.NewTime(at).Rfc3339Copy()
		status.Conditions = replaceCondition(status.Conditions,
			condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonInvalid, wrong.Error(), now))
	}
	if err := settled(r.writeStatus(ctx, d, status)); err != nil {
		return err
	}
	return controller.TerminalError(fmt.Errorf("deployment %s: %w", api.FormatKey(api.KeyOf(d)), wrong))
}

func (r *reconciler) recordEvent(d *appsv1.Deployment, warning bool, reason, note string) {
	kind := events.Normal
	if warning {
		kind = events.Warning
	}
	r.recorder.Event(events.Event{Resource: workload.Deployments, Object: d, Type: kind, Reason: reason, Note: note})
}
