package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/reconcile/conditions"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newJob returns a job with one replica of each given type, with its defaults.
func newJob(types ...job.ReplicaType) *job.TrainingJob {
	j := &job.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "mnist", UID: "job", Generation: 7},
		Spec:       job.Spec{Replicas: map[job.ReplicaType]job.ReplicaSpec{}},
	}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: job.ContainerName, Image: "mnist:1"}}}}
	for _, t := range types {
		j.Spec.Replicas[t] = job.ReplicaSpec{Template: template}
	}
	job.SetDefaults(j)
	return j
}

func scale(j *job.TrainingJob, t job.ReplicaType, n int32) { change(j, t, n, "") }

// change sets the number of replicas of a type and, unless it is empty, their restart policy.
func change(j *job.TrainingJob, t job.ReplicaType, n int32, policy job.RestartPolicy) {
	r := j.Spec.Replicas[t]
	r.Replicas = &n
	if policy != "" {
		r.RestartPolicy = policy
	}
	j.Spec.Replicas[t] = r
}

// world applies plans as a controller would.
type world struct {
	plan.Observed
	last  plan.Plan
	count int
}

func newWorld(j *job.TrainingJob) *world { return &world{Observed: plan.Observed{Job: j, Now: start}} }

// step decides and applies the plan.
func (w *world) step() {
	p := plan.Decide(w.Observed)
	w.last, w.Job.Status = p, p.Status
	w.Pods = slices.DeleteFunc(w.Pods, func(o *plan.Pod) bool { return slices.Contains(p.DeletePods, o) })
	w.Services = slices.DeleteFunc(w.Services, func(o *plan.Service) bool { return slices.Contains(p.DeleteServices, o) })
	for _, r := range p.CreatePods {
		w.Pods = append(w.Pods, &plan.Pod{ObjectMeta: w.meta(plan.NewPod(w.Job, r).ObjectMeta)})
	}
	for _, r := range p.CreateServices {
		w.Services = append(w.Services, &plan.Service{ObjectMeta: w.meta(plan.NewService(w.Job, r).ObjectMeta)})
	}
}

func (w *world) meta(m metav1.ObjectMeta) metav1.ObjectMeta {
	w.count++
	m.UID = types.UID(fmt.Sprintf("uid-%d", w.count))
	return m
}

// pod returns the Pod with a name, which is given without that of the job.
func (w *world) pod(name string) *plan.Pod {
	for _, p := range w.Pods {
		if p.Name == "mnist-"+name {
			return p
		}
	}
	return nil
}

func (w *world) runs(names ...string) {
	for _, name := range names {
		w.pod(name).Status.Phase = corev1.PodRunning
	}
}

// fails makes a Pod fail with an exit code. A negative code means that it is unknown.
func (w *world) fails(name string, code int32) {
	p := w.pod(name)
	p.Status.Phase = corev1.PodFailed
	if code >= 0 {
		p.Status.ContainerStatuses = []plan.ContainerStatus{{Name: "sidecar"}, {
			Name: job.ContainerName, State: plan.ContainerState{Terminated: &plan.Termination{ExitCode: code}},
		}}
	}
}

// truths returns the types of the conditions that are true.
func (w *world) truths() []string {
	var all []string
	for _, c := range w.Job.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			all = append(all, c.Type)
		}
	}
	return all
}

