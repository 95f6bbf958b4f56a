package replicas

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// pod returns a Pod that was created an hour ago on node n, and has been ready for half an hour. change then changes
// it.
func pod(change func(*workload.Pod)) *workload.Pod {
	p := &workload.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "m", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec:       workload.PodSpec{NodeName: "n"},
		Status:     workload.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []workload.ContainerStatus{{RestartCount: 1}}},
	}
	readySince(30 * time.Minute)(p)
	if change != nil {
		change(p)
	}
	return p
}

func readySince(ago time.Duration) func(*workload.Pod) {
	return func(p *workload.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-ago)),
		}}
	}
}

// TestOrderOfDeletion has two Pods for each criterion. The criterion decides although every later criterion would
// decide otherwise.
func TestOrderOfDeletion(t *testing.T) {
	older := func(p *workload.Pod) {
		p.CreationTimestamp = metav1.NewTime(noon.Add(-24 * time.Hour))
		p.UID = "z"
	}
	both := func(all ...func(*workload.Pod)) func(*workload.Pod) {
		return func(p *workload.Pod) {
			for _, f := range all {
				f(p)
			}
		}
	}
	noRestarts := func(p *workload.Pod) { p.Status.ContainerStatuses = nil }
	cost := func(c string) func(*workload.Pod) {
		return func(p *workload.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: c} }
	}
	unready := func(p *workload.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	phase := func(is corev1.PodPhase) func(*workload.Pod) {
		return func(p *workload.Pod) { p.Status.Phase = is }
	}
	for name, c := range map[string]struct{ first, second func(*workload.Pod) }{
		"without a node":                   {both(func(p *workload.Pod) { p.Spec.NodeName = "" }, older), phase(corev1.PodPending)},
		"pending before unknown":           {both(phase(corev1.PodPending), older), both(phase(corev1.PodUnknown), unready)},
		"unknown before running":           {both(phase(corev1.PodUnknown), older), unready},
		"not ready":                        {both(unready, cost("9"), older), nil},
		"cheap":                            {both(cost("-1"), older), nil},
		"no annotation before a high cost": {both(older, noRestarts), cost("1")},
		"an annotation that cannot be parsed is zero": {both(cost("much"), older, noRestarts), cost("1")},
		"ready for a shorter time":                    {both(readySince(time.Minute), older, noRestarts), nil},
		"restarted more often":                        {both(func(p *workload.Pod) { p.Status.ContainerStatuses[0].RestartCount = 2 }, older), nil},
		"younger":                                     {func(p *workload.Pod) { p.UID = "z" }, func(p *workload.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-24 * time.Hour)) }},
		"same age: the UID":                           {nil, func(p *workload.Pod) { p.UID = "z"; p.CreationTimestamp = metav1.NewTime(noon.Add(-59 * time.Minute)) }},
	} {
		first, second := pod(c.first), pod(c.second)
		first.Name, second.Name = "first", "second"
		for _, pods := range [][]*workload.Pod{{first, second}, {second, first}} {
			chosen := toDelete(pods, nil, 1, noon)
			require.Len(t, chosen, 1)
			require.Equal(t, "first", chosen[0].Name, name)
		}
	}
	require.Len(t, toDelete([]*workload.Pod{pod(nil)}, nil, 5, noon), 1)
}

func TestPodsOnCrowdedNodesGoFirst(t *testing.T) {
	on := func(node string, uid string) *workload.Pod {
		return pod(func(p *workload.Pod) {
			p.Spec.NodeName, p.UID, p.Name = node, types.UID(uid), uid
		})
	}
	own := []*workload.Pod{on("a", "1"), on("b", "2")}
	ended := on("a", "5")
	ended.Status.Phase = corev1.PodFailed
	related := append(own, on("b", "3"), ended, ended)
	require.Equal(t, "2", toDelete(own, related, 1, noon)[0].Name, "another set of the same Deployment has a Pod on its node")
}

