package plan

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/status"
)

// passing are the conditions of which one at most is true.
var passing = []string{job.Running, job.Restarting, job.Suspended}

// longestMessage is what a condition and an Event hold without being cut.
const longestMessage = 1000

// become makes a condition true, and those that it excludes false. It is told when it is news, but for restarts, each of
// which is.
func (d *decision) become(kind, reason, message string) {
	news := !status.Is(d.Status.Conditions, kind, metav1.ConditionTrue)
	d.set(kind, metav1.ConditionTrue, reason, message)
	if kind != job.Created {
		for _, other := range passing {
			if other != kind {
				d.unset(other, reason, message)
			}
		}
	}
	if news && kind != job.Restarting {
		d.note(kind == job.Failed, reason, message)
	}
}

// unset makes a condition false that was true, and leaves any other as it is.
func (d *decision) unset(kind, reason, message string) {
	if status.Is(d.Status.Conditions, kind, metav1.ConditionTrue) {
		d.set(kind, metav1.ConditionFalse, reason, message)
	}
}

func (d *decision) set(kind string, is metav1.ConditionStatus, reason, message string) {
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "")
	}
	_, err := status.Set(&d.Status.Conditions, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: message,
		ObservedGeneration: d.Job.Generation, LastTransitionTime: *d.now(),
	})
	if err != nil {
		panic(err) // every condition is written here, and is one
	}
}

// BecameTrue are the types of the conditions that are true in one status and were not in the one before.
func BecameTrue(before, after job.Status) []string {
	var all []string
	for _, c := range after.Conditions {
		if c.Status == metav1.ConditionTrue && !status.Is(before.Conditions, c.Type, metav1.ConditionTrue) {
			all = append(all, c.Type)
		}
	}
	return all
}
