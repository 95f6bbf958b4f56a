package plan

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/reconcile/conditions"
)

// passing are the conditions of which at most one is true.
var passing = []string{job.Running, job.Restarting, job.Suspended}

// longestMessage is the largest length of a message that conditions and Events keep whole.
const longestMessage = 1000

// become sets a condition to true, and those that it excludes to false. It adds a note if the condition is new. For a
// restart it always adds one.
func (d *decision) become(kind, reason, message string) {
	news := !conditions.Is(d.Status.Conditions, kind, metav1.ConditionTrue)
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

// unset sets a true condition to false. It does nothing if the condition is not true.
func (d *decision) unset(kind, reason, message string) {
	if conditions.Is(d.Status.Conditions, kind, metav1.ConditionTrue) {
		d.set(kind, metav1.ConditionFalse, reason, message)
	}
}

func (d *decision) set(kind string, is metav1.ConditionStatus, reason, message string) {
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "")
	}
	_, err := conditions.Set(&d.Status.Conditions, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: message,
		ObservedGeneration: d.Job.Generation, LastTransitionTime: *d.now(),
	})
	if err != nil {
		panic(err) // all conditions are set here, and they are valid
	}
}

// BecameTrue returns the types of the conditions that are true in after and not in before.
func BecameTrue(before, after job.Status) []string {
	var all []string
	for _, c := range after.Conditions {
		if c.Status == metav1.ConditionTrue && !conditions.Is(before.Conditions, c.Type, metav1.ConditionTrue) {
			all = append(all, c.Type)
		}
	}
	return all
}