func TestFailureIsReported(t *testing.T) {
	s := &appsv1.ReplicaSet{}
	failed := outcome{tried: true, reason: "FailedCreate", err: errors.New("quota")}
	status, _ := statusOf(s, ownedPods{}, failed, noon)
	require.Len(t, status.Conditions, 1)
	require.Equal(t, "FailedCreate", status.Conditions[0].Reason)
	require.Equal(t, "quota", status.Conditions[0].Message)

	s.Status = status
	failed.err = errors.New("another quota")
	again, _ := statusOf(s, ownedPods{}, failed, noon.Add(time.Hour))
	require.Equal(t, status, again, "the first message stays, so there is no write")
	unknown, _ := statusOf(s, ownedPods{}, outcome{}, noon)
	require.Equal(t, status, unknown, "without an attempt the condition stays")
	over, _ := statusOf(s, ownedPods{}, outcome{tried: true}, noon)
	require.Empty(t, over.Conditions)
	other, _ := statusOf(s, ownedPods{}, outcome{tried: true, reason: "FailedDelete", err: errors.New("no")}, noon)
	require.Len(t, other.Conditions, 1)
	require.Equal(t, "FailedDelete", other.Conditions[0].Reason)
}

func TestStatusCounts(t *testing.T) {
	s := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	s.Spec.MinReadySeconds = 60
	s.Spec.Template.Labels = map[string]string{"app": "web", "hash": "1"}
	labelled := func(p *workload.Pod) { p.Labels = map[string]string{"app": "web", "hash": "1", "more": "x"} }
	f := ownedPods{
		active: []*workload.Pod{
			pod(labelled), pod(readySince(20 * time.Second)), pod(readySince(50 * time.Second)),
			pod(func(p *workload.Pod) { p.Status.Conditions = nil }),
		},
		terminating: []*workload.Pod{pod(nil), pod(nil)},
	}
	two := int32(2)
	status, next := statusOf(s, f, outcome{}, noon)
	require.Equal(t, appsv1.ReplicaSetStatus{
		Replicas: 4, FullyLabeledReplicas: 1, ReadyReplicas: 3, AvailableReplicas: 1, TerminatingReplicas: &two, ObservedGeneration: 3,
	}, status)
	require.Equal(t, 10*time.Second, next, "until the next Pod is available")
}

// rig is a reconciler of ReplicaSets with a server. The tests decide when its caches run.
type rig struct {
	*reconciler
	server *testserver.Server
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{server: testserver.New(testserver.Options{})}
	fixture.Start(t, r.server.Run)
	client := must.Get(apiclient.New(apiclient.Config{Host: r.server.URL(), Transport: r.server.Client().Transport}))(t)
	events := must.Get(events.New(client, events.Options{Controller: "test"}))(t)
	p := must.Get(program.New(program.Options{Name: "test", Client: client, Logger: zap.NewNop()}))(t)
	r.reconciler = newReconciler(Options{
		Client: client, Recorder: events,
		ReplicaSets: program.Typed(p, workload.ReplicaSets, informer.Options[*appsv1.ReplicaSet]{}),
		Pods:        program.Partial(p, workload.Pods, informer.Options[*workload.Pod]{}),
	})
	require.NoError(t, p.Err())
	fixture.Start(t, p.Informers.Run)
	return r
}

// onRig runs a test in a bubble, with a rig whose caches have listed.
func onRig(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		synctest.Wait()
		test(t, r)
	})
}

var web = api.Key{Namespace: "shop", Name: "web"}

// create stores a ReplicaSet that wants n Pods.
func (r *rig) create(t *testing.T, n int32) {
	t.Helper()
	app := map[string]string{"app": "web"}
	must.Get(r.server.Create(workload.ReplicaSets, &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}},
		},
	}))(t)
	synctest.Wait()
}

func (r *rig) count(t *testing.T) int {
	t.Helper()
	all := must.Get(r.server.List(workload.Pods, ""))(t)
	return len(all)
}

func (r *rig) reconcile(t *testing.T) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), web)
	synctest.Wait()
	return err
}

func TestLateCacheMakesNoPodTwice(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		r.create(t, 7)
		stalled := r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}, Resource: "pods"}, Effect: faults.StallEvents{}})
		for range 3 {
			require.NoError(t, r.reconcile(t))
			require.Equal(t, 7, r.count(t))
		}
		stalled.Remove()
		synctest.Wait()
		pending, some := r.expected.Pending(web)
		require.True(t, some, "no source settles the expectations")
		require.Equal(t, 7, pending.Creations)
		r.expected.Created(web, 7)
		require.NoError(t, r.reconcile(t))
		require.Equal(t, 7, r.count(t))
	})
}

