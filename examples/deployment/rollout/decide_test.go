package rollout

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/examples/deployment/workload"
)

func TestRoll(t *testing.T) {
	type sets [][3]int32 // of revisions 1, 2, …: size, available Pods, and 1 if the status is about an earlier size
	for name, c := range map[string]struct {
		replicas, surge, unavailable int32
		old                          sets
		next                         *[3]int32
		want                         []string
	}{
		"the first set":                            {10, 3, 2, nil, nil, []string{"create 10"}},
		"zero replicas":                            {0, 3, 2, nil, nil, []string{"create 0"}},
		"a new template":                           {10, 3, 2, sets{{10, 10}}, nil, []string{"create 3", "v1 10 to 8"}},
		"no surge":                                 {10, 0, 2, sets{{10, 10}}, nil, []string{"create 0", "v1 10 to 8"}},
		"nothing may be unavailable":               {10, 3, 0, sets{{10, 10}}, nil, []string{"create 3"}},
		"with both zero, one may be unavailable":   {10, 0, 0, sets{{10, 10}}, nil, []string{"create 0", "v1 10 to 9"}},
		"the new set grows first":                  {10, 3, 2, sets{{8, 8}}, &[3]int32{3, 0}, []string{"new 3 to 5"}},
		"at the maximum, no new Pod available":     {10, 3, 2, sets{{8, 8}}, &[3]int32{5, 0}, nil},
		"at the maximum, some new Pods available":  {10, 3, 2, sets{{8, 8}}, &[3]int32{5, 3}, []string{"v1 8 to 5"}},
		"status of the new set is old":             {10, 3, 2, sets{{8, 8}}, &[3]int32{5, 3, 1}, nil},
		"status of the old set is old":             {10, 3, 2, sets{{8, 8, 1}}, &[3]int32{5, 5}, nil},
		"not more than wanted":                     {10, 3, 2, sets{{1, 1}}, &[3]int32{9, 9}, []string{"new 9 to 10"}},
		"the new set is too large":                 {10, 3, 2, nil, &[3]int32{12, 12}, []string{"new 12 to 10"}},
		"the last old Pods":                        {10, 3, 2, sets{{3, 3}}, &[3]int32{10, 8}, []string{"v1 3 to 0"}},
		"the last old Pods except the needed ones": {10, 3, 2, sets{{3, 3}}, &[3]int32{10, 7}, []string{"v1 3 to 1"}},
		"unavailable old Pods go first":            {10, 3, 2, sets{{4, 4}, {6, 1}}, &[3]int32{3, 3}, []string{"v2 6 to 1"}},
		"unavailable old Pods, oldest set first":   {10, 3, 2, sets{{4, 2}, {6, 1}}, &[3]int32{3, 1}, []string{"v1 4 to 2", "v2 6 to 5"}},
		"unavailable and surplus Pods":             {10, 3, 2, sets{{5, 5}, {3, 2}}, &[3]int32{5, 5}, []string{"v1 5 to 1", "v2 3 to 2"}},
		"not more unavailable Pods than allowed":   {10, 3, 2, sets{{8, 0}}, &[3]int32{5, 2}, []string{"v1 8 to 6"}},
		"unavailable new Pods allow no removal":    {10, 3, 2, sets{{8, 7}}, &[3]int32{5, 0}, nil},
		"the status still counts deleted Pods":     {10, 3, 2, sets{{5, 8}}, &[3]int32{5, 5}, []string{"new 5 to 8"}},
		"the sum still counts deleted Pods":        {10, 3, 2, sets{{5, 9}}, &[3]int32{8, 5}, []string{"v1 5 to 3"}},
		"complete":                                 {10, 3, 2, sets{{0, 0}}, &[3]int32{10, 10}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeployment(c.replicas, c.surge, c.unavailable)
			d.Annotations[revisionAnnotation] = fmt.Sprint(len(c.old) + 1)
			var all []*appsv1.ReplicaSet
			add := func(image string, revision int, n [3]int32) {
				s := set(d, image, int32(revision), n[0], n[1])
				s.Generation += int64(n[2])
				all = append(all, s)
			}
			for i, n := range c.old {
				add(fmt.Sprint("v", i+1), i+1, n)
			}
			if c.next != nil {
				add("new", len(c.old)+1, *c.next)
			}
			if c.want == nil {
				c.want = []string{}
			}
			require.Equal(t, c.want, decide(at(d, all...)).lines())
		})
	}
}

