package cronjob_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/bench/operator/cronjob"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func every(d time.Duration) *cronjob.CronJob {
	c := &cronjob.CronJob{Spec: cronjob.Spec{Every: metav1.Duration{Duration: d}}}
	c.Namespace, c.Name, c.CreationTimestamp = "default", "hello", metav1.Time{Time: noon}
	return c
}

// run returns the Job of the run at a time, in a state.
func run(c *cronjob.CronJob, at time.Time, state batchv1.JobConditionType) *batchv1.Job {
	j := cronjob.Decide(c, nil, 0, at).Create
	if state != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: state, Status: corev1.ConditionTrue}}
	}
	return j
}

func TestDecide(t *testing.T) {
	c := every(time.Minute)
	p := cronjob.Decide(c, nil, 0, noon.Add(30*time.Second))
	require.Equal(t, cronjob.Plan{Again: 30 * time.Second}, p)

	p = cronjob.Decide(c, nil, 0, noon.Add(150*time.Second))
	require.Equal(t, "hello-1767268920", p.Create.Name, "the newest of two missed runs")
	require.Equal(t, 30*time.Second, p.Again)

	active := run(c, noon.Add(time.Minute), "")
	p = cronjob.Decide(c, []*batchv1.Job{active}, 2, noon.Add(61*time.Second))
	require.Nil(t, p.Create)
	require.Equal(t, 1, p.Status.Active)
	require.Equal(t, 2, p.Status.Pods)
	require.Equal(t, noon.Add(time.Minute), p.Status.LastRun.UTC())

	c.Spec.Concurrency = "Forbid"
	require.Nil(t, cronjob.Decide(c, []*batchv1.Job{active}, 0, noon.Add(2*time.Minute)).Create)
	c.Spec.Concurrency = "Replace"
	p = cronjob.Decide(c, []*batchv1.Job{active}, 0, noon.Add(2*time.Minute))
	require.NotNil(t, p.Create)
	require.Equal(t, []*batchv1.Job{active}, p.Delete)

	c.Spec.Suspend = true
	require.Nil(t, cronjob.Decide(c, nil, 0, noon.Add(2*time.Minute)).Create)
	c.Spec.Suspend, c.Spec.StartingDeadline = false, &metav1.Duration{Duration: time.Second}
	require.Nil(t, cronjob.Decide(c, nil, 0, noon.Add(62*time.Second)).Create)
	require.NotNil(t, cronjob.Decide(c, nil, 0, noon.Add(61*time.Second)).Create)
}

func TestHistory(t *testing.T) {
	c := every(time.Minute)
	var jobs []*batchv1.Job
	for i := range 5 {
		jobs = append(jobs, run(c, noon.Add(time.Duration(i+1)*time.Minute), batchv1.JobComplete))
	}
	failed := run(c, noon.Add(6*time.Minute), batchv1.JobFailed)
	p := cronjob.Decide(c, append(jobs, failed), 0, noon.Add(6*time.Minute))
	require.Equal(t, jobs[:2], p.Delete)
	none := 0
	c.Spec.KeepFailed = &none
	require.Contains(t, cronjob.Decide(c, []*batchv1.Job{failed}, 0, noon.Add(6*time.Minute)).Delete, failed)
}
