// Command training measures the caches of the controllers of Kubeflow's training operator.
package main

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"

	"github.com/leatproject/leat/bench/projects/rig"
)

func main() {
	utilruntime.Must(kubeflow.AddToScheme(scheme.Scheme))
	//leat:fields metadata.name
	rig.Main(rig.Project{
		Name:   "Training Operator 1.9.3",
		Groups: []schema.GroupVersion{kubeflow.GroupVersion},
		Setup:  setup,
	})
}

func setup(_ context.Context, m ctrl.Manager) error {
	for _, kind := range slices.Sorted(maps.Keys(controllers.SupportedSchemeReconciler)) {
		if err := controllers.SupportedSchemeReconciler[kind](m, common.GenNonGangSchedulerSetupFunc(), 1); err != nil {
			return err
		}
	}
	return nil
}
