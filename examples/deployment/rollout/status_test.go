package rollout

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const progressing, availability = appsv1.DeploymentProgressing, appsv1.DeploymentAvailable

func TestStatusCounts(t *testing.T) {
	d := newDeployment(10, 3, 2)
	d.Generation = 7
	collisions := int32(4)
	d.Status.CollisionCount = &collisions
	old, next := set(d, "v1", 1, 8, 6), set(d, "new", 2, 5, 2)
	old.Status.Replicas, old.Status.ReadyReplicas, *old.Status.TerminatingReplicas = 8, 7, 2
	next.Status.ReadyReplicas, *next.Status.TerminatingReplicas = 3, 1
	s := decide(at(d, old, next)).status
	three := int32(3)
	s.Conditions = nil
	require.Equal(t, appsv1.DeploymentStatus{
		ObservedGeneration: 7, Replicas: 13, UpdatedReplicas: 5, ReadyReplicas: 10, AvailableReplicas: 8,
		UnavailableReplicas: 3, TerminatingReplicas: &three, CollisionCount: &collisions,
	}, s)

	old.Status.TerminatingReplicas = nil
	require.Nil(t, decide(at(d, old, next)).status.TerminatingReplicas, "one of the numbers is unknown")
	old.Status.ObservedGeneration = 0
	require.EqualValues(t, 1, *decide(at(d, old, next)).status.TerminatingReplicas, "one set has no status yet")
}

func TestAvailability(t *testing.T) {
	d := newDeployment(10, 3, 2)
	enough, tooFew := decide(at(d, set(d, "new", 1, 10, 8))).status, decide(at(d, set(d, "new", 1, 10, 7))).status
	require.Equal(t, "True MinimumReplicasAvailable", is(enough, availability))
	require.Equal(t, "False MinimumReplicasUnavailable", is(tooFew, availability))

	// An unchanged condition is not written again. Another status has another time.
	earlier := metav1.NewTime(noon.Add(-time.Hour))
	d.Status.Conditions = []appsv1.DeploymentCondition{condition(availability, corev1.ConditionTrue, reasonAvailable, "as ever", earlier)}
	same := decide(at(d, set(d, "new", 1, 10, 9))).status
	require.Equal(t, d.Status.Conditions[0], *find(same.Conditions, availability))
	other := decide(at(d, set(d, "new", 1, 10, 7))).status
	require.Equal(t, noon, find(other.Conditions, availability).LastTransitionTime.Time)
	require.Equal(t, "as ever", d.Status.Conditions[0].Message, "the argument is not changed")
}

