package listerwatchertest

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/testserver"
)

// Pods is the resource that the suite lists and watches.
var Pods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

// Make returns the ListerWatcher under test, for the pods of all namespaces of a server. It runs in a bubble.
type Make[T api.Object] func(t *testing.T, s *testserver.Server) api.ListerWatcher[T]

// bench is one case: a running server and the subject.
type bench[T api.Object] struct {
	*testing.T
	server  *testserver.Server
	subject api.ListerWatcher[T]
	stop    func() // stops the server
}

func run[T api.Object](t *testing.T, o testserver.Options, make Make[T], test func(b *bench[T])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(o)
		stop := fixture.Start(t, server.Run)
		defer stop()
		test(&bench[T]{T: t, server: server, subject: make(t, server), stop: stop})
	})
}

// create creates pods with these names in namespace "default" and returns the version of the last one.
func (b *bench[T]) create(names ...string) string {
	b.Helper()
	version := ""
	for _, name := range names {
		version = b.createWith(name, nil)
	}
	return version
}

func (b *bench[T]) createWith(name string, labels map[string]any) string {
	b.Helper()
	pod := map[string]any{
		"metadata": map[string]any{"namespace": "default", "name": name, "labels": labels},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}
	if labels == nil {
		delete(pod["metadata"].(map[string]any), "labels")
	}
	got, err := b.server.Create(Pods, pod)
	require.NoError(b, err)
	return got.GetResourceVersion()
}

// label changes the label "app" of a pod and returns its new version.
func (b *bench[T]) label(name, value string) string {
	b.Helper()
	got, err := b.server.Edit(Pods, key(name), func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app": value})
	})
	require.NoError(b, err)
	return got.GetResourceVersion()
}

// remove deletes a pod and returns the server's version after that.
func (b *bench[T]) remove(name string) string {
	b.Helper()
	now := int64(0)
	require.NoError(b, b.server.Delete(Pods, key(name), metav1.DeleteOptions{GracePeriodSeconds: &now}))
	return b.server.ResourceVersion()
}

func key(name string) api.Key { return api.Key{Namespace: "default", Name: name} }

// list lists and returns the names in the order of arrival.
func (b *bench[T]) list(o metav1.ListOptions) ([]string, metav1.ListMeta, error) {
	var names []string
	meta, err := b.subject.List(b.Context(), api.Options[T]{ListOptions: o}, func(obj T) error {
		names = append(names, obj.GetName())
		return nil
	})
	return names, meta, err
}

// watch opens a watch; next returns one event at a time.
func (b *bench[T]) watch(o metav1.ListOptions) (next func() string, stop func()) {
	return b.pull(b.subject.Watch(b.Context(), api.Options[T]{ListOptions: o}))
}

func (b *bench[T]) pull(events iter.Seq2[api.Event[T], error]) (next func() string, stop func()) {
	pull, stop := iter.Pull2(events)
	b.Cleanup(stop)
	return func() string {
		event, err, ok := pull()
		switch {
		case !ok:
			return "END"
		case err != nil:
			return "ERROR " + err.Error()
		}
		return show(event)
	}, stop
}

// show formats an event as "ADDED web 105", a bookmark as "BOOKMARK 105" and the end of the initial events as "SYNCED
// 105".
func show[T api.Object](e api.Event[T]) string {
	if e.InitialEventsEnd {
		return "SYNCED " + e.ResourceVersion
	}
	if e.Type == "BOOKMARK" {
		return "BOOKMARK " + e.ResourceVersion
	}
	s := fmt.Sprintf("%s %s %s", e.Type, e.Object.GetName(), e.ResourceVersion)
	if e.Object.GetResourceVersion() != e.ResourceVersion || e.Object.GetNamespace() != "default" || e.Object.GetUID() == "" {
		s += " WITH ODD METADATA"
	}
	return s
}

// failure iterates until the end of a watch and returns its error, or nil.
func (b *bench[T]) failure(o metav1.ListOptions) error {
	b.Helper()
	var last error
	for _, err := range b.subject.Watch(b.Context(), api.Options[T]{ListOptions: o}) {
		require.NoError(b, last, "an error is the last thing that a watch yields")
		last = err
	}
	return last
}

// requests returns the verbs of the requests that the server received.
func (b *bench[T]) requests() string {
	var verbs []string
	for _, r := range b.server.Requests() {
		verbs = append(verbs, r.Verb)
	}
	return strings.Join(verbs, " ")
}