// TestBudgetHolds simulates a controller that decides and a cluster that follows late and in any order. Deployments are
// scaled and get new templates at any time. Whatever state the controller sees, its decision never exceeds the maximum,
// and never removes Pods that must stay.
func TestBudgetHolds(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		sim := &simulation{random: random, deployment: newDeployment(1+random.Int32N(20), random.Int32N(6), random.Int32N(6))}
		for range 150 {
			sim.step(t)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		for range 100 {
			sim.decide(t)
			sim.follow(false)
		}
		require.True(t, complete(sim.deployment, &sim.deployment.Status), "seed %d: %+v", seed, sim.deployment.Status)
	}
}

// simulation is a Deployment, its sets and the numbers of their Pods.
type simulation struct {
	random     *rand.Rand
	deployment *appsv1.Deployment
	sets       []*simulated
	images     int
}

type simulated struct {
	*appsv1.ReplicaSet
	pods, available int32 // the real numbers; the status may be older
}

func (s *simulation) step(t *testing.T) {
	switch s.random.IntN(12) {
	case 0:
		s.images++
		s.deployment.Spec.Template = template(fmt.Sprint("image-", s.random.IntN(4)))
		s.deployment.Generation++
	case 1:
		n := s.random.Int32N(20)
		s.deployment.Spec.Replicas = &n
		s.deployment.Generation++
	case 2, 3, 4, 5, 6:
		s.decide(t)
	default:
		s.follow(true)
	}
}

// follow does the work of the ReplicaSet controller, for some sets or for all: it creates and deletes Pods, unavailable
// ones first, lets Pods become available, and writes the status. A set may have deleted Pods that its status still
// counts.
func (s *simulation) follow(some bool) {
	for _, set := range s.sets {
		if some && s.random.IntN(3) > 0 {
			continue
		}
		if seen := !some || s.random.IntN(2) == 0; seen {
			set.pods = sizeOf(set.ReplicaSet)
			set.available = min(set.available, set.pods)
			set.Status.Replicas, set.Status.ObservedGeneration = set.pods, set.Generation
		} else if s.random.IntN(2) == 0 {
			set.pods = min(set.pods, sizeOf(set.ReplicaSet))
			set.available = min(set.available, set.pods)
			continue
		}
		if gain := set.pods - set.available; gain > 0 {
			set.available += 1 + s.random.Int32N(gain)
		}
		set.Status.AvailableReplicas = set.available
	}
}

func (s *simulation) available() (sum int32) {
	for _, set := range s.sets {
		sum += min(set.available, sizeOf(set.ReplicaSet))
	}
	return sum
}

func (s *simulation) size() (sum int32) {
	for _, set := range s.sets {
		sum += sizeOf(set.ReplicaSet)
	}
	return sum
}

func (s *simulation) decide(t *testing.T) {
	b, err := budgetOf(s.deployment)
	require.NoError(t, err)
	most, least := replicas(s.deployment)+b.surge, replicas(s.deployment)-b.unavailable
	size, available := s.size(), s.available()
	var sets []*appsv1.ReplicaSet
	for _, set := range s.sets {
		sets = append(sets, set.ReplicaSet)
	}
	scaling := newDraft(observed{deployment: s.deployment, sets: sets, now: noon}).scaled()
	todo := decide(observed{deployment: s.deployment, sets: sets, now: noon})
	for _, c := range todo.changes {
		s.apply(c)
		require.LessOrEqual(t, s.size(), max(size, most), "after %v", todo.lines())
		for _, set := range s.sets {
			require.GreaterOrEqual(t, sizeOf(set.ReplicaSet), int32(0))
		}
	}
	if !scaling {
		require.GreaterOrEqual(t, s.available(), min(available, least), "after %v", todo.lines())
	}
	s.deployment.Status = todo.status
}

func (s *simulation) apply(c change) {
	switch {
	case c.was == nil:
		c.to.UID = types.UID(c.to.Name)
		c.to.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(len(s.sets)+s.images) * time.Second))
		c.to.Generation = 1
		s.sets = append(s.sets, &simulated{ReplicaSet: c.to})
	case c.to == nil:
		for i, set := range s.sets {
			if set.UID == c.was.UID {
				s.sets = append(s.sets[:i:i], s.sets[i+1:]...)
				return
			}
		}
	default:
		for _, set := range s.sets {
			if set.UID == c.was.UID {
				if sizeOf(set.ReplicaSet) != sizeOf(c.to) {
					c.to.Generation++
				}
				set.ReplicaSet = c.to
			}
		}
	}
}

