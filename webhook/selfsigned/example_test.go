package selfsigned_test

import (
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
)

func ExampleNew() {
	client, err := apiclient.New(apiclient.Config{Host: "https://kubernetes.default.svc"})
	if err != nil {
		fmt.Println(err)
		return
	}
	certificates, err := selfsigned.New(selfsigned.Options{
		Client: client, Secret: api.Key{Namespace: "bakery", Name: "webhooks"}, Hosts: []string{"webhooks.bakery.svc"},
		Mutating: []string{"bakery"}, Validating: []string{"bakery"}, CustomResources: []string{"breads.bakery.example"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := webhook.New(webhook.Options{Certificates: certificates})
	fmt.Println(server.Name(), err) // add webhooks with Handle, and the server to a Manager
	// Output:
	// webhook <nil>
}
