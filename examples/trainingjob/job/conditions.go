package job

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/status"
)

// The types of conditions. Of Running, Restarting and Suspended one at most is true; when Succeeded or Failed is, the job
// has finished, and none of these is.
const (
	Created    = "Created"
	Running    = "Running"
	Restarting = "Restarting"
	Suspended  = "Suspended"
	Succeeded  = "Succeeded"
	Failed     = "Failed"
)

// Finished tells whether a job has come to its end, from which there is no way back.
func Finished(j *TrainingJob) bool {
	c := j.Status.Conditions
	return status.Is(c, Succeeded, metav1.ConditionTrue) || status.Is(c, Failed, metav1.ConditionTrue)
}
