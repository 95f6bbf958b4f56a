package cronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decide returns what to do about a CronJob that owns these Jobs, which have this number of Pods. It changes no
// argument.
func Decide(c *CronJob, jobs []*batchv1.Job, pods int, now time.Time) Plan {
	var active, successful, failed []*batchv1.Job
	for _, j := range jobs {
		switch ended(j) {
		case batchv1.JobComplete:
			successful = append(successful, j)
		case batchv1.JobFailed:
			failed = append(failed, j)
		default:
			active = append(active, j)
		}
	}
	p := Plan{Status: Status{Active: len(active), Pods: pods, LastRun: lastRun(c, jobs)}}
	p.Delete = append(surplus(successful, keep(c.Spec.KeepSuccessful, 3)), surplus(failed, keep(c.Spec.KeepFailed, 1))...)
	if c.Spec.Suspend || c.Spec.Every.Duration <= 0 || c.DeletionTimestamp != nil {
		return p
	}
	missed, next := due(c, p.Status.LastRun, now)
	p.Again = next.Sub(now)
	late := c.Spec.StartingDeadline != nil && now.Sub(missed) > c.Spec.StartingDeadline.Duration
	if missed.IsZero() || late || c.Spec.Concurrency == "Forbid" && len(active) > 0 {
		return p
	}
	if c.Spec.Concurrency == "Replace" {
		p.Delete = append(p.Delete, active...)
	}
	p.Create = newJob(c, missed)
	return p
}

// ended returns how a Job has ended, or "".
func ended(j *batchv1.Job) batchv1.JobConditionType {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

const scheduledAt = "batch.bench.example/scheduled-at"

func runOf(j *batchv1.Job) time.Time {
	at, err := time.Parse(time.RFC3339, j.Annotations[scheduledAt])
	if err != nil {
		return time.Time{}
	}
	return at
}

func lastRun(c *CronJob, jobs []*batchv1.Job) *metav1.Time {
	last := c.Status.LastRun.DeepCopy()
	for _, j := range jobs {
		if at := runOf(j); !at.IsZero() && (last == nil || last.Time.Before(at)) {
			last = &metav1.Time{Time: at}
		}
	}
	return last
}

// due returns the newest run that is missing, or the zero time, and the next one.
func due(c *CronJob, last *metav1.Time, now time.Time) (missed, next time.Time) {
	from := c.CreationTimestamp.Time
	if last != nil {
		from = last.Time
	}
	passed := now.Sub(from) / c.Spec.Every.Duration
	if passed > 0 {
		missed = from.Add(passed * c.Spec.Every.Duration)
	}
	return missed, from.Add((passed + 1) * c.Spec.Every.Duration)
}

func keep(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return max(*n, 0)
}

// surplus returns the oldest Jobs beyond the number to keep.
func surplus(jobs []*batchv1.Job, kept int) []*batchv1.Job {
	if len(jobs) <= kept {
		return nil
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(runOf(a).Compare(runOf(b)), cmp.Compare(a.Name, b.Name))
	})
	return jobs[:len(jobs)-kept]
}

// newJob returns the Job of a run. Its name depends on the run, so that a repeated creation conflicts.
func newJob(c *CronJob, at time.Time) *batchv1.Job {
	t := c.Spec.Template.DeepCopy()
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, at.Unix()),
		Labels: map[string]string{Label: c.Name}, Annotations: map[string]string{scheduledAt: at.Format(time.RFC3339)},
	}, Spec: t.Spec}
	maps.Copy(j.Labels, t.Labels)
	maps.Copy(j.Annotations, t.Annotations)
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	j.Spec.Template.Labels[Label] = c.Name
	return j
}
