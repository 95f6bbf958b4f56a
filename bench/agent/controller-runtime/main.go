// Command controller-runtime watches pods with a cache of controller-runtime.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		klog.ErrorS(err, "the agent has ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, host string) error {
	m, err := manager.New(&rest.Config{Host: host}, manager.Options{
		Metrics:        server.Options{BindAddress: "0"},
		MapperProvider: mapper,
	})
	if err != nil {
		return err
	}
	go func() {
		if err := watch(ctx, m); err != nil {
			klog.ErrorS(err, "pods are not watched")
			os.Exit(1)
		}
	}()
	return m.Start(ctx)
}

func watch(ctx context.Context, m manager.Manager) error {
	pods, err := m.GetCache().GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	_, err = pods.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, pod any) { fmt.Println(pod.(*corev1.Pod).Name, pod.(*corev1.Pod).Status.Phase) },
	})
	if err != nil {
		return err
	}
	var list corev1.PodList
	if err := m.GetClient().List(ctx, &list); err != nil {
		return err
	}
	fmt.Println(len(list.Items), "pods")
	return nil
}
