package await_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/reconcile/await"
	"github.com/leatproject/leat/testserver"
)

// started runs an API server in memory and returns it with a client.
func started() (*testserver.Server, *apiclient.Client, context.CancelFunc) {
	s := testserver.New(testserver.Options{ImmediateDeletion: true})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = s.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport})
	if err != nil {
		panic(err)
	}
	return s, client, cancel
}

// A condition is a function on any type of object.
func Example() {
	server, client, stop := started() // a real program uses apiclient.New(kubeconfig.Load(…))
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	succeeded := await.Condition[*corev1.Pod]{
		Name: "success",
		Met: func(pod *corev1.Pod, exists bool) (bool, error) {
			if exists && pod.Status.Phase == corev1.PodFailed {
				return false, errors.New("the pod has failed") // waiting longer is useless
			}
			return exists && pod.Status.Phase == corev1.PodSucceeded, nil
		},
		State: func(pod *corev1.Pod) string { return "phase " + string(pod.Status.Phase) },
	}
	_, _ = server.Create(pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Status:     corev1.PodStatus{Phase: corev1.PodSucceeded},
	})
	pod, err := await.Object(ctx, apiclient.NewPartial[*corev1.Pod](client, pods, "default"), web, succeeded, await.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pod.Name, pod.Status.Phase)
	// Output: web Succeeded
}

// All waits until all selected objects are Ready at the same moment.
func ExampleAll() {
	server, client, stop := started()
	defer stop()
	_, _ = server.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	lw := apiclient.NewPartial[*unstructured.Unstructured](client, pods, "default")
	_, err := await.All(ctx, lw, await.Status("Ready", "True"), await.Options{})
	var unmet *await.UnmetError
	if errors.As(err, &unmet) {
		fmt.Println("no", unmet.What)
	}
	// Output: no condition Ready=True
}

// Gone waits until objects are deleted. It needs only their metadata.
func ExampleGone() {
	server, client, stop := started()
	defer stop()
	_, _ = server.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})

	lw := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, "default")
	o := await.Options{OnWaiting: func([]await.Waiting) { _ = server.Delete(pods, web) }}
	gone, err := await.Gone(context.Background(), lw, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(gone), "gone")
	// Output: 1 gone
}