func TestProgress(t *testing.T) {
	said := func(reason string, is corev1.ConditionStatus, d time.Duration, message string) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{condition(progressing, is, reason, message, metav1.NewTime(noon.Add(-d)))}
	}
	ago := func(reason string, is corev1.ConditionStatus, d time.Duration) []appsv1.DeploymentCondition {
		return said(reason, is, d, `about "new"`)
	}
	yes, no, maybe := corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	stuck := appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 12, UpdatedReplicas: 4, ReadyReplicas: 8, AvailableReplicas: 8}
	for name, c := range map[string]struct {
		before  appsv1.DeploymentStatus
		said    []appsv1.DeploymentCondition
		next    [2]int32 // size and available Pods of the new set; there are also eight old Pods, unless the size is ten
		want    string
		updated time.Duration // time since then
		after   time.Duration
	}{
		"no condition yet":                   {stuck, nil, [2]int32{4, 0}, "True FoundNewReplicaSet", 0, 601 * time.Second},
		"it moves":                           {appsv1.DeploymentStatus{Replicas: 8}, ago(reasonCreated, yes, time.Minute), [2]int32{4, 0}, "True ReplicaSetUpdated", 0, 601 * time.Second},
		"progress":                           {appsv1.DeploymentStatus{Replicas: 8}, ago(reasonUpdated, yes, time.Minute), [2]int32{4, 0}, "True ReplicaSetUpdated", 0, 601 * time.Second},
		"no progress":                        {stuck, ago(reasonUpdated, yes, time.Minute), [2]int32{4, 0}, "True ReplicaSetUpdated", time.Minute, 541 * time.Second},
		"exactly at the deadline":            {stuck, ago(reasonUpdated, yes, 10*time.Minute), [2]int32{4, 0}, "True ReplicaSetUpdated", 10 * time.Minute, time.Second},
		"after it":                           {stuck, ago(reasonUpdated, yes, 10*time.Minute+time.Nanosecond), [2]int32{4, 0}, "False ProgressDeadlineExceeded", 0, 0},
		"long after the deadline":            {stuck, ago(reasonTimedOut, no, time.Hour), [2]int32{4, 0}, "False ProgressDeadlineExceeded", time.Hour, 0},
		"progress after the deadline":        {appsv1.DeploymentStatus{Replicas: 8}, ago(reasonTimedOut, no, time.Hour), [2]int32{4, 0}, "True ReplicaSetUpdated", 0, 601 * time.Second},
		"resumed":                            {stuck, ago(reasonPaused, maybe, time.Hour), [2]int32{4, 0}, "Unknown DeploymentResumed", 0, 601 * time.Second},
		"not created":                        {stuck, ago(reasonRefused, no, 11*time.Minute), [2]int32{4, 0}, "False ProgressDeadlineExceeded", 0, 0},
		"complete, from an earlier rollout":  {stuck, said(reasonComplete, yes, time.Hour, `about "v1"`), [2]int32{4, 0}, "True NewReplicaSetAvailable", time.Hour, 0},
		"complete earlier, and it moves":     {appsv1.DeploymentStatus{Replicas: 8}, said(reasonComplete, yes, time.Hour, `about "v1"`), [2]int32{4, 0}, "True ReplicaSetUpdated", 0, 601 * time.Second},
		"timed out, from an earlier rollout": {stuck, said(reasonTimedOut, no, time.Hour, `about "v1"`), [2]int32{4, 0}, "True FoundNewReplicaSet", 0, 601 * time.Second},
		"created, from an earlier rollout":   {stuck, said(reasonFound, yes, time.Hour, `about "v1"`), [2]int32{4, 0}, "True FoundNewReplicaSet", 0, 601 * time.Second},
		"complete, like the earlier rollout": {stuck, said(reasonComplete, yes, time.Hour, `about "v1"`), [2]int32{10, 10}, "True NewReplicaSetAvailable", time.Hour, 0},
		"complete earlier, then no old Pods": {stuck, said(reasonComplete, yes, time.Hour, `about "v1"`), [2]int32{10, 9}, "True NewReplicaSetAvailable", time.Hour, 0},
		"the subject is the Deployment":      {stuck, said(reasonResumed, maybe, time.Minute, "about none"), [2]int32{4, 0}, "Unknown DeploymentResumed", time.Minute, 541 * time.Second},
		"complete":                           {stuck, ago(reasonUpdated, yes, time.Minute), [2]int32{10, 10}, "True NewReplicaSetAvailable", 0, 0},
		"complete, after the deadline":       {stuck, ago(reasonTimedOut, no, time.Hour), [2]int32{10, 10}, "True NewReplicaSetAvailable", 0, 0},
		"complete, and a Pod fails afterwards": {
			appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 10, UpdatedReplicas: 10, ReadyReplicas: 10, AvailableReplicas: 10},
			ago(reasonComplete, yes, time.Hour),
			[2]int32{10, 9},
			"True NewReplicaSetAvailable", time.Hour, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDeployment(10, 2, 2)
			d.Status = c.before
			d.Status.Conditions = c.said
			sets := []*appsv1.ReplicaSet{set(d, "new", 2, c.next[0], c.next[1])}
			if c.next[0] != 10 {
				sets = append(sets, set(d, "v1", 1, 8, 8))
			}
			todo := decide(at(d, sets...))
			require.Equal(t, c.want, is(todo.status, progressing))
			require.Equal(t, noon.Add(-c.updated), timeOf(t, find(todo.status.Conditions, progressing)))
			require.Equal(t, c.after, todo.after)
			if c.updated == 0 {
				require.NotContains(t, find(todo.status.Conditions, progressing).Message, "v1")
			}
			settled := d.DeepCopy()
			settled.Status = todo.status
			require.Equal(t, todo.status.Conditions, decide(at(settled, sets...)).status.Conditions, "and it is written once")

			if c.want != "True NewReplicaSetAvailable" {
				never := int32(math.MaxInt32)
				d.Spec.ProgressDeadlineSeconds = &never
				require.Equal(t, "", is(decide(at(d, sets...)).status, progressing), "there is no condition without a deadline")
			}
		})
	}
}

func TestProgressIsMoreNewFewerOldOrBetter(t *testing.T) {
	before := appsv1.DeploymentStatus{Replicas: 10, UpdatedReplicas: 4, ReadyReplicas: 5, AvailableReplicas: 5}
	for name, c := range map[string]struct {
		change func(*appsv1.DeploymentStatus)
		want   bool
	}{
		"nothing":        {func(*appsv1.DeploymentStatus) {}, false},
		"more new":       {func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas++; s.Replicas++ }, true},
		"fewer old":      {func(s *appsv1.DeploymentStatus) { s.Replicas-- }, true},
		"more old":       {func(s *appsv1.DeploymentStatus) { s.Replicas++ }, false},
		"more ready":     {func(s *appsv1.DeploymentStatus) { s.ReadyReplicas++ }, true},
		"more available": {func(s *appsv1.DeploymentStatus) { s.AvailableReplicas++ }, true},
		"fewer of both":  {func(s *appsv1.DeploymentStatus) { s.ReadyReplicas--; s.AvailableReplicas-- }, false},
	} {
		now := before
		c.change(&now)
		require.Equal(t, c.want, progressed(&before, &now), name)
	}
}

