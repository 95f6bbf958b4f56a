package training

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/reconcile/owner"
)

// batch identifies the expectations of the objects of one kind and one type of replica, or of no known type. A job
// waits for all of its batches.
type batch struct {
	job      types.UID
	kind     string
	replicas job.ReplicaType
}

func batchesOf(uid types.UID) []batch {
	var all []batch
	for _, t := range batchTypes() {
		all = append(all, batch{uid, Pods.Kind, t}, batch{uid, Services.Kind, t})
	}
	return all
}

// sources returns the sources of the controller: jobs, their Pods and Services, and orphans that they may adopt. The
// sources of Pods and Services settle the expectations on the same goroutine and before they add the key. The reconcile
// that an event causes therefore does not wait for that event's object.
func (r *reconciler) sources(o Options) []controller.Source[api.Key] {
	return []controller.Source[api.Key]{
		controller.For(o.Jobs.Informer()).When(r.forget),
		controller.Owns(o.Jobs.Informer(), o.Pods).When(observe[*plan.Pod](r, Pods.Kind), predicate.ResourceVersionChanged),
		controller.Owns(o.Jobs.Informer(), o.Services).When(observe[*plan.Service](r, Services.Kind), predicate.ResourceVersionChanged),
		controller.Map(o.Pods, jobOfOrphan[*plan.Pod]).Named("orphaned pods").
			Unless(predicate.Deleted).WhenAny(predicate.LabelsChanged, predicate.Changed(owner.ControllerOf[*plan.Pod])),
		controller.Map(o.Services, jobOfOrphan[*plan.Service]).Named("orphaned services").
			Unless(predicate.Deleted).WhenAny(predicate.LabelsChanged, predicate.Changed(owner.ControllerOf[*plan.Service])),
	}
}

// forget drops the expectations of a deleted job. It is a predicate that drops no change.
func (r *reconciler) forget(n api.Change[*job.TrainingJob]) bool {
	if n.Type == api.Deleted {
		for _, b := range batchesOf(n.Object.UID) {
			r.expected.Forget(b)
		}
	}
	return true
}

// observe settles the expectations of an object. It is a predicate that drops no change. The first change with a
// deletionTimestamp counts as the deletion; the later removal does not count again. An object of an earlier job of the
// same name counts for that job.
func observe[T metav1.Object](r *reconciler, kind string) func(api.Change[T]) bool {
	return func(n api.Change[T]) bool {
		b := batch{job: owner.ControllerOf(n.Object), kind: kind, replicas: typeOf(n.Object)}
		if n.Type == api.Added {
			r.expected.Created(b, 1)
		}
		if n.Type == api.Deleted || n.Object.GetDeletionTimestamp() != nil {
			r.expected.Deleted(b, n.Object.GetUID())
		}
		return true
	}
}

// unclear is the type of objects with a job's label and no known type. They belong to the job and are deleted with it.
const unclear job.ReplicaType = ""

func batchTypes() []job.ReplicaType { return append(slices.Clone(job.ReplicaTypes), unclear) }

func typeOf(o metav1.Object) job.ReplicaType {
	if t := job.ReplicaType(o.GetLabels()[job.LabelType]); slices.Contains(job.ReplicaTypes, t) {
		return t
	}
	return unclear
}

// jobOfOrphan returns the key of the job that an orphan's label names, whether or not that job exists.
func jobOfOrphan[T metav1.Object](o T) []api.Key {
	name := o.GetLabels()[job.LabelJob]
	if name == "" || owner.ControllerOf(o) != "" {
		return nil
	}
	return []api.Key{{Namespace: o.GetNamespace(), Name: name}}
}
