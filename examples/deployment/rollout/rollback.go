package rollout

import (
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// rollback is the answer to a rollback request: a Deployment with an earlier template, or the reason for a refusal.
type rollback struct {
	to      *appsv1.Deployment // what to write; it no longer has the request
	warning bool
	reason  string
	note    string
}

// wantsRollback reports whether the Deployment has a rollback request, the annotation that replaced the field of
// extensions/v1beta1.
func wantsRollback(d *appsv1.Deployment) bool {
	_, asked := d.Annotations[rollbackAnnotation]
	return asked
}

// rollback answers the request, once in any case. If it changes the template, the next reconcile rolls it out like a
// user's change.
func (w *draft) rollback() *rollback {
	d := w.deployment.DeepCopy()
	delete(d.Annotations, rollbackAnnotation)
	number, err := strconv.ParseInt(w.deployment.Annotations[rollbackAnnotation], 10, 64)
	if err != nil {
		return notFound(d, fmt.Sprintf("%q is not the number of a revision.", w.deployment.Annotations[rollbackAnnotation]))
	}
	if number == 0 {
		if number = lastRevision(w.observed.sets); number == 0 {
			return notFound(d, "Unable to find last revision.")
		}
	}
	for _, s := range w.observed.sets {
		if revisionOf(s) == number {
			return rollbackTo(d, s, number)
		}
	}
	return notFound(d, "Unable to find the revision to rollback to.")
}

func notFound(d *appsv1.Deployment, note string) *rollback {
	return &rollback{to: d, warning: true, reason: "DeploymentRollbackRevisionNotFound", note: note}
}

// rollbackTo gives a Deployment the template of one of its sets, and the annotations that the Deployment had at that
// time.
func rollbackTo(d *appsv1.Deployment, s *appsv1.ReplicaSet, number int64) *rollback {
	if sameTemplate(&d.Spec.Template, &s.Spec.Template) {
		return &rollback{
			to: d, warning: true, reason: "DeploymentRollbackTemplateUnchanged",
			note: fmt.Sprintf("The rollback revision contains the same template as current deployment %q", d.Name),
		}
	}
	d.Spec.Template = *withoutHash(s.Spec.Template.DeepCopy())
	maps.DeleteFunc(d.Annotations, func(name, _ string) bool { return !isOwn(name) })
	for name, value := range s.Annotations {
		if !isOwn(name) {
			d.Annotations[name] = value
		}
	}
	return &rollback{
		to: d, reason: "DeploymentRollback",
		note: fmt.Sprintf("Rolled back deployment %q to revision %d", d.Name, number),
	}
}
