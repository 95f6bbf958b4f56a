package cachedclient_test

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

type widget = fixture.Widget

var (
	widgets = fixture.Widgets
	planets = api.Resource{Group: "leat.test", Version: "v1", Kind: "Planet", Plural: "planets"}
	alpha   = api.Key{Namespace: "default", Name: "alpha"}
	owner   = api.Key{Namespace: "default", Name: "owner"} // the key of a reconcile
)

func named(name string, size int64) *widget {
	w := fixture.Named("default", name)
	w.Spec.Size = size
	return w
}

// rig is a server, an informer and a client in a synctest bubble.
type rig struct {
	*fixture.Fixture
	live     *apiclient.TypedClient[*widget]
	informer *informer.Informer[*widget]
	widgets  *cachedclient.Typed[*widget]
	stop     func() // stops the informer
}

// setting configures a rig.
type setting struct {
	server    testserver.Options
	informer  informer.Options[*widget]
	namespace string // of the informer
	live      string // the namespace of the API client; a server deletes collections in one namespace only
	client    cachedclient.Options
	have      []*widget // the objects on the server
}

// bubble runs a test with a rig in a synctest bubble.
func bubble(t *testing.T, s setting, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, s)
		test(r)
		r.Server.Heal()
	})
}

func build(t *testing.T, s setting) *rig {
	f := fixture.New(t, s.server)
	f.Server.Define(testserver.Definition{Resource: planets})
	for _, w := range s.have {
		f.Create(widgets, w)
	}
	s.informer.Mutations = informer.DetectMutations(func(m cache.Mutation) { t.Error(m) })
	r := &rig{
		Fixture: f, live: apiclient.NewTyped[*widget](f.Client, widgets, s.live),
		informer: informer.New(apiclient.NewTyped[*widget](f.Client, widgets, s.namespace), s.informer),
	}
	r.widgets = cachedclient.NewTyped(r.live, r.informer, s.client)
	r.stop = f.Start(r.informer.Run)
	<-r.informer.Synced()
	return r
}

// stallEvents delays all watch events until resume is called.
func (r *rig) stallEvents() (resume func()) {
	i := r.Server.Inject(faults.Fault{Effect: faults.StallEvents{}})
	return func() {
		i.Remove()
		synctest.Wait()
	}
}

// successWithoutUID is an answer to a delete that does not identify the object.
const successWithoutUID = `{"kind":"Status","status":"Success"}`

// answer makes the server answer all requests of a verb with a body, and not process them.
func (r *rig) answer(verb, body string) {
	r.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{verb}}, Effect: faults.Fail{
		Code: 200, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}},
	}})
}

func (r *rig) get(key api.Key) *widget {
	return must.Get(r.widgets.Get(r.Context(), key))(r)
}

// feed is a lister and watcher whose events the test sends.
type feed struct {
	initial []*widget
	version string
	events  chan api.Event[*widget]
}

func newFeed(version string, initial ...*widget) *feed {
	return &feed{initial: initial, version: version, events: make(chan api.Event[*widget])}
}

func (f *feed) Collection() api.Collection { return api.Collection{Resource: widgets} }

func (f *feed) List(_ context.Context, _ api.Options[*widget], each func(*widget) error) (metav1.ListMeta, error) {
	for _, w := range f.initial {
		if err := each(w); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: f.version}, nil
}

func (f *feed) Watch(ctx context.Context, _ api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	return func(yield func(api.Event[*widget], error) bool) {
		for {
			select {
			case e := <-f.events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(api.Event[*widget]{}, ctx.Err())
				return
			}
		}
	}
}

// send sends an event and waits until the informer has processed it.
func (f *feed) send(kind watch.EventType, w *widget) {
	e := api.Event[*widget]{Type: kind, Object: w, ResourceVersion: w.ResourceVersion}
	if kind == watch.Bookmark {
		e.Object = nil
	}
	f.events <- e
	synctest.Wait()
}

// clientOf returns a client of a feed. It has no server, so a test records writes with Wrote.
func clientOf(t *testing.T, f *feed, o cachedclient.Options) *cachedclient.Typed[*widget] {
	i := informer.New(f, informer.Options[*widget]{Tuning: reflector.Tuning{NoWatchList: true}})
	c := must.Get(apiclient.New(apiclient.Config{Host: "http://nowhere.memory"}))(t)
	fixture.Start(t, i.Run)
	<-i.Synced()
	return cachedclient.NewTyped(apiclient.NewTyped[*widget](c, widgets, ""), i, o)
}

// at returns default/alpha with a UID, a version and a size.
func at(uid, version string, size int64) *widget {
	w := named("alpha", size)
	w.UID, w.ResourceVersion = types.UID(uid), version
	return w
}

func sizes(ws []*widget) (s []string) {
	for _, w := range ws {
		s = append(s, w.Namespace+"/"+w.Name+"="+strconv.FormatInt(w.Spec.Size, 10))
	}
	return s
}

// setSize returns an edit of a widget on the server.
func setSize(size int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, size, "spec", "size"); err != nil {
			panic(err)
		}
	}
}
