// Package cronjob has what the three operators share: the types of a CronJob, and the decision what to do about one.
package cronjob

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of CronJob.
var GroupVersion = schema.GroupVersion{Group: "batch.bench.example", Version: "v1"}

// CronJob creates a Job each time that its schedule says.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// Spec is what the user wants.
type Spec struct {
	// Every is the time between two runs.
	Every metav1.Duration `json:"every"`
	// StartingDeadline is how late a run may begin. Nil means any time.
	StartingDeadline *metav1.Duration `json:"startingDeadline,omitempty"`
	// Concurrency is Allow (the default), Forbid or Replace.
	Concurrency string `json:"concurrency,omitempty"`
	Suspend     bool   `json:"suspend,omitempty"`
	// KeepSuccessful and KeepFailed are the numbers of ended Jobs that stay. Nil means 3 and 1.
	KeepSuccessful *int                    `json:"keepSuccessful,omitempty"`
	KeepFailed     *int                    `json:"keepFailed,omitempty"`
	Template       batchv1.JobTemplateSpec `json:"template"`
}

// Status is what the operator has seen.
type Status struct {
	// Active is the number of Jobs that run, and Pods the number of their Pods that exist.
	Active int `json:"active,omitempty"`
	Pods   int `json:"pods,omitempty"`
	// LastRun is the time of the last run.
	LastRun *metav1.Time `json:"lastRun,omitempty"`
}

// Equal reports whether two statuses are equal.
func (s Status) Equal(o Status) bool {
	return s.Active == o.Active && s.Pods == o.Pods && s.LastRun.Equal(o.LastRun)
}

// CronJobList is a list of CronJobs.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronJob `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (c *CronJob) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopy returns a copy that shares no memory.
func (c *CronJob) DeepCopy() *CronJob {
	out := *c
	out.ObjectMeta = *c.ObjectMeta.DeepCopy()
	out.Spec.Template = *c.Spec.Template.DeepCopy()
	out.Spec.StartingDeadline = copied(c.Spec.StartingDeadline)
	out.Spec.KeepSuccessful, out.Spec.KeepFailed = copied(c.Spec.KeepSuccessful), copied(c.Spec.KeepFailed)
	out.Status.LastRun = c.Status.LastRun.DeepCopy()
	return &out
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// DeepCopyObject implements runtime.Object.
func (l *CronJobList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]CronJob, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return &out
}

// AddToScheme adds the types to a scheme of controller-runtime.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &CronJob{}, &CronJobList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Label is the label of a Job and of its Pods that names the CronJob.
const Label = "batch.bench.example/cronjob"

// Plan is what an operator has to do about a CronJob now.
type Plan struct {
	Status Status
	Delete []*batchv1.Job
	Create *batchv1.Job  // without an owner reference; nil for no run
	Again  time.Duration // until the next decision; 0 for none
}
