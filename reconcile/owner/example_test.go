package owner_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reconcile/owner"
)

func ExampleSetController() {
	replicaSets := api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	web := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}
	pod := &metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}

	fmt.Println(owner.SetController(web, replicaSets, pod))
	fmt.Println(owner.Controls(web, pod))
	fmt.Println(owner.SetController(&metav1.ObjectMeta{Namespace: "shop", Name: "api", UID: "u2"}, replicaSets, pod))
	// Output:
	// <nil>
	// true
	// owner: shop/web-1 is already controlled by ReplicaSet web
}

func ExampleClaimer() {
	replicaSets := api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	web := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}
	claimer := owner.Claimer[*metav1.ObjectMeta, *metav1.ObjectMeta]{
		Owner: web, Resource: replicaSets,
		Selects: func(pod *metav1.ObjectMeta) bool { return pod.Labels["app"] == "web" },
		Live:    func(context.Context) (*metav1.ObjectMeta, error) { return web, nil }, // a real program sends a Get
		Patch: func(_ context.Context, pod *metav1.ObjectMeta, patch []byte) (*metav1.ObjectMeta, error) { // a real program sends a Patch
			fmt.Println("patch", pod.Name)
			return pod, nil
		},
	}
	pods, err := claimer.Claim(context.Background(), []*metav1.ObjectMeta{
		{Namespace: "shop", Name: "orphan", Labels: map[string]string{"app": "web"}},
		{Namespace: "shop", Name: "stranger", Labels: map[string]string{"app": "api"}},
	})
	fmt.Println(len(pods), pods[0].Name, err)
	// Output:
	// patch orphan
	// 1 orphan <nil>
}
