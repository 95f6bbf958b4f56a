package scopes_test

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
)

type widget = fixture.Widget

var (
	widgets    = fixture.Widgets
	namespaces = api.Resource{Group: "leat.test", Version: "v1", Kind: "Team", Plural: "teams"}
)

// world is a test server in a bubble, and a set.
type world struct {
	*fixture.Fixture
	set *scopes.Set[*widget]
}

func newWorld(t *testing.T, o testserver.Options, so scopes.Options[*widget]) *world {
	t.Helper()
	w := &world{fixture.New(t, o), scopes.New(widgets, so)}
	w.Server.Register(namespaces)
	return w
}

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, o testserver.Options, so scopes.Options[*widget], test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, o, so)) })
}

// sync runs the set until the test ends, and waits for its first list and for its handlers.
func (w *world) sync() {
	w.Start(w.set.Run)
	<-w.set.Synced()
	synctest.Wait()
}

// in returns a scope of a namespace, or of all namespaces, with a label selector.
func (w *world) in(namespace, labels string) scopes.Scope[*widget] {
	return scopes.Scope[*widget]{
		Source:   fixture.Source(w.Fixture, namespace),
		Selector: api.Selector{Labels: labels},
	}
}

func (w *world) create(namespace, name, color string) {
	w.Helper()
	o := fixture.Named(namespace, name)
	o.Labels = map[string]string{"color": color}
	w.Create(widgets, o)
}

// paint changes the label of a widget and returns its version.
func (w *world) paint(namespace, name, color string) string {
	w.Helper()
	return w.Edit(widgets, api.Key{Namespace: namespace, Name: name}, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"color": color})
	}).GetResourceVersion()
}

func (w *world) record() *fixture.History[*widget] {
	w.Helper()
	return fixture.Follow(w, w.set.Subscribe, informer.HandlerOptions{Name: "recorder"})
}
