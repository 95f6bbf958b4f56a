package job

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of a job that only its user can correct. Call SetDefaults before. The
// CustomResourceDefinition rejects some of these jobs. It cannot check rules about several fields.
func Validate(j *TrainingJob) error {
	spec := field.NewPath("spec")
	var all field.ErrorList
	if j.Spec.SuccessPolicy != Leader && j.Spec.SuccessPolicy != AllWorkers {
		all = append(all, field.NotSupported(spec.Child("successPolicy"), j.Spec.SuccessPolicy, []SuccessPolicy{Leader, AllWorkers}))
	}
	if policies := []CleanPodPolicy{CleanNone, CleanRunning, CleanAll}; !slices.Contains(policies, j.Spec.CleanPodPolicy) {
		all = append(all, field.NotSupported(spec.Child("cleanPodPolicy"), j.Spec.CleanPodPolicy, policies))
	}
	if n := j.Spec.BackoffLimit; n != nil && *n < 0 {
		all = append(all, field.Invalid(spec.Child("backoffLimit"), *n, "must not be negative"))
	}
	if n := j.Spec.ActiveDeadlineSeconds; n != nil && *n < 1 {
		all = append(all, field.Invalid(spec.Child("activeDeadlineSeconds"), *n, "must be positive"))
	}
	if n := j.Spec.TTLSecondsAfterFinished; n != nil && *n < 0 {
		all = append(all, field.Invalid(spec.Child("ttlSecondsAfterFinished"), *n, "must not be negative"))
	}
	return append(all, validateReplicas(j, spec.Child("replicas"))...).ToAggregate()
}

func validateReplicas(j *TrainingJob, path *field.Path) (all field.ErrorList) {
	for _, t := range sortedTypes(j) {
		if !slices.Contains(ReplicaTypes, t) {
			all = append(all, field.NotSupported(path.Key(string(t)), t, ReplicaTypes))
			continue
		}
		all = append(all, validateReplica(j, t, path.Key(string(t)))...)
	}
	return append(all, validateLeader(j, path)...)
}

// validateLeader requires one leading replica, or workers, of which the first leads.
func validateLeader(j *TrainingJob, path *field.Path) (all field.ErrorList) {
	leader := LeaderOf(j)
	_, master := j.Spec.Replicas[Master]
	switch {
	case leader == Chief && master:
		all = append(all, field.Forbidden(path.Key(string(Master)), "a job has a chief or a master, not both"))
	case leader != Worker && Count(j, leader) != 1:
		all = append(all, field.Invalid(path.Key(string(leader)).Child("replicas"), Count(j, leader),
			fmt.Sprintf("must be 0 or 1 for %s", leader)))
	case leader == Worker && Count(j, Worker) < 1:
		all = append(all, field.Required(path, "a chief, a master or a worker is needed for the job to succeed"))
	}
	return all
}

func sortedTypes(j *TrainingJob) []ReplicaType {
	var types []ReplicaType
	for t := range j.Spec.Replicas {
		types = append(types, t)
	}
	slices.Sort(types)
	return types
}

func validateReplica(j *TrainingJob, t ReplicaType, path *field.Path) (all field.ErrorList) {
	r := j.Spec.Replicas[t]
	n := int(*r.Replicas)
	if n < 0 || n > mostOfOneType {
		all = append(all, field.Invalid(path.Child("replicas"), n, fmt.Sprintf("must be from 0 to %d", mostOfOneType)))
	} else if name := Name(j, t, max(n-1, 0)); len(validation.IsDNS1035Label(name)) > 0 {
		all = append(all, field.Invalid(field.NewPath("metadata", "name"), j.Name, fmt.Sprintf("%q, the name of its last replica, must be a DNS label", name)))
	}
	if policies := []RestartPolicy{Never, OnFailure, Always, ExitCode}; !slices.Contains(policies, r.RestartPolicy) {
		all = append(all, field.NotSupported(path.Child("restartPolicy"), r.RestartPolicy, policies))
	}
	containers := path.Child("template", "spec", "containers")
	at := slices.IndexFunc(r.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerName })
	switch {
	case at < 0:
		all = append(all, field.Required(containers, fmt.Sprintf("needs a container with the name %q", ContainerName)))
	case r.Template.Spec.Containers[at].Image == "":
		all = append(all, field.Required(containers.Index(at).Child("image"), "of the container that trains"))
	}
	return all
}

// Name returns the name of a replica's Pod and Service.
func Name(j *TrainingJob, t ReplicaType, index int) string {
	return fmt.Sprintf("%s-%s-%d", j.Name, t, index)
}
