package await_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
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

	succeeded := func(pod *corev1.Pod, exists bool) (bool, error) {
		if exists && pod.Status.Phase == corev1.PodFailed {
			return false, errors.New("the pod has failed") // waiting longer is useless
		}
		return exists && pod.Status.Phase == corev1.PodSucceeded, nil
	}
	_, _ = server.Create(pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Status:     corev1.PodStatus{Phase: corev1.PodSucceeded},
	})
	pod, err := await.Object(ctx, apiclient.NewPartial[*corev1.Pod](client, pods, "default"), web, "success", succeeded, await.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pod.Name, pod.Status.Phase)
	// Output: web Succeeded
}

// Until waits until several objects together meet a condition: here, until all are deleted. It needs only their
// metadata.
func ExampleUntil() {
	server, client, stop := started()
	defer stop()
	_, _ = server.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})

	lw := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, "default")
	none := func(s *cache.Snapshot[*metav1.PartialObjectMetadata]) (bool, error) {
		if s.Len() > 0 {
			_ = server.Delete(pods, web)
		}
		return s.Len() == 0, nil
	}
	if _, err := await.Until(context.Background(), lw, "the end", none, await.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("gone")
	// Output: gone
}
