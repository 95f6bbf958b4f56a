package job

import (
	"maps"
)

// SetDefaults sets the defaults of missing fields. It changes the job, so the job must not be one of a cache.
func SetDefaults(j *TrainingJob) {
	s := &j.Spec
	if s.SuccessPolicy == "" {
		s.SuccessPolicy = Leader
	}
	if s.CleanPodPolicy == "" {
		s.CleanPodPolicy = CleanRunning
	}
	for t, r := range maps.Clone(s.Replicas) {
		if r.Replicas == nil {
			one := int32(1)
			r.Replicas = &one
		}
		if r.RestartPolicy == "" {
			r.RestartPolicy = Never
		}
		s.Replicas[t] = r
	}
}

// Count returns the number of replicas of a type. Call SetDefaults before.
func Count(j *TrainingJob, t ReplicaType) int {
	r, found := j.Spec.Replicas[t]
	if !found {
		return 0
	}
	return int(*r.Replicas)
}

// LeaderOf returns the type of the replica that leads a job: its chief or its master. Without either, worker 0 leads.
func LeaderOf(j *TrainingJob) ReplicaType {
	for _, t := range []ReplicaType{Chief, Master} {
		if _, found := j.Spec.Replicas[t]; found {
			return t
		}
	}
	return Worker
}
