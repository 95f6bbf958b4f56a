package clientgo_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/adapter/clientgo/restconfig"
	"github.com/leatproject/leat/apiclient"
)

func Example() {
	config := &rest.Config{Host: "https://10.0.0.1:6443"} // usually from clientcmd or rest.InClusterConfig
	clientset := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(clientset, time.Hour)

	client, err := restconfig.NewClient(config)
	if err != nil {
		panic(err)
	}
	_, err = clientgo.Preload(factory, apiclient.NewTyped[*corev1.Pod](client, pods, ""), clientgo.Options[*corev1.Pod]{})
	if err != nil {
		panic(err)
	}

	// Everything below is as before.
	lister := factory.Core().V1().Pods().Lister() // reads leat's cache
	_, err = lister.Pods("default").Get("web")
	fmt.Println(err)
	// Output: pod "web" not found
}

func ExampleNewSharedIndexInformer() {
	clientset := fake.NewClientset(pod("web"))
	api := clientset.CoreV1().Pods("default")
	lw := &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return api.Watch(ctx, o) },
	}
	i := clientgo.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go i.RunWithContext(ctx)
	<-i.HasSyncedChecker().Done()
	fmt.Println(i.GetStore().ListKeys())
	// Output: [default/web]
}
