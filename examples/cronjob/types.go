package main

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// CronJob starts a Job once in a period.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Every    metav1.Duration         `json:"every"`
		Suspend  bool                    `json:"suspend,omitempty"`
		Template batchv1.JobTemplateSpec `json:"template"`
	} `json:"spec"`
	Status CronJobStatus `json:"status,omitzero"`
}

// CronJobStatus is the state that the operator has seen.
type CronJobStatus struct {
	Active  int         `json:"active,omitempty"`
	LastRun metav1.Time `json:"lastRun,omitzero"`
}

var (
	cronJobs = api.Resource{Group: "batch.tutorial.example", Version: "v1", Kind: "CronJob", Plural: "cronjobs", Namespaced: true}
	jobs     = api.Resource{Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true}
)
