package referenced_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/referenced"
	"github.com/leatproject/leat/testserver"
)

type (
	secret = corev1.Secret
	widget = fixture.Widget
)

var (
	secrets = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	widgets = fixture.Widgets
)

// rig is a test server in a bubble, a set of Secrets, and an informer of Widgets, whose tags name Secrets.
type rig struct {
	*fixture.Fixture
	live    *apiclient.TypedClient[*secret]
	widgets *informer.Informer[*widget]
	set     *referenced.Set[*secret]
	index   *cache.Index[*widget, api.Key]
}

// newRig makes a rig whose requests go through wrap, which may be nil.
func newRig(t testing.TB, s testserver.Options, o referenced.Options[*secret], wrap func(http.RoundTripper) http.RoundTripper) *rig {
	t.Helper()
	r := &rig{Fixture: fixture.New(t, s)}
	r.live = apiclient.NewTyped[*secret](r.Connect(wrap), secrets, "")
	r.widgets = informer.New(fixture.Source(r.Fixture, ""), informer.Options[*widget]{Tuning: o.Tuning})
	o.Mutations = informer.DetectMutations(func(m cache.Mutation) { t.Error(m) })
	r.set = referenced.New(&r.live.PartialClient, o)
	r.index = must.Get(referenced.Follow(r.set, r.widgets, references))(t)
	return r
}

// inBubble runs a test with a rig in a bubble.
func inBubble(t *testing.T, o referenced.Options[*secret], wrap func(http.RoundTripper) http.RoundTripper, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t, testserver.Options{}, o, wrap)) })
}

// sync runs the informers until the test ends, and waits for their first lists.
func (r *rig) sync() (stop func()) {
	stop = r.Start(fixture.All(r.widgets.Run, r.set.Run))
	synctest.Wait()
	return stop
}

func references(w *widget) (keys []api.Key) {
	for _, name := range w.Spec.Tags {
		keys = append(keys, api.Key{Namespace: w.Namespace, Name: name})
	}
	return keys
}

func key(name string) api.Key { return api.Key{Namespace: "default", Name: name} }

// refer creates or changes a Widget that refers to Secrets.
func (r *rig) refer(k api.Key, names ...string) {
	r.Helper()
	w := fixture.Named(k.Namespace, k.Name)
	w.Spec.Tags = names
	if _, err := r.Server.Get(widgets, k); err != nil {
		r.Create(widgets, w)
		return
	}
	r.Edit(widgets, k, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "tags")
		_ = unstructured.SetNestedStringSlice(u.Object, names, "spec", "tags")
	})
}

// write creates or changes a Secret, and returns its version.
func (r *rig) write(k api.Key, value string) string {
	r.Helper()
	if _, err := r.Server.Get(secrets, k); err != nil {
		return r.Create(secrets, &secret{ObjectMeta: fixture.Meta(k.Namespace, k.Name), Data: map[string][]byte{"value": []byte(value)}}).GetResourceVersion()
	}
	return r.Edit(secrets, k, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"value": value}) }).GetResourceVersion()
}

func (r *rig) record() *fixture.History[*secret] {
	r.Helper()
	return fixture.Follow(r, r.set.Subscribe, informer.HandlerOptions{Name: "recorder"})
}

// gets returns the number of requests for single objects.
func (r *rig) gets() (n int) {
	for _, verb := range r.Verbs() {
		if verb == "get" {
			n++
		}
	}
	return n
}

type (
	testserverOptions   = testserver.Options
	testserverInjection = testserver.Injection
	widgetSnapshot      = cache.Snapshot[*widget]
)

// notHeld is a Holding that is not used.
type notHeld struct{ informer.Holding[*secret] }