func (w *world) reason(kind string) string {
	if c := conditions.Find(w.Job.Status.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

func (w *world) names() []string {
	names := []string{}
	for _, p := range w.Pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func TestRetryable(t *testing.T) {
	var codes []int32
	for code := range int32(256) {
		if plan.Retryable(code) {
			codes = append(codes, code)
		}
	}
	require.Equal(t, []int32{130, 137, 138, 143}, codes)
}

func TestRestartPolicies(t *testing.T) {
	const evicted = -1 // there is no exit code
	for _, c := range []struct {
		policy   job.RestartPolicy
		code     int32
		replaced bool
	}{
		{job.Never, 1, false},
		{job.Never, 137, false},
		{job.Never, evicted, false},
		{job.OnFailure, 1, true},
		{job.Always, 1, true},
		{job.ExitCode, 1, false},
		{job.ExitCode, 139, false},
		{job.ExitCode, 143, true},
		{job.ExitCode, evicted, true},
	} {
		w := newWorld(newJob(job.Worker))
		change(w.Job, job.Worker, 2, c.policy)
		w.step()
		w.runs("worker-0", "worker-1")
		w.fails("worker-1", c.code)
		w.step()
		name := fmt.Sprint(c.policy, " ", c.code)
		if !c.replaced {
			require.Equal(t, "ReplicaFailed", w.reason(job.Failed), name)
			require.EqualValues(t, 1, w.Job.Status.Replicas[job.Worker].Failed, name)
			continue
		}
		require.Equal(t, []string{job.Created, job.Restarting}, w.truths(), name)
		require.Len(t, w.Pods, 1, name)
		w.step()
		require.Len(t, w.Pods, 2, name)
	}
}

func TestOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		types   []job.ReplicaType
		policy  job.SuccessPolicy
		succeed []string
		fail    string // with the policy Never
		want    string
	}{
		"nobody":                                  {[]job.ReplicaType{job.Chief, job.Worker}, job.Leader, nil, "", ""},
		"the chief":                               {[]job.ReplicaType{job.Chief, job.Worker}, job.Leader, []string{"chief-0"}, "", job.Succeeded},
		"worker 0 is not the chief":               {[]job.ReplicaType{job.Chief, job.Worker}, job.Leader, []string{"worker-0", "worker-1"}, "", ""},
		"worker 0":                                {[]job.ReplicaType{job.Worker, job.PS}, job.Leader, []string{"worker-0"}, "", job.Succeeded},
		"worker 1":                                {[]job.ReplicaType{job.Worker, job.PS}, job.Leader, []string{"worker-1"}, "", ""},
		"worker 0 is not all workers":             {[]job.ReplicaType{job.Worker, job.PS}, job.AllWorkers, []string{"worker-0"}, "", ""},
		"all workers":                             {[]job.ReplicaType{job.Worker, job.PS}, job.AllWorkers, []string{"worker-0", "worker-1"}, "", job.Succeeded},
		"all workers, not the chief":              {[]job.ReplicaType{job.Chief, job.Worker}, job.AllWorkers, []string{"worker-0", "worker-1"}, "", ""},
		"the chief, not all workers":              {[]job.ReplicaType{job.Chief, job.Worker}, job.AllWorkers, []string{"chief-0", "worker-0"}, "", ""},
		"the chief and all workers":               {[]job.ReplicaType{job.Chief, job.Worker}, job.AllWorkers, []string{"chief-0", "worker-0", "worker-1"}, "", job.Succeeded},
		"a chief alone":                           {[]job.ReplicaType{job.Chief}, job.AllWorkers, []string{"chief-0"}, "", job.Succeeded},
		"parameter servers do not matter":         {[]job.ReplicaType{job.Worker, job.PS}, job.Leader, []string{"ps-0"}, "", ""},
		"unless they fail":                        {[]job.ReplicaType{job.Worker, job.PS}, job.Leader, nil, "ps-0", job.Failed},
		"a worker fails":                          {[]job.ReplicaType{job.Chief, job.Worker}, job.Leader, nil, "worker-1", job.Failed},
		"the master":                              {[]job.ReplicaType{job.Master, job.Worker}, job.Leader, []string{"master-0"}, "", job.Succeeded},
		"worker 0 is not the master":              {[]job.ReplicaType{job.Master, job.Worker}, job.Leader, []string{"worker-0", "worker-1"}, "", ""},
		"all workers, not the master":             {[]job.ReplicaType{job.Master, job.Worker}, job.AllWorkers, []string{"worker-0", "worker-1"}, "", ""},
		"the master and all workers":              {[]job.ReplicaType{job.Master, job.Worker}, job.AllWorkers, []string{"master-0", "worker-0", "worker-1"}, "", job.Succeeded},
		"the evaluator":                           {[]job.ReplicaType{job.Worker, job.Evaluator}, job.Leader, []string{"evaluator-0"}, "", ""},
		"the job does not wait for the evaluator": {[]job.ReplicaType{job.Worker, job.Evaluator}, job.AllWorkers, []string{"worker-0", "worker-1"}, "", job.Succeeded},
		"an evaluator fails":                      {[]job.ReplicaType{job.Chief, job.Evaluator}, job.Leader, nil, "evaluator-0", job.Failed},
		"success comes first":                     {[]job.ReplicaType{job.Chief, job.Worker}, job.Leader, []string{"chief-0"}, "worker-1", job.Succeeded},
	} {
		w := newWorld(newJob(c.types...))
		w.Job.Spec.SuccessPolicy = c.policy
		if slices.Contains(c.types, job.Worker) {
			scale(w.Job, job.Worker, 2)
		}
		w.step()
		for _, p := range c.succeed {
			w.pod(p).Status.Phase = corev1.PodSucceeded
		}
		if c.fail != "" {
			w.fails(c.fail, 1)
		}
		pods := w.names()
		w.step()
		require.Equal(t, pods, w.names(), "%s: Pods are deleted after the reason was written", name)
		require.Equal(t, c.want == job.Succeeded, slices.Contains(w.truths(), job.Succeeded), name)
		require.Equal(t, c.want == job.Failed, slices.Contains(w.truths(), job.Failed), name)
		require.Equal(t, c.want == "", w.Job.Status.CompletionTime == nil, name)
	}
}

// TestRunning runs one replica of each type alone. The job runs only if that type trains.
func TestRunning(t *testing.T) {
	for _, kind := range job.ReplicaTypes {
		w := newWorld(newJob(job.Worker))
		w.Job.Spec.Replicas[kind] = w.Job.Spec.Replicas[job.Worker]
		w.step()
		w.runs(string(kind) + "-0")
		w.step()
		require.Equal(t, kind != job.PS && kind != job.Evaluator, slices.Contains(w.truths(), job.Running), kind)
	}
}

// TestLifeOfConditions changes jobs in many random orders, and checks which conditions are true at the same time.
func TestLifeOfConditions(t *testing.T) {
	transient := []string{job.Running, job.Restarting, job.Suspended}
	for seed := range uint64(300) {
		w := newWorld(newJob(job.Chief, job.Worker))
		change(w.Job, job.Worker, 2, job.ExitCode)
		for n := seed; ; n /= 6 {
			w.Now = w.Now.Add(time.Second)
			was := w.truths()
			for i, p := range w.Pods {
				switch {
				case n%6 == 0:
					p.Status.Phase = corev1.PodRunning
				case n%6 == 1 && i == 1:
					p.Status.Phase = corev1.PodFailed
				case n%6 == 2 && i == 0:
					p.Status.Phase = corev1.PodSucceeded
				case n%6 == 3 && i == 0:
					p.Status.Phase = corev1.PodPending
				}
			}
			w.Job.Spec.Suspend = n%6 == 4
			w.step()
			truths := w.truths()
			is := slices.DeleteFunc(slices.Clone(truths), func(c string) bool { return !slices.Contains(transient, c) })
			require.LessOrEqual(t, len(is), 1, "seed %d: %s", seed, truths)
			if job.Finished(w.Job) {
				require.Empty(t, is, "seed %d: %s", seed, truths)
			}
			if slices.Contains(was, job.Succeeded) || slices.Contains(was, job.Failed) {
				require.Equal(t, was, truths, "seed %d: a finished job stays finished", seed)
			}
			if n == 0 {
				break
			}
		}
	}
}

func TestRestartsAreCountedOnce(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	change(w.Job, job.Worker, 2, job.OnFailure)
	w.step()
	w.runs("worker-0", "worker-1")
	w.step()
	w.fails("worker-1", 1)
	w.pod("worker-1").Status.ContainerStatuses[1].RestartCount = 3
	stays := slices.Clone(w.Pods) // as with a late cache, or a server that refuses to delete
	for range 3 {
		w.step()
		require.EqualValues(t, 4, w.Job.Status.Restarts, "one by the controller, three by the kubelet")
		require.Equal(t, []types.UID{stays[1].UID}, w.Job.Status.Restarting)
		require.Equal(t, []*plan.Pod{stays[1]}, w.last.DeletePods)
		w.Pods = slices.Clone(stays)
	}
	now := metav1.NewTime(w.Now)
	w.pod("worker-1").DeletionTimestamp = &now
	w.step()
	require.Empty(t, w.last.DeletePods)
	require.Empty(t, w.last.CreatePods, "its name is taken")
	require.Equal(t, []string{job.Created, job.Restarting}, w.truths())

	w.Pods = w.Pods[:1]
	w.step()
	require.Empty(t, w.Job.Status.Restarting)
	require.Equal(t, []string{job.Created, job.Restarting}, w.truths(), "the new Pod does not run yet")
	w.runs("worker-1")
	w.pod("worker-1").DeletionTimestamp = &now
	w.step()
	require.Equal(t, []string{job.Created, job.Restarting}, w.truths(), "a terminating Pod does not run")
	w.pod("worker-1").DeletionTimestamp = nil
	w.step()
	require.Equal(t, []string{job.Created, job.Running}, w.truths())
	require.EqualValues(t, 4, w.Job.Status.Restarts)
}

// TestNoRestartAfterSuccess has a job that succeeds while one of its replicas is being replaced.
func TestNoRestartAfterSuccess(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	change(w.Job, job.Worker, 2, job.OnFailure)
	w.step()
	w.fails("worker-1", 1)
	pods := slices.Clone(w.Pods)
	w.step()
	require.NotEmpty(t, w.Job.Status.Restarting)
	w.Pods = pods
	w.pod("worker-0").Status.Phase = corev1.PodSucceeded
	w.step()
	require.Equal(t, []string{job.Created, job.Succeeded}, w.truths())
	require.Empty(t, w.Job.Status.Restarting)
}

// TestTerminatingPodsAreNoFailures drains a node.
func TestTerminatingPodsAreNoFailures(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	w.step()
	w.runs("worker-0")
	w.step()
	now := metav1.NewTime(w.Now)
	w.pod("worker-0").DeletionTimestamp = &now
	w.step()
	require.Zero(t, w.Job.Status.Replicas[job.Worker].Active)
	w.fails("worker-0", 143)
	w.step()
	require.Equal(t, []string{job.Created}, w.truths())
	require.Equal(t, "NothingRuns", w.reason(job.Running))
	require.Equal(t, job.ReplicaStatus{}, w.Job.Status.Replicas[job.Worker])
	w.Pods = nil
	w.step()
	require.Equal(t, []string{"mnist-worker-0"}, w.names())
	require.Zero(t, w.Job.Status.Restarts)
}

func TestBackoffLimit(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	change(w.Job, job.Worker, 2, job.OnFailure)
	limit := int32(3)
	w.Job.Spec.BackoffLimit = &limit
	w.step()
	w.runs("worker-0", "worker-1")
	w.pod("worker-0").Status.ContainerStatuses = []plan.ContainerStatus{{Name: job.ContainerName, RestartCount: 2}}
	w.step()
	require.Equal(t, []string{job.Created, job.Running}, w.truths())
	w.fails("worker-1", -1)
	w.step()
	require.EqualValues(t, 1, w.Job.Status.Restarts)
	w.step()
	w.fails("worker-1", -1)
	w.step()
	require.Equal(t, "BackoffLimitExceeded", w.reason(job.Failed))
	require.EqualValues(t, 1, w.Job.Status.Restarts, "this was the last restart")

	w = newWorld(newJob(job.Worker))
	change(w.Job, job.Worker, 1, job.Always)
	limit = 0
	w.Job.Spec.BackoffLimit = &limit
	w.step()
	w.runs("worker-0")
	w.step()
	require.Equal(t, []string{job.Created, job.Running}, w.truths())
	w.pod("worker-0").Status.ContainerStatuses = []plan.ContainerStatus{{RestartCount: 1}}
	w.step()
	require.Equal(t, "BackoffLimitExceeded", w.reason(job.Failed), "restarts by the kubelet count, too")
}

func TestDeadline(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	seconds := int64(10)
	w.Job.Spec.ActiveDeadlineSeconds = &seconds
	w.step()
	require.Equal(t, 10*time.Second, w.last.After)
	w.Now = start.Add(10*time.Second - 1)
	w.step()
	require.Equal(t, time.Duration(1), w.last.After)
	require.Equal(t, []string{job.Created}, w.truths())
	w.Now = start.Add(10 * time.Second)
	w.step()
	require.Equal(t, "DeadlineExceeded", w.reason(job.Failed))
	require.Zero(t, w.last.After)
	require.NotEmpty(t, w.Pods)
	w.step()
	require.Empty(t, w.Pods)
	require.Empty(t, w.Services)
}

func TestTimeToLive(t *testing.T) {
	for ttl, want := range map[int32]time.Duration{0: 0, 5: 5 * time.Second} {
		w := newWorld(newJob(job.Worker))
		w.Job.Spec.TTLSecondsAfterFinished = &ttl
		w.step()
		w.pod("worker-0").Status.Phase = corev1.PodSucceeded
		w.step()
		require.False(t, w.last.DeleteJob, "the end of the job is not written yet")
		if want > 0 {
			w.Now = start.Add(want - 1)
			w.step()
			require.False(t, w.last.DeleteJob)
			require.Equal(t, time.Duration(1), w.last.After)
		}
		w.Now = start.Add(want)
		w.step()
		require.True(t, w.last.DeleteJob)
	}
	w := newWorld(newJob(job.Worker))
	negative := int32(-1)
	w.Job.Spec.TTLSecondsAfterFinished = &negative
	w.step()
	require.Error(t, w.last.Err)
	w.step()
	require.False(t, w.last.DeleteJob, "an invalid job stays, so that its user can read the reason")
}

// TestFinishedByAnotherClient sets the condition Failed by hand.
func TestFinishedByAnotherClient(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	w.step()
	w.Job.Status.Conditions = append(w.Job.Status.Conditions, metav1.Condition{Type: job.Failed, Status: metav1.ConditionTrue})
	w.step()
	require.Empty(t, w.Pods)
	require.True(t, w.Job.Status.CompletionTime.Time.Equal(start))
}

func TestCleanPodPolicy(t *testing.T) {
	for policy, want := range map[job.CleanPodPolicy]struct {
		pods     []string
		services int
		active   int32
	}{
		job.CleanNone:    {[]string{"mnist-chief-0", "mnist-worker-0", "mnist-worker-1"}, 3, 1},
		job.CleanRunning: {[]string{"mnist-chief-0", "mnist-worker-1"}, 0, 0},
		job.CleanAll:     {[]string{}, 0, 0},
	} {
		w := newWorld(newJob(job.Chief, job.Worker))
		change(w.Job, job.Worker, 2, job.Never)
		w.Job.Spec.CleanPodPolicy = policy
		w.step()
		w.pod("chief-0").Status.Phase = corev1.PodSucceeded
		w.fails("worker-1", 1)
		for range 3 {
			w.step()
		}
		require.Equal(t, want.pods, w.names(), policy)
		require.Len(t, w.Services, want.services, policy)
		require.Equal(t, job.ReplicaStatus{Succeeded: 1}, w.Job.Status.Replicas[job.Chief], "%s: the numbers stay", policy)
		require.Equal(t, job.ReplicaStatus{Active: want.active, Failed: 1}, w.Job.Status.Replicas[job.Worker], policy)
	}
}

func TestInvalidJobs(t *testing.T) {
	w := newWorld(newJob(job.PS))
	w.step()
	require.ErrorContains(t, w.last.Err, "spec.replicas")
	require.Equal(t, "InvalidSpec", w.reason(job.Failed))
	require.Equal(t, []plan.Note{
		{Reason: "JobCreated", Text: "the controller has received the job"},
		{Warning: true, Reason: "InvalidSpec", Text: w.last.Err.Error()},
	}, w.last.Notes)
	require.Empty(t, w.Pods)
	w.step()
	require.NoError(t, w.last.Err)
	require.Empty(t, w.last.Notes, "it is reported once")
}

func TestSuspension(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	w.step()
	w.runs("worker-0")
	w.step()
	w.Job.Spec.Suspend = true
	now := metav1.NewTime(w.Now)
	w.Services = append(w.Services, &plan.Service{ObjectMeta: metav1.ObjectMeta{Name: "goes", DeletionTimestamp: &now}})
	w.step()
	require.Len(t, w.Services, 1, "terminating Pods are not deleted again")
	w.Services = nil
	require.EqualValues(t, 7, w.Job.Status.ObservedGeneration)
	require.Equal(t, []string{job.Created, job.Suspended}, w.truths())
	require.Empty(t, w.Pods)
	require.Empty(t, w.Services)
	require.Nil(t, w.Job.Status.StartTime)
	w.Job.Spec.Suspend = false
	w.Now = start.Add(time.Hour)
	w.step()
	require.Equal(t, []string{job.Created}, w.truths())
	require.True(t, w.Job.Status.StartTime.Time.Equal(w.Now))
	require.Len(t, w.Pods, 1)
}

func TestSlots(t *testing.T) {
	labels := func(t job.ReplicaType, index string) map[string]string {
		return map[string]string{job.LabelJob: "mnist", job.LabelType: string(t), job.LabelIndex: index}
	}
	pod := func(name string, labels map[string]string) *plan.Pod {
		return &plan.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, UID: types.UID(name)}}
	}
	w := newWorld(newJob(job.Worker))
	change(w.Job, job.Worker, 2, job.Never)
	w.Pods = []*plan.Pod{
		pod("a-twin", labels(job.Worker, "0")),
		pod("mnist-worker-0", labels(job.Worker, "0")),
		pod("second-twin", labels(job.Worker, "0")),
		pod("mnist-worker-2", labels(job.Worker, "2")),
		pod("mnist-ps-0", labels(job.PS, "0")),
		pod("no-index", labels(job.Worker, "")),
		pod("negative", labels(job.Worker, "-1")),
		pod("no-type", labels("boss", "0")),
	}
	p := plan.Decide(w.Observed)
	require.Equal(t, []plan.Replica{{Type: job.Worker, Index: 1}}, p.CreatePods)
	require.Equal(t, []*plan.Pod{w.Pods[3], w.Pods[4]}, p.DeletePods)
	require.Equal(t, map[job.ReplicaType]job.ReplicaStatus{job.Worker: {Active: 1}}, p.Status.Replicas, "a replica counts once, and surplus Pods do not count")
	var unclear []string
	for _, n := range p.Notes {
		if n.Reason == "UnclearReplica" {
			require.True(t, n.Warning)
			unclear = append(unclear, n.Text)
		}
	}
	require.Equal(t, []string{
		"a-twin and mnist-worker-0 are both worker 0",
		`negative has labels of an unknown replica: "worker" "-1"`,
		`no-index has labels of an unknown replica: "worker" ""`,
		`no-type has labels of an unknown replica: "boss" "0"`,
		"mnist-worker-0 and second-twin are both worker 0",
	}, unclear)
	w.Pods[1].Status.Phase = corev1.PodSucceeded
	require.True(t, conditions.Is(plan.Decide(w.Observed).Status.Conditions, job.Succeeded, metav1.ConditionTrue), "the one that has the name counts")
}

// TestDeletedJobs expects no plan: the garbage collector deletes the Pods and Services.
func TestDeletedJobs(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	now := metav1.NewTime(start)
	w.Job.DeletionTimestamp = &now
	require.Equal(t, plan.Plan{}, plan.Decide(w.Observed))
}

func TestNothingIsChanged(t *testing.T) {
	w := newWorld(newJob(job.Chief, job.Worker))
	change(w.Job, job.Worker, 2, job.OnFailure)
	w.step()
	w.runs("chief-0")
	w.fails("worker-1", 1)
	for range 3 {
		before := api.Clone(w.Observed)
		plan.Decide(w.Observed)
		require.Equal(t, before, w.Observed)
		w.step()
	}
}

func TestFail(t *testing.T) {
	j := newJob(job.Worker)
	s, notes := plan.Fail(j, start, "ReplicaRefused", "it is nonsense")
	require.Empty(t, j.Status.Conditions)
	require.Equal(t, []string{job.Failed}, plan.BecameTrue(j.Status, s))
	require.Equal(t, []plan.Note{{Warning: true, Reason: "ReplicaRefused", Text: "it is nonsense"}}, notes)
	require.True(t, s.CompletionTime.Time.Equal(start))
}
