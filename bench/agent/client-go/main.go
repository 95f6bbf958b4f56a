// Command client-go watches pods with client-go.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		klog.ErrorS(err, "the agent has ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, host string) error {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: host})
	if err != nil {
		return err
	}
	pods := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	registration, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, pod any) { fmt.Println(pod.(*corev1.Pod).Name, pod.(*corev1.Pod).Status.Phase) },
	})
	if err != nil {
		return err
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			fmt.Println(len(pods.GetStore().ListKeys()), "pods")
		}
	}()
	pods.RunWithContext(ctx)
	return nil
}