func TestPauseIsReportedUnlessTimedOut(t *testing.T) {
	d := newDeployment(10, 3, 2)
	d.Spec.Paused = true
	d.Status.Conditions = []appsv1.DeploymentCondition{condition(progressing, corev1.ConditionFalse, reasonTimedOut, "", metav1.NewTime(noon))}
	require.Equal(t, "False ProgressDeadlineExceeded", is(decide(at(d)).status, progressing))
	d.Status.Conditions[0].Reason = reasonUpdated
	require.Equal(t, "Unknown DeploymentPaused", is(decide(at(d)).status, progressing))
	never := int32(math.MaxInt32)
	d.Spec.ProgressDeadlineSeconds = &never
	require.Equal(t, "False ReplicaSetUpdated", is(decide(at(d)).status, progressing))
}

func TestFailuresAreCopiedToTheDeployment(t *testing.T) {
	d := newDeployment(10, 3, 2)
	failing := func(s *appsv1.ReplicaSet, reason string) *appsv1.ReplicaSet {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: "quota", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}
		return s
	}
	old, next := failing(set(d, "v1", 1, 8, 8), "FailedDelete"), failing(set(d, "new", 2, 5, 0), "FailedCreate")
	s := decide(at(d, old, next)).status
	require.Equal(t, "True FailedCreate", is(s, appsv1.DeploymentReplicaFailure))
	require.Equal(t, noon.Add(-time.Hour), timeOf(t, find(s.Conditions, appsv1.DeploymentReplicaFailure)))
	s = decide(at(d, old, set(d, "new", 2, 5, 0))).status
	require.Equal(t, "True FailedDelete", is(s, appsv1.DeploymentReplicaFailure))
	d.Status = s
	s = decide(at(d, set(d, "v1", 1, 8, 8))).status
	require.Equal(t, "", is(s, appsv1.DeploymentReplicaFailure))
}

func TestANewSetRestartsProgress(t *testing.T) {
	d := newDeployment(10, 3, 2)
	d.Status.Conditions = []appsv1.DeploymentCondition{condition(progressing, corev1.ConditionTrue, reasonCreated, "", metav1.NewTime(noon.Add(-time.Hour)))}
	todo := decide(at(d, set(d, "v1", 1, 10, 10)))
	require.Equal(t, "create 3", todo.lines()[0])
	c := find(todo.status.Conditions, progressing)
	require.Equal(t, noon, c.LastUpdateTime.Time)
	require.Equal(t, noon.Add(-time.Hour), c.LastTransitionTime.Time)
}

func TestBudget(t *testing.T) {
	percent := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	number := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	for name, c := range map[string]struct {
		replicas           int32
		surge, unavailable *intstr.IntOrString
		want               budget
	}{
		"the default":                    {10, nil, nil, budget{3, 2}},
		"surge is rounded up":            {10, percent("11%"), percent("0%"), budget{2, 0}},
		"maxUnavailable is rounded down": {10, percent("0%"), percent("19%"), budget{0, 1}},
		"both nothing":                   {10, number(0), percent("1%"), budget{0, 1}},
		"numbers":                        {10, number(4), number(5), budget{4, 5}},
		"more than the replicas":         {3, number(4), number(5), budget{4, 3}},
		"one":                            {1, nil, nil, budget{1, 0}},
		"none":                           {0, nil, nil, budget{0, 0}},
	} {
		d := newDeployment(c.replicas, 0, 0)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: c.surge, MaxUnavailable: c.unavailable}
		b, err := budgetOf(d)
		require.NoError(t, err, name)
		require.Equal(t, c.want, b, name)
	}
}

func TestCheck(t *testing.T) {
	bad := intstr.FromString("a lot")
	negative := intstr.FromInt32(-1)
	minus := int32(-1)
	for says, change := range map[string]func(*appsv1.Deployment){
		"spec.selector is missing":                  func(d *appsv1.Deployment) { d.Spec.Selector = nil },
		"the selector is invalid":                   func(d *appsv1.Deployment) { d.Spec.Selector.MatchLabels["app"] = "not a label" },
		"the selector is empty":                     func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} },
		"does not match the labels of the template": func(d *appsv1.Deployment) { d.Spec.Template.Labels = nil },
		"unknown strategy":                          func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Somehow" },
		"the strategy is invalid: maxSurge":         func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = &bad },
		"maxUnavailable: -1 is out of range":        func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = &negative },
		"spec.replicas is -1":                       func(d *appsv1.Deployment) { d.Spec.Replicas = &minus },
	} {
		d := newDeployment(1, 1, 1)
		_, err := check(d)
		require.NoError(t, err)
		change(d)
		_, err = check(d)
		require.ErrorContains(t, err, says)
	}
}

func TestDefaultsAreThoseOfTheAPI(t *testing.T) {
	d := &appsv1.Deployment{}
	require.EqualValues(t, 1, replicas(d))
	require.Equal(t, appsv1.RollingUpdateDeploymentStrategyType, strategy(d))
	limit, bounded := historyLimit(d)
	require.True(t, bounded)
	require.Equal(t, 10, limit)
	deadline, bounded := progressDeadline(d)
	require.True(t, bounded)
	require.Equal(t, 10*time.Minute, deadline)
	all := int32(math.MaxInt32)
	d.Spec.RevisionHistoryLimit = &all
	_, bounded = historyLimit(d)
	require.False(t, bounded)
}