// TestNothingIsExpectedOfAFormerIncarnation replaces a ReplicaSet whose Pod the cache does not have yet.
func TestNothingIsExpectedOfAFormerIncarnation(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		r.create(t, 1)
		require.NoError(t, r.reconcile(t))
		require.Equal(t, 1, r.count(t))
		require.False(t, r.expected.Satisfied(web), "no source settles the expectations")
		require.NoError(t, r.server.Delete(workload.ReplicaSets, web))
		r.create(t, 1)
		require.NoError(t, r.reconcile(t))
		require.Equal(t, 2, r.count(t), "the new one has a Pod too")
	})
}

func TestFailedCreationsAreNotExpected(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		r.create(t, 20)
		quota := r.server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"create"}, Resource: "pods"}, Skip: 5, Effect: faults.Fail{Code: 403, Message: "exceeded quota"},
		})
		require.ErrorContains(t, r.reconcile(t), "exceeded quota")
		require.Equal(t, 5, r.count(t), "batches of one and two, and two of the batch of four")
		require.Equal(t, 2, quota.Seen(), "there is no batch after a failure")
		pending, _ := r.expected.Pending(web)
		require.Equal(t, 5, pending.Creations)
		r.expected.Created(web, 5)
		quota.Remove()
		require.NoError(t, r.reconcile(t))
		require.Equal(t, 20, r.count(t))
	})
}

func TestDeletedPodsAreNotCounted(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		r.create(t, 5)
		require.NoError(t, r.reconcile(t))
		r.expected.Created(web, 5)
		none := int32(2)
		s, found := r.cached.Get(web)
		require.True(t, found)
		s = s.DeepCopy()
		s.Spec.Replicas = &none
		must.Get(r.server.Update(workload.ReplicaSets, s))(t)
		synctest.Wait()
		stalled := r.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}, Resource: "pods"}, Effect: faults.StallEvents{}})
		for range 2 {
			require.NoError(t, r.reconcile(t))
			s, _ = r.cached.Get(web)
			require.EqualValues(t, 2, s.Status.Replicas, "the cache still shows five")
			require.EqualValues(t, 3, *s.Status.TerminatingReplicas)
			require.Equal(t, s.Generation, s.Status.ObservedGeneration)
		}
		stalled.Remove()
		synctest.Wait()
	})
}

func TestInvalidIsNotRetried(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		for i, change := range []func(*appsv1.ReplicaSetSpec){
			func(s *appsv1.ReplicaSetSpec) { s.Selector = nil },
			func(s *appsv1.ReplicaSetSpec) { s.Selector = &metav1.LabelSelector{} },
			func(s *appsv1.ReplicaSetSpec) { s.Selector.MatchLabels["app"] = "not a label" },
			func(s *appsv1.ReplicaSetSpec) { s.Template.Labels = nil },
		} {
			n := int32(1)
			s := &appsv1.ReplicaSet{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
				ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: fmt.Sprint("bad-", i)},
				Spec: appsv1.ReplicaSetSpec{
					Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}},
				},
			}
			change(&s.Spec)
			_, err := r.server.Create(workload.ReplicaSets, s)
			require.NoError(t, err)
			synctest.Wait()
			_, err = r.Reconcile(t.Context(), api.KeyOf(s))
			require.ErrorIs(t, err, controller.ErrTerminal)
			require.Zero(t, r.count(t))
		}
	})
}

// TestPodsOfAFormerIncarnationAreIgnored observes Pods of the ReplicaSet, and of an earlier one of the same name.
func TestPodsOfAFormerIncarnationAreIgnored(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		r.create(t, 0)
		s, found := r.cached.Get(web)
		require.True(t, found)
		r.expected.Expect(web, 2)
		seen := func(uid types.UID) int {
			yes := true
			p := pod(func(p *workload.Pod) {
				p.Namespace = web.Namespace
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: web.Name, UID: uid, Controller: &yes}}
			})
			require.True(t, r.observe(api.Change[*workload.Pod]{Type: api.Added, Object: p}))
			pending, _ := r.expected.Pending(web)
			return pending.Creations
		}
		require.Equal(t, 2, seen("former"))
		require.Equal(t, 1, seen(s.UID))
	})
}
