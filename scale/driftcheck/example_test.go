package driftcheck_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/driftcheck"
)

// An informer compares its cache with the server about once in ten minutes.
func Example() {
	client, err := apiclient.New(apiclient.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		panic(err)
	}
	pods := apiclient.NewPartial[*metav1.PartialObjectMetadata](
		client, api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}, "")
	inf := informer.New(pods, informer.Options[*metav1.PartialObjectMetadata]{Check: driftcheck.Every(10 * time.Minute)})
	fmt.Println(inf.Status().Check.Missed, "changes were missed")
	// Output: 0 changes were missed
}