func TestRecreateWaitsForTheLastPod(t *testing.T) {
	d := newDeployment(5, 0, 0)
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	old, empty := set(d, "v1", 1, 5, 5), set(d, "v1", 1, 0, 0)
	require.Equal(t, []string{"v1 5 to 0"}, decide(at(d, old)).lines())

	counted := set(d, "v1", 1, 0, 0)
	counted.Status.Replicas = 1
	require.Empty(t, decide(at(d, counted)).lines(), "its status counts one")
	for phase, waits := range map[corev1.PodPhase]bool{
		corev1.PodRunning: true, corev1.PodPending: true, corev1.PodUnknown: true, corev1.PodSucceeded: false, corev1.PodFailed: false,
	} {
		o := at(d, empty)
		o.pods = map[types.UID][]*workload.Pod{empty.UID: podsOf(phase, 1)}
		require.Equal(t, waits, len(decide(o).lines()) == 0, phase)
	}
	require.Equal(t, []string{"create 5"}, decide(at(d, empty)).lines())

	d.Annotations[revisionAnnotation] = "2"
	o := at(d, empty, set(d, "new", 2, 2, 2))
	o.pods = map[types.UID][]*workload.Pod{"uid-new": podsOf(corev1.PodRunning, 2)}
	require.Equal(t, []string{"new 2 to 5"}, decide(o).lines(), "Pods of the new set are not awaited")

	both := at(d, old, set(d, "new", 2, 2, 2))
	d.Spec.Replicas = new(int32)
	*d.Spec.Replicas = 7
	require.Equal(t, []string{"v1 5 to 0"}, decide(both).lines(), "scaled during the rollout, its old sets still go to zero")
}

func TestPausedAndDeletedDoNotRollOut(t *testing.T) {
	d := newDeployment(10, 3, 2)
	old, next := set(d, "v1", 1, 8, 8), set(d, "new", 2, 5, 5)
	require.NotEmpty(t, decide(at(d, old, next)).lines())
	d.Spec.Paused = true
	paused := decide(at(d, old, next))
	require.Empty(t, paused.lines())
	require.Zero(t, paused.after)
	require.Equal(t, "Unknown DeploymentPaused", is(paused.status, appsv1.DeploymentProgressing))
	require.Empty(t, decide(at(d, set(d, "v1", 1, 10, 10))).lines(), "paused, it creates no set")

	d.Spec.Replicas = new(int32)
	require.Equal(t, []string{"new 5 to 0", "v1 8 to 0"}, decide(at(d, old, next)).lines(), "it is scaled")

	now := metav1.NewTime(noon)
	d.DeletionTimestamp = &now
	gone := decide(at(d, old, next))
	require.Empty(t, gone.lines())
	require.Empty(t, gone.revision)
	require.Zero(t, gone.after)
	require.EqualValues(t, 13, gone.status.Replicas)
}

func TestCleanUp(t *testing.T) {
	d := newDeployment(1, 1, 0)
	limit := int32(2)
	d.Spec.RevisionHistoryLimit = &limit
	next := set(d, "new", 7, 1, 1)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	d.Annotations[revisionAnnotation] = "7"
	olds := func(change ...func(*appsv1.ReplicaSet)) []*appsv1.ReplicaSet {
		var all []*appsv1.ReplicaSet
		for i := range int32(5) {
			// The oldest set has the highest revision of the old ones, because of a rollback.
			s := set(d, fmt.Sprint("v", i+1), i+1, 0, 0)
			s.CreationTimestamp = metav1.NewTime(noon.Add(-time.Duration(i) * time.Minute))
			all = append(all, s)
		}
		for _, f := range change {
			f(all[1])
		}
		return append(all, next)
	}
	now := metav1.NewTime(noon)
	require.ElementsMatch(t, []string{"delete v1", "delete v2", "delete v3"}, decide(at(d, olds()...)).lines())
	for name, c := range map[string]func(*appsv1.ReplicaSet){
		"it has Pods":              func(s *appsv1.ReplicaSet) { s.Status.Replicas = 1 },
		"it has not been observed": func(s *appsv1.ReplicaSet) { s.Generation = 2 },
	} {
		require.ElementsMatch(t, []string{"delete v1", "delete v3"}, decide(at(d, olds(c)...)).lines(), name)
	}
	require.ElementsMatch(t, []string{"delete v1", "delete v3"},
		decide(at(d, olds(func(s *appsv1.ReplicaSet) { s.DeletionTimestamp = &now })...)).lines(), "a deleted set does not count")

	d.Status.AvailableReplicas = 0
	require.Empty(t, decide(at(d, olds()...)).lines(), "the rollout is not complete")
	d.Spec.Paused = true
	require.Len(t, decide(at(d, olds()...)).lines(), 3, "paused, completeness does not matter")
	d.Spec.RevisionHistoryLimit = nil
	require.Empty(t, decide(at(d, olds()...)).lines(), "ten are kept")
}
