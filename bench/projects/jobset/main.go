// Command jobset measures the caches of the controllers of JobSet.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"

	"github.com/leatproject/leat/bench/projects/rig"
)

func main() {
	utilruntime.Must(jobset.AddToScheme(scheme.Scheme))
	//leat:fields metadata.name
	rig.Main(rig.Project{
		Name:   "JobSet 0.11.1",
		Groups: []schema.GroupVersion{jobset.GroupVersion},
		Setup:  setup,
	})
}

func setup(ctx context.Context, m ctrl.Manager) error {
	if err := controllers.SetupJobSetIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	events := m.GetEventRecorderFor("jobset") //nolint:staticcheck // the project takes this one
	if err := controllers.NewJobSetReconciler(m.GetClient(), m.GetScheme(), events).SetupWithManager(m); err != nil {
		return err
	}
	return controllers.NewPodReconciler(m.GetClient(), m.GetScheme(), events).SetupWithManager(m)
}
