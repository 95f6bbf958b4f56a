package rollout

import (
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// rollback is a Deployment that goes back to an older template, or was asked to and cannot.
type rollback struct {
	to      *appsv1.Deployment // as it is to be written: at the least without the request
	warning bool
	reason  string
	note    string
}

// wantsRollback tells whether somebody asked for an older revision, as extensions/v1beta1 had it.
func wantsRollback(d *appsv1.Deployment) bool {
	_, asked := d.Annotations[rollbackAnnotation]
	return asked
}

// rollback answers the request. Whatever comes of it, it is answered once; the change of the template that it may lead to
// is rolled out by the next reconcile, as if a user had made it.
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
			return back(d, s, number)
		}
	}
	return notFound(d, "Unable to find the revision to rollback to.")
}

func notFound(d *appsv1.Deployment, note string) *rollback {
	return &rollback{to: d, warning: true, reason: "DeploymentRollbackRevisionNotFound", note: note}
}

// back gives a Deployment the template of one of its sets, and the annotations that it had when that was new.
func back(d *appsv1.Deployment, s *appsv1.ReplicaSet, number int64) *rollback {
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
