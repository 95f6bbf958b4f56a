// Command lws measures the caches of the controllers of LeaderWorkerSet.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/controllers"

	"github.com/leatproject/leat/bench/projects/rig"
)

func main() {
	utilruntime.Must(lws.AddToScheme(scheme.Scheme))
	set := &lws.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set"}}
	set.Spec.Replicas, set.Spec.LeaderWorkerTemplate.Size = new(int32(1)), new(int32(2))
	set.Spec.RolloutStrategy.Type = lws.RollingUpdateStrategyType // what its webhook sets
	set.Spec.RolloutStrategy.RollingUpdateConfiguration = &lws.RollingUpdateConfiguration{Partition: new(int32(0))}
	set.Spec.NetworkConfig = &lws.NetworkConfig{SubdomainPolicy: new(lws.SubdomainShared)}
	//leat:fields metadata.name
	rig.Main(rig.Project{
		Name:    "LeaderWorkerSet 0.8.0",
		Groups:  []schema.GroupVersion{lws.GroupVersion},
		Objects: []client.Object{set},
		Masks:   map[client.Object][]string{&corev1.Pod{}: PodFields},
		Setup:   setup,
	})
}

func setup(_ context.Context, m ctrl.Manager) error {
	if err := controllers.SetupIndexes(m.GetFieldIndexer()); err != nil {
		return err
	}
	events := m.GetEventRecorderFor("lws") //nolint:staticcheck // the project takes this one
	if err := controllers.NewLeaderWorkerSetReconciler(m.GetClient(), m.GetScheme(), events).SetupWithManager(m); err != nil {
		return err
	}
	return controllers.NewPodReconciler(m.GetClient(), m.GetScheme(), events, nil).SetupWithManager(m)
}
