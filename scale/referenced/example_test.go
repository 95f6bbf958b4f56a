package referenced_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/referenced"
	"github.com/leatproject/leat/testserver"
)

// A program caches the Secrets that its Widgets name, and no other Secret.
func Example() {
	server := testserver.New(testserver.Options{})
	server.Define(testserver.Definition{Resource: fixture.Widgets})
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		panic(err)
	}
	defer client.CloseIdleConnections()
	for _, name := range []string{"used", "other"} {
		_, _ = server.Create(secrets, &corev1.Secret{ObjectMeta: fixture.Meta("default", name)})
	}
	w := fixture.Named("default", "w")
	w.Spec.Tags = []string{"used"}
	_, _ = server.Create(widgets, w)

	referrers := informer.New(apiclient.NewPartial[*widget](client, widgets, ""), informer.Options[*widget]{})
	set := referenced.New(apiclient.NewPartial[*corev1.Secret](client, secrets, ""), referenced.Options[*corev1.Secret]{})
	users, err := referenced.Follow(set, referrers, references)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- fixture.All(server.Run, referrers.Run, set.Run)(ctx) }()

	used, err := set.Get(ctx, key("used"))
	fmt.Println(used.Name, err, users.Keys(api.KeyOf(used)))
	_, err = set.Get(ctx, key("other"))
	fmt.Println(err)
	cancel()
	<-ended
	// Output:
	// used <nil> [default/w]
	// referenced: secrets default/other is not cached: no object refers to it
}
