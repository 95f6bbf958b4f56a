// Package multicluster follows clusters whose kubeconfigs are in Secrets of one cluster, the hub. A cluster joins when
// its Secret appears, and leaves when the Secret disappears, while the program runs. Each cluster has a client and
// informers of its own, and one controller reconciles the objects of all of them, with keys that name the cluster:
//
//	Secret east → client, informers ─┐
//	Secret west → client, informers ─┼→ controller, with keys of type Key
//
// Read multicluster.go for the set, member.go for the life of one cluster, kubeconfig.go for credentials, informers.go
// for sources, and health.go.
//
// # Example
//
//	secrets := api.Selector{Labels: "cluster=yes"}
//	set, err := multicluster.New(hub, multicluster.Options{Namespace: "fleet", Selector: secrets})
//	pods := multicluster.Inform(set, func(c *multicluster.Cluster) api.ListerWatcher[*corev1.Pod] {
//		return apiclient.NewTyped[*corev1.Pod](c.Client(), podResource, "")
//	}, informer.Options[*corev1.Pod]{})
//	ctl := controller.New("pods", controller.KeyedObjects(pods.Get, reconciler), controller.Options{})
//	ctl.Watch(multicluster.For(pods))
//	err = mgr.Add(set, ctl)
//
// # Promises
//
//  1. Clusters join and leave while the program runs. When a cluster leaves, its objects are reconciled once more.
//  2. An unreachable cluster delays no other, and neither the manager nor the workers.
//  3. New credentials in a Secret are used from the next request on; informers go on. If the Secret names another
//     server, the cluster is replaced; readers see the last objects until the new informers are synced.
//  4. A kubeconfig that is not valid leaves the present cluster as it is. The error names the Secret and the field, and
//     no value.
//  5. When a cluster has left, its credentials are dropped, and requests of its client fail with ErrLeft.
//  6. A kubeconfig in a Secret cannot read a file of the program, and runs no plugin that Options do not allow.
//  7. Health, Check and Options.Checks say which cluster is not healthy and why.
//
// # Concurrency
//
// Each cluster has a goroutine, and those of its informers. All methods may be called on any goroutine, before, during
// and after Run. Only Run blocks.
//
// # Differences from controller-runtime
//
// The package does what multicluster-runtime does with its provider of kubeconfigs, for informers of leat. That project
// has providers for other sources of clusters, such as Cluster API and kind.
package multicluster
