package job

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/reconcile/conditions"
)

// The types of conditions. At most one of Running, Restarting and Suspended is true. A job has finished when Succeeded
// or Failed is true; the other three are then false.
const (
	Created    = "Created"
	Running    = "Running"
	Restarting = "Restarting"
	Suspended  = "Suspended"
	Succeeded  = "Succeeded"
	Failed     = "Failed"
)

// Finished reports whether a job has succeeded or failed. That is final.
func Finished(j *TrainingJob) bool {
	c := j.Status.Conditions
	return conditions.Is(c, Succeeded, metav1.ConditionTrue) || conditions.Is(c, Failed, metav1.ConditionTrue)
}
