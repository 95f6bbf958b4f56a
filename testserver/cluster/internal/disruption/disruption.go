package disruption

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

// deletionLimit is the time within which an evicted pod should be deleted.
const deletionLimit = 2 * time.Minute

var (
	budgetResource = api.Resource{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets", Namespaced: true}
	podResource    = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

// pod has the fields of a pod that a budget depends on.
type pod struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions []corev1.PodCondition `json:"conditions"`
	} `json:"status"`
}

func (p *pod) ready() bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// object has only metadata.
type object struct {
	metav1.ObjectMeta `json:"metadata"`
}

// Options are the options of Budgets.
type Options struct {
	// Controller are the options of the controller.
	Controller controller.Options
}

// Budgets keeps the status of the budgets of a cluster.
type Budgets struct {
	client  *apiclient.Client
	budgets *apiclient.TypedClient[*policyv1.PodDisruptionBudget]
	mapper  *discovery.Mapper

	budgetCache *informer.Informer[*policyv1.PodDisruptionBudget]
	podCache    *informer.Informer[*pod]
	inNamespace *cache.Index[*policyv1.PodDisruptionBudget, string]
	pods        *cache.Index[*pod, string]
	controller  *controller.Controller[api.Key]

	wanted func() // starts the cache of pods
	synced <-chan struct{}
	follow chan struct{} // closed by wanted
}

// New returns a controller of the budgets that a client reaches.
func New(client *apiclient.Client, o Options) *Budgets {
	b := &Budgets{
		client: client, mapper: discovery.New(client, discovery.Options{}),
		budgets: apiclient.NewTyped[*policyv1.PodDisruptionBudget](client, budgetResource, ""),
	}
	b.budgetCache = informer.New(b.budgets, informer.Options[*policyv1.PodDisruptionBudget]{})
	b.podCache = informer.New(apiclient.NewPartial[*pod](client, podResource, ""), informer.Options[*pod]{})
	b.inNamespace = informer.AddIndex(b.budgetCache, cache.ByNamespace[*policyv1.PodDisruptionBudget])
	b.pods = informer.AddIndex(b.podCache, cache.ByNamespace[*pod])
	b.controller = controller.New("disruption", controller.Func[api.Key](b.reconcile), o.Controller)
	b.controller.Watch(controller.For(b.budgetCache))
	b.follow = make(chan struct{})
	b.wanted = sync.OnceFunc(func() { close(b.follow) })
	return b
}

