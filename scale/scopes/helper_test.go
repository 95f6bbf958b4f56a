package scopes_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
)

// widget is the object type of the tests.
type widget struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Value int `json:"value"`
	} `json:"spec"`
}

var (
	widgets    = api.Resource{Group: "leat.test", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true}
	namespaces = api.Resource{Group: "leat.test", Version: "v1", Kind: "Team", Plural: "teams"}
)

// world is a test server in a bubble, and a set.
type world struct {
	t      *testing.T
	server *testserver.Server
	client *apiclient.Client
	set    *scopes.Set[*widget]
}

func newWorld(t *testing.T, o testserver.Options, so scopes.Options[*widget]) *world {
	t.Helper()
	w := &world{t: t, server: testserver.New(o)}
	w.server.Register(widgets)
	w.server.Register(namespaces)
	client, err := apiclient.New(apiclient.Config{Host: w.server.URL(), Transport: w.server.Client().Transport})
	require.NoError(t, err)
	w.client = client
	w.set = scopes.New(widgets, so)
	w.run(w.server.Run)
	t.Cleanup(client.CloseIdleConnections)
	return w
}

// run runs something until the test ends, or until the returned function is called.
func (w *world) run(run func(context.Context) error) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		ended.Wait()
	})
	w.t.Cleanup(stop)
	return stop
}

// in returns a scope of a namespace, or of all namespaces, with a label selector.
func (w *world) in(namespace, labels string) scopes.Scope[*widget] {
	return scopes.Scope[*widget]{
		Source:   apiclient.NewPartial[*widget](w.client, widgets, namespace),
		Selector: api.Selector{Labels: labels},
	}
}

func (w *world) create(namespace, name, color string) {
	w.t.Helper()
	_, err := w.server.Create(widgets, &widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"color": color},
	}})
	require.NoError(w.t, err)
}

// paint changes the label of a widget and returns its version.
func (w *world) paint(namespace, name, color string) string {
	w.t.Helper()
	u, err := w.server.Edit(widgets, api.Key{Namespace: namespace, Name: name}, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"color": color})
	})
	require.NoError(w.t, err)
	return u.GetResourceVersion()
}

// recorder is a handler that writes down what it gets.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (w *world) record() *recorder {
	w.t.Helper()
	r := &recorder{}
	_, err := w.set.Subscribe(func(c api.Change[*widget]) {
		line := fmt.Sprint(c.Type, " ", c.Object.Namespace, "/", c.Object.Name)
		if c.FinalStateUnknown {
			line += " final state unknown"
		}
		if c.InitialList {
			line += " initial"
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, line)
	}, informer.HandlerOptions{Name: "recorder"})
	require.NoError(w.t, err)
	return r
}

// take returns what the handler got since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}
