package hooks

import (
	"context"
	"errors"

	"github.com/leatproject/leat/examples/webhooks/job"
	"github.com/leatproject/leat/webhook"
)

// The paths of the webhooks.
const (
	MutatePath   = "/mutate-trainingjob"
	ValidatePath = "/validate-trainingjob"
	ConvertPath  = "/convert"
)

// Add adds the three webhooks to a server. Rules has defaults and validation.
func Add(s *webhook.Server, defaults webhook.Defaulter[*job.TrainingJob], validate webhook.Validator[*job.TrainingJob]) {
	s.Handle(MutatePath, webhook.Admission[*job.TrainingJob]{Resource: job.Resource, Default: defaults})
	s.Handle(ValidatePath, webhook.Admission[*job.TrainingJob]{Resource: job.Resource, Validate: validate})
	s.Handle(ConvertPath, webhook.Conversion[*job.TrainingJob]{
		Hub: job.Resource, Spokes: []webhook.Spoke[*job.TrainingJob]{webhook.NewSpoke("v1alpha1", toV1, toV1alpha1)},
	})
}

// Rules are the defaults and the validation of TrainingJobs. The validation sets the defaults of what it compares,
// because a job may be older than the webhook that sets them.
type Rules struct{}

// Default sets the defaults of missing fields.
func (Rules) Default(_ context.Context, j *job.TrainingJob) error {
	job.SetDefaults(j)
	return nil
}

// ValidateCreate refuses a job that breaks a rule of [job.Validate]. It warns of a job that may restart forever.
func (Rules) ValidateCreate(_ context.Context, j *job.TrainingJob) (warnings []string, err error) {
	if j.Spec.BackoffLimit == nil {
		warnings = append(warnings, "spec.backoffLimit: a job without a limit may restart forever")
	}
	job.SetDefaults(j)
	return warnings, job.Validate(j)
}

// ValidateUpdate refuses what ValidateCreate refuses, and another success policy: Pods that have ended were judged by
// the old one.
func (Rules) ValidateUpdate(_ context.Context, old, j *job.TrainingJob) ([]string, error) {
	job.SetDefaults(old)
	job.SetDefaults(j)
	if old.Spec.SuccessPolicy != j.Spec.SuccessPolicy {
		return nil, errors.New("the success policy cannot change")
	}
	return nil, job.Validate(j)
}

// ValidateDelete refuses to delete a job with the label keep=yes.
func (Rules) ValidateDelete(_ context.Context, j *job.TrainingJob) ([]string, error) {
	if j.Labels["keep"] == "yes" {
		return nil, errors.New("the job has the label keep=yes")
	}
	return nil, nil
}