// Run works until ctx ends. It returns after its goroutines have ended. It runs once.
func (b *Budgets) Run(ctx context.Context) error {
	registration, err := b.podCache.Subscribe(b.podChanged, informer.HandlerOptions{Name: "disruption"})
	if err != nil {
		return fmt.Errorf("disruption: %w", err)
	}
	b.synced = registration.Synced()
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{b.budgetCache.Run, b.followPods, b.controller.Run} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// followPods runs the cache of pods as soon as there is a budget. A cluster without budgets then pays nothing for the
// changes of its pods. The first budget waits for a list.
func (b *Budgets) followPods(ctx context.Context) error {
	select {
	case <-b.follow:
		return b.podCache.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// podChanged adds the budgets of a pod.
func (b *Budgets) podChanged(n api.Change[*pod]) {
	b.add(n.Object)
	if n.Type == api.Updated {
		b.add(n.Old)
	}
}

func (b *Budgets) add(p *pod) {
	for _, budget := range b.inNamespace.ByIndex(p.Namespace) {
		if selects(budget, p) {
			b.controller.Add(api.KeyOf(budget), workqueue.Item{})
		}
	}
}

// selects reports whether a budget covers a pod. A budget without a selector, or with an invalid one, covers none.
func selects(budget *policyv1.PodDisruptionBudget, p *pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

// reconcile writes the status of a budget.
func (b *Budgets) reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	budget, found := b.budgetCache.Cache().Get(key)
	if !found {
		return controller.Result{}, nil
	}
	b.wanted()
	select {
	case <-b.synced:
	case <-ctx.Done():
		return controller.Result{}, context.Cause(ctx)
	}
	var pods []*pod
	for _, p := range b.pods.ByIndex(key.Namespace) {
		if selects(budget, p) {
			pods = append(pods, p)
		}
	}
	status, wait := *budget.Status.DeepCopy(), time.Duration(0)
	expected, desired, failure := b.demand(ctx, budget, pods)
	if failure == nil {
		wait = count(&status, pods, expected, desired, time.Now())
		setCondition(&status, budget.Generation, "")
	} else {
		status.DisruptionsAllowed = 0
		setCondition(&status, budget.Generation, failure.Error())
	}
	status.ObservedGeneration = budget.Generation
	if !equality.Semantic.DeepEqual(status, budget.Status) {
		budget = budget.DeepCopy()
		budget.Status = status
		if _, err := b.budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return controller.Result{}, err
		}
	}
	return controller.Result{RequeueAfter: wait}, failure
}

// count counts the healthy pods, and returns the time until an eviction is forgotten.
func count(status *policyv1.PodDisruptionBudgetStatus, pods []*pod, expected, desired int32, now time.Time) (wait time.Duration) {
	pending := map[string]metav1.Time{}
	healthy := int32(0)
	for _, p := range pods {
		if at, evicted := status.DisruptedPods[p.Name]; evicted && p.DeletionTimestamp == nil {
			if left := at.Add(deletionLimit).Sub(now); left > 0 {
				pending[p.Name] = at
				if wait == 0 || left < wait {
					wait = left
				}
				continue
			}
		}
		if p.DeletionTimestamp == nil && p.ready() {
			healthy++
		}
	}
	status.DisruptedPods = nil
	if len(pending) > 0 {
		status.DisruptedPods = pending
	}
	status.CurrentHealthy, status.DesiredHealthy, status.ExpectedPods = healthy, desired, expected
	status.DisruptionsAllowed = 0
	if expected > 0 {
		status.DisruptionsAllowed = max(healthy-desired, 0)
	}
	return wait
}

// setCondition sets the condition DisruptionAllowed. A failure is the reason why the numbers are unknown.
func setCondition(status *policyv1.PodDisruptionBudgetStatus, generation int64, failure string) {
	c := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: generation,
	}
	switch {
	case failure != "":
		c.Reason, c.Message = policyv1.SyncFailedReason, failure
	case status.DisruptionsAllowed > 0:
		c.Status, c.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	meta.SetStatusCondition(&status.Conditions, c)
}

// demand returns the number of pods that a budget expects, and how many of them must be healthy.
func (b *Budgets) demand(ctx context.Context, budget *policyv1.PodDisruptionBudget, pods []*pod) (expected, desired int32, err error) {
	least, most := budget.Spec.MinAvailable, budget.Spec.MaxUnavailable
	if most == nil && least != nil && least.Type == intstr.Int {
		return int32(len(pods)), least.IntVal, nil
	}
	if most == nil && least == nil {
		return 0, 0, nil
	}
	if expected, err = b.replicas(ctx, pods); err != nil {
		return 0, 0, err
	}
	if most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, int(expected), true)
		return expected, max(expected-int32(n), 0), err
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(least, int(expected), true)
	return expected, int32(n), err
}

// replicas returns the sum of the replicas of the owners of pods. Pods without an owner do not count.
func (b *Budgets) replicas(ctx context.Context, pods []*pod) (sum int32, err error) {
	seen := map[types.UID]bool{}
	for _, p := range pods {
		ref := metav1.GetControllerOfNoCopy(p)
		if ref == nil || seen[ref.UID] {
			continue
		}
		seen[ref.UID] = true
		uid, n, err := b.scaleOf(ctx, p.Namespace, *ref)
		switch {
		case apierrors.IsNotFound(err):
			continue // the owner is gone
		case err != nil:
			return 0, err
		case uid == ref.UID || !seen[uid]:
			seen[uid] = true
			sum += n
		}
	}
	return sum, nil
}

// scaleOf returns the replicas of an owner. A ReplicaSet of a Deployment has those of the Deployment.
func (b *Budgets) scaleOf(ctx context.Context, namespace string, ref metav1.OwnerReference) (types.UID, int32, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", 0, err
	}
	r, err := b.mapper.ForKind(ctx, gv.WithKind(ref.Kind))
	if err != nil {
		return "", 0, err
	}
	key := api.Key{Namespace: namespace, Name: ref.Name}
	if gv.Group == "apps" && ref.Kind == "ReplicaSet" {
		set, err := apiclient.NewPartial[*object](b.client, r.Resource, "").Get(ctx, key, metav1.GetOptions{})
		if err != nil {
			return "", 0, err
		}
		if up := metav1.GetControllerOfNoCopy(set); up != nil && up.Kind == "Deployment" {
			return b.scaleOf(ctx, namespace, *up)
		}
	}
	if !slices.ContainsFunc(r.Subresources, func(s discovery.Subresource) bool { return s.Name == "scale" }) {
		return "", 0, fmt.Errorf("%s does not implement the scale subresource", r.GroupResource())
	}
	endpoint := apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](b.client, r.Resource, key, "scale")
	scale, err := endpoint.Get(ctx, metav1.GetOptions{})
	if err != nil {
		return "", 0, err
	}
	return ref.UID, scale.Spec.Replicas, nil
}
