package job

import (
	"maps"
)

// SetDefaults fills in what a job leaves open. It changes the job, which must therefore not be one of a cache.
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

// Count is how many replicas of a type a job has, after SetDefaults.
func Count(j *TrainingJob, t ReplicaType) int {
	r, found := j.Spec.Replicas[t]
	if !found {
		return 0
	}
	return int(*r.Replicas)
}

// LeaderOf returns the type of the replica that leads a job: its chief or its master. Worker 0 leads a job that has
// neither.
func LeaderOf(j *TrainingJob) ReplicaType {
	for _, t := range []ReplicaType{Chief, Master} {
		if _, found := j.Spec.Replicas[t]; found {
			return t
		}
	}
	return Worker
}
