package restconfig_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/adapter/clientgo/restconfig"
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
)

func Example() {
	config := &rest.Config{Host: "https://10.0.0.1:6443", BearerToken: "…"} // usually from clientcmd or rest.InClusterConfig
	client, err := restconfig.NewClient(config)
	if err != nil {
		panic(err)
	}
	pods := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	i := informer.New(apiclient.NewTyped[*corev1.Pod](client, pods, ""), informer.Options[*corev1.Pod]{})
	fmt.Println(client.Host(), i.Resource())
	// Output: https://10.0.0.1:6443 pods
}
