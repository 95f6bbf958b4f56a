package api_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// A field of another object names a Deployment.
func ExampleReferenceTo() {
	deployments := api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	web := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "7"}
	target := corev1.ObjectReference(api.ReferenceTo(deployments, web))
	fmt.Println(target.APIVersion, target.Kind, target.Namespace, target.Name, target.UID, target.ResourceVersion)
	// Output: apps/v1 Deployment shop web u1 7
}
