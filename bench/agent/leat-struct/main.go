// Command leat-struct watches pods with leat, as a struct with a few fields, like a lightweight agent.
package main

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/informer"
)

func main() {
	log, err := zap.NewProduction()
	if err != nil {
		panic(err)
	}
	if err := run(context.Background(), os.Args[1], log); err != nil {
		log.Fatal("the agent has ended", zap.Error(err))
	}
}

func run(ctx context.Context, host string, log *zap.Logger) error {
	client, err := apiclient.New(apiclient.Config{Host: host})
	if err != nil {
		return err
	}
	resource := api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	pods := informer.New(apiclient.NewPartial[*subject.Pod](client, resource, ""), informer.Options[*subject.Pod]{Logger: log})
	registration, err := pods.AddEventHandler(informer.HandlerFuncs[*subject.Pod]{
		UpdateFunc: func(_, pod *subject.Pod) { fmt.Println(pod.Metadata.Name, pod.Status.Phase) },
	}, informer.HandlerOptions{})
	if err != nil {
		return err
	}
	go func() {
		<-registration.Synced()
		fmt.Println(pods.Cache().Len(), "pods")
	}()
	return pods.Run(ctx)
}
