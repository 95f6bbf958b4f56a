package scopes_test

import (
	"context"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
)

// serve returns a client of a test server with a widget in each namespace, and a team for each namespace.
func serve(ctx context.Context, names ...string) *apiclient.Client {
	server := testserver.New(testserver.Options{})
	server.Register(widgets)
	server.Register(namespaces)
	for _, name := range names {
		_, _ = server.Create(widgets, fixture.Named(name, "one"))
		_, _ = server.Create(namespaces, fixture.Named("", name))
	}
	go func() { _ = server.Run(ctx) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	if err != nil {
		panic(err)
	}
	return client
}

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := serve(ctx, "team-a", "team-b", "team-c")
	set := scopes.New(widgets, scopes.Options[*widget]{})
	for _, namespace := range []string{"team-a", "team-b"} {
		scope := scopes.Scope[*widget]{Source: apiclient.NewPartial[*widget](client, widgets, namespace)}
		if err := set.Add(scope); err != nil {
			panic(err)
		}
	}
	go func() { _ = set.Run(ctx) }()
	_ = set.WaitForIn(ctx, "team-a", "0") // team-b may be late
	fmt.Println("team-a has a version:", scopes.VersionIn(set.Snapshot(), "team-a") != "")
	<-set.Synced()
	fmt.Println(set.Names(), set.Cache().Len(), "objects")
	<-set.Remove("team-b", scopes.Notify)
	fmt.Println(set.Names(), set.Cache().Len(), "object")
	_ = set.Add(scopes.Scope[*widget]{
		Name: "web", Source: apiclient.NewPartial[*widget](client, widgets, "team-c"), Selector: api.Selector{Labels: "app!=db"},
	})
	<-set.ScopeSynced("web")
	fmt.Println(set.Names(), set.Cache().Len(), "objects")
	// Output:
	// team-a has a version: true
	// [team-a team-b] 2 objects
	// [team-a] 1 object
	// [team-a web] 2 objects
}

func ExampleFollow() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := serve(ctx, "team-a", "team-b")
	set := scopes.New(widgets, scopes.Options[*widget]{})
	teams := informer.New(apiclient.NewPartial[*widget](client, namespaces, ""), informer.Options[*widget]{
		Selector: api.Selector{Labels: "paused!=true"},
	})
	err := scopes.Follow(set, teams, func(team *widget) (scopes.Scope[*widget], bool) {
		return scopes.Scope[*widget]{Source: apiclient.NewPartial[*widget](client, widgets, team.Name)}, true
	})
	if err != nil {
		panic(err)
	}
	go func() { _ = teams.Run(ctx) }()
	go func() { _ = set.Run(ctx) }()
	<-set.Synced()
	fmt.Println(set.Names())
	// Output: [team-a team-b]
}
