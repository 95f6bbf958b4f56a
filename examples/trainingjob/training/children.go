package training

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reconcile/owner"
)

// children are the objects of one kind that jobs own. The cache has a part of their fields; new objects are created
// whole.
type children[T, W metav1.Object] struct {
	resource api.Resource
	byKeeper *cache.Index[T, workload.Owner]
	view     *apiclient.PartialClient[T]
	whole    *apiclient.TypedClient[W]
	make     func(*job.TrainingJob, plan.Replica) W
}

func newChildren[T, W metav1.Object](c *apiclient.Client, r api.Resource, i *informer.Informer[T], make func(*job.TrainingJob, plan.Replica) W) children[T, W] {
	return children[T, W]{
		resource: r, make: make,
		byKeeper: informer.AddIndex(i, workload.OwnerOf[T]),
		view:     apiclient.NewPartial[T](c, r, ""),
		whole:    apiclient.NewTyped[W](c, r, ""),
	}
}

// find returns the objects of a job. It adopts orphans that have the job's label, and releases objects that no longer
// have it.
func (c children[T, W]) find(ctx context.Context, jobs *cachedclient.Typed[*job.TrainingJob], j *job.TrainingJob) ([]T, error) {
	claimer := owner.Claimer[*job.TrainingJob, T]{
		Owner: j, Resource: job.Resource,
		Selects: func(o T) bool { return o.GetLabels()[job.LabelJob] == j.Name },
		Live: func(ctx context.Context) (*job.TrainingJob, error) {
			return jobs.Live().Get(ctx, api.KeyOf(j), metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, o T, patch []byte) (T, error) {
			return c.view.Patch(ctx, api.KeyOf(o), apiclient.Patch{Type: types.MergePatchType, Data: patch}, apiclient.PatchOptions{})
		},
	}
	mine := c.byKeeper.ByIndex(workload.Owner{Controller: j.UID})
	orphans := c.byKeeper.ByIndex(workload.Owner{Namespace: j.Namespace})
	return claimer.Claim(ctx, append(mine, orphans...))
}

// create creates the object of a replica, owned by the job.
func (c children[T, W]) create(ctx context.Context, j *job.TrainingJob, r plan.Replica) (name string, err error) {
	o := c.make(j, r)
	if err := owner.SetController(j, job.Resource, o); err != nil {
		return "", fmt.Errorf("training: %w", err)
	}
	_, err = c.whole.Create(ctx, o, metav1.CreateOptions{})
	return o.GetName(), err
}

// delete deletes an object, and no other object of the same name.
func (c children[T, W]) delete(ctx context.Context, o T) error {
	return c.view.Delete(ctx, api.KeyOf(o), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))})
}
