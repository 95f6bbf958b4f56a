package warmstart_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/warmstart"
	"github.com/leatproject/leat/testserver"
)

// An agent that starts a second time reads its state from the file.
func Example() {
	server := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		panic(err)
	}
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	namespaces := apiclient.NewPartial[*named](client, api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}, "")
	for range 2 {
		warm, err := warmstart.New(namespaces, warmstart.Options{Path: filepath.Join(folder, "file"), Cluster: client.Host()})
		if err != nil {
			panic(err)
		}
		inf := informer.New(warm, informer.Options[*named]{})
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- inf.Run(ctx) }()
		<-inf.Synced()
		fmt.Println(inf.Cache().Len(), "namespaces, warm start:", warm.Status().Warm)
		stop()
		<-ended
		if err := warm.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// 4 namespaces, warm start: false
	// 4 namespaces, warm start: true
}
