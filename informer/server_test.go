package informer_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// serve runs a test server with three widgets in the background of a bubble, until the test ends.
func serve(t *testing.T, o testserver.Options) (*testserver.Server, *apiclient.PartialClient[*widget]) {
	t.Helper()
	server := testserver.New(o)
	server.Register(widgets)
	for n := range 3 {
		must.Get(server.Create(widgets, named(fmt.Sprint("w", n), n)))(t)
	}
	fixture.Start(t, server.Run)
	client := must.Get(apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport}))(t)
	t.Cleanup(client.CloseIdleConnections)
	return server, apiclient.NewPartial[*widget](client, widgets, "")
}

func named(name string, size int) *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Size: size}
}

// TestRunEndsInEveryState cancels Run in every state in which it can wait. Run must return at once. A goroutine that is
// left would keep the bubble from ending.
func TestRunEndsInEveryState(t *testing.T) {
	everything := faults.Match{Verbs: []string{"list", "watch"}}
	for _, tc := range []struct {
		name   string
		faults []faults.Fault
		paged  bool
		wait   time.Duration
	}{
		{name: "watching", wait: time.Minute},
		{name: "before it has begun"},
		{name: "waiting for the head of an answer", faults: []faults.Fault{{Match: everything, Effect: faults.Stall{}}}, wait: time.Second},
		{name: "in the middle of a WatchList", faults: []faults.Fault{{Match: everything, Effect: faults.Stall{After: 300}}}, wait: time.Second},
		{name: "in the middle of a page", paged: true, faults: []faults.Fault{{Match: everything, Effect: faults.Stall{After: 300}}}, wait: time.Second},
		{name: "in the middle of a frame", faults: []faults.Fault{{Match: everything, Effect: faults.CutFrame{At: 10}}}, wait: 5 * time.Second},
		{name: "waiting for the end of a WatchList", faults: []faults.Fault{{
			Match: faults.Match{Frames: []watch.EventType{faults.InitialEventsEnd}}, Effect: faults.Drop{},
		}}, wait: 10 * time.Second},
		{name: "pausing after a refused connection", faults: []faults.Fault{{Effect: faults.Outage{}}}, wait: 45 * time.Second},
		{name: "pausing after 429 in a WatchList", faults: []faults.Fault{{Effect: faults.Fail{Code: 429, RetryAfter: time.Hour}}}, wait: time.Second},
		{name: "pausing after 500 in a list", paged: true, faults: []faults.Fault{{Effect: faults.Fail{Code: 500}}}, wait: 45 * time.Second},
		{name: "pausing after 403", faults: []faults.Fault{{Effect: faults.Fail{Code: 403}}}, wait: 45 * time.Second},
		{name: "between watches that end at once", faults: []faults.Fault{{Effect: faults.ShortWatch{}}}, wait: 20 * time.Second},
	} {
		fixture.Bubble(t, tc.name, func(t *testing.T) {
			server, lw := serve(t, testserver.Options{})
			for _, f := range tc.faults {
				server.Inject(f)
			}
			o := options(t)
			o.NoWatchList = tc.paged
			o.ResyncPeriod = time.Second
			i := informer.New(lw, o)
			subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{})
			stop := running(t, i)
			if tc.wait > 0 {
				<-time.After(tc.wait)
				synctest.Wait()
			}
			started := time.Now()
			stop()
			require.Zero(t, time.Since(started))
		})
	}
}

// synced runs an informer with a recorder until both have the first list.
func synced(t *testing.T, lw api.ListerWatcher[*widget], o informer.Options[*widget]) (*informer.Informer[*widget], *recorder) {
	t.Helper()
	i, r := informer.New(lw, o), new(recorder)
	subscribe(t, i, r.handle, informer.HandlerOptions{})
	running(t, i)
	<-i.Synced()
	synctest.Wait()
	return i, r
}

// TestCacheSurvivesMisbehavingServer injects one kind of misbehaviour at a time after the first list, for ten minutes
// each. The cache must not change meanwhile, and must follow the server again afterwards.
func TestCacheSurvivesMisbehavingServer(t *testing.T) {
	cut := []faults.Fault{{Effect: faults.Disconnect{Abrupt: true}}}
	for name, faults := range map[string][]faults.Fault{
		"401":                            {{Effect: faults.Fail{Code: 401}}},
		"403, as after a loss of rights": {{Effect: faults.Fail{Code: 403}}},
		"404":                            {{Effect: faults.Fail{Code: 404}}},
		"429":                            {{Effect: faults.Fail{Code: 429, RetryAfter: time.Second}}},
		"500":                            {{Effect: faults.Fail{Code: 500}}},
		"503":                            {{Effect: faults.Fail{Code: 503, RetryAfter: 2 * time.Second}}},
		"a page of HTML":                 {{Effect: faults.Fail{Code: 200, Body: []byte("<html>sign in</html>"), Header: map[string][]string{"Content-Type": {"text/html"}}}}},
		"half of an answer":              {{Effect: faults.Cut{After: 150}}},
		"items that are not objects":     {{Effect: faults.Malform{Mangle: func([]byte) []byte { return []byte(`{"items":3}`) }}}},
		"no JSON":                        {{Effect: faults.Malform{Mangle: func([]byte) []byte { return []byte(`{"metadata":{"name":"w1"`) }}}},
		"a string instead of an object":  {{Effect: faults.Malform{Mangle: func([]byte) []byte { return []byte(`"w1"`) }}}},
		"empty objects":                  {{Effect: faults.Malform{Mangle: func([]byte) []byte { return []byte(`{}`) }}}},
		"objects without a name":         {{Effect: faults.Malform{Mangle: replaced(`"name":"`, `"noname":"`)}}},
		"objects without a namespace":    {{Effect: faults.Malform{Mangle: replaced(`"namespace":"default"`, `"namespace":""`)}}},
		"names that are not UTF-8":       {{Effect: faults.Malform{Mangle: replaced(`"name":"`, `"name":"`+"\xff")}}},
		"names with a slash":             {{Effect: faults.Malform{Mangle: replaced(`"name":"`, `"name":"a/`)}}},
		"namespaces with a slash":        {{Effect: faults.Malform{Mangle: replaced(`"namespace":"`, `"namespace":"a/`)}}},
		"silence":                        {{Effect: faults.Stall{}}},
		"an outage":                      {{Effect: faults.Outage{}}},
		"connection resets":              {{Effect: faults.Reset{}}},
		"410 forever":                    {{Match: faults.Match{Verbs: []string{"watch"}}, Effect: faults.Fail{Code: 410}}, {Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Fail{Code: 500}}},
		"an empty list that ends early":  {{Match: faults.Match{Verbs: []string{"watch"}}, Effect: faults.Fail{Code: 410}}, {Match: faults.Match{Frames: []watch.EventType{faults.Item}}, Effect: faults.Drop{}}, {Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Cut{After: 60}}},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			server, lw := serve(t, testserver.Options{})
			i, r := synced(t, lw, options(t))
			before := i.Cache().List()
			require.Len(t, r.take(), 3)
			for _, f := range append(faults, cut...) {
				server.Inject(f)
			}
			<-time.After(10 * time.Minute)
			synctest.Wait()
			require.ElementsMatch(t, before, i.Cache().List())
			require.Empty(t, r.take())
			require.Less(t, len(server.Requests()), 100, "there must be pauses between requests")
			server.Heal()
			must.Get(server.Create(widgets, named("new", 9)))(t)
			<-time.After(2 * time.Minute)
			synctest.Wait()
			// A server that answered only errors for half a minute may have been restored. So the first list
			// reuses no known object, and handlers get each as an update.
			require.Subset(t, []string{"Added new 9", "Updated new 9→9", "Updated w0 0→0", "Updated w1 1→1", "Updated w2 2→2"}, r.take())
			require.Len(t, i.Cache().List(), 4)
			require.Nil(t, i.Status().Reflector.Err)
		})
	}
}

// TestAnswersOfAnotherKindAreFailures has a server that answers with the objects of another resource, as a proxy does
// that mixes up paths.
func TestAnswersOfAnotherKindAreFailures(t *testing.T) {
	const secret = `{"metadata":{"namespace":"default","name":"token","uid":"s","resourceVersion":"899"},"data":{}}`
	for _, tc := range []struct{ name, body, watched, kind string }{
		{name: "another group", kind: "Secret", body: `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[` + secret + `]}`},
		{name: "another group and the same kind", kind: "Widget", body: `{"kind":"WidgetList","apiVersion":"metrics.k8s.io/v1","metadata":{"resourceVersion":"900"},"items":[` + secret + `]}`},
		{name: "no items", kind: "Secret", body: `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[]}`},
		{name: "the same group", kind: "Gadget", body: `{"apiVersion":"leat.test/v1","items":[` + secret + `],"kind":"GadgetList","metadata":{"resourceVersion":"900"}}`},
		{name: "a WatchList", kind: "Secret", watched: `{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1",` + secret[1:] + `}
{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"900","annotations":{"k8s.io/initial-events-end":"true"}}}}`},
	} {
		fixture.Bubble(t, tc.name, func(t *testing.T) {
			server, lw := serve(t, testserver.Options{})
			o := options(t)
			o.NoWatchList = tc.watched == ""
			var err error // the last one of the codec
			o.OnError = func(e error) {
				if errors.Is(e, codec.ErrUnexpectedKind) {
					err = e
				}
			}
			i, r := synced(t, lw, o)
			before := i.Cache().List()
			require.Len(t, r.take(), 3)
			answers := map[string]faults.Effect{"list": faults.Fail{Code: 500}, "watch": faults.Fail{Code: 410}}
			for verb, body := range map[string]string{"list": tc.body, "watch": tc.watched} {
				if body != "" {
					answers[verb] = faults.Fail{Code: 200, Body: []byte(body), Header: map[string][]string{"Content-Type": {"application/json"}}}
				}
				server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{verb}}, Effect: answers[verb]})
			}
			server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
			asked := len(server.Requests())
			<-time.After(10 * time.Minute)
			synctest.Wait()
			require.ElementsMatch(t, before, i.Cache().List())
			require.Empty(t, r.take())
			require.Less(t, len(server.Requests())-asked, 50, "there must be pauses between requests")
			require.ErrorContains(t, err, `kind "Widget" of "leat.test/v1"`)
			require.ErrorContains(t, err, `kind "`+tc.kind)
			server.Heal()
			<-time.After(2 * time.Minute)
			synctest.Wait()
			require.Nil(t, i.Status().Reflector.Err)
			require.Len(t, i.Cache().List(), 3)
		})
	}
}

// replaced returns a function that makes an object malformed by replacing a part of it.
func replaced(old, now string) func([]byte) []byte {
	return func(object []byte) []byte { return bytes.ReplaceAll(object, []byte(old), []byte(now)) }
}

// TestForeignObjectsAreRejected has a server that sends objects that cannot belong to the collection, in lists and
// watches of the namespace default. Their bytes are those that a hostile or broken server would send.
func TestForeignObjectsAreRejected(t *testing.T) {
	for name, mangle := range map[string]func([]byte) []byte{
		"of another namespace": replaced(`"namespace":"default"`, `"namespace":"kube-system"`),
		"of no namespace":      replaced(`"namespace":"default",`, ``),
		"without a name":       replaced(`"name":"foreign",`, ``),
		"of nothing":           func([]byte) []byte { return []byte(`{}`) },
		"not UTF-8":            replaced(`"name":"foreign"`, `"name":"for`+"\xff"+`eign"`),
		"with a slash":         replaced(`"name":"foreign"`, `"name":"a/foreign"`),
		"undecodable, too":     replaced(`"name":"foreign",`, `"name":"a/foreign","labels":["none"],`),
	} {
		for _, paged := range []bool{false, true} {
			fixture.Bubble(t, fmt.Sprintf("%s, paged=%t", name, paged), func(t *testing.T) {
				server, all := serve(t, testserver.Options{})
				_, err := server.Create(widgets, named("foreign", 7))
				require.NoError(t, err)
				server.Inject(faults.Fault{Match: faults.Match{Name: "foreign"}, Effect: faults.Malform{Mangle: mangle}})
				o := options(t)
				o.NoWatchList = paged
				i, r := synced(t, apiclient.NewPartial[*widget](all.Client(), widgets, "default"), o)
				require.ElementsMatch(t, []string{"Added w0 0 initial", "Added w1 1 initial", "Added w2 2 initial"}, r.take())
				status := i.Status().Reflector
				require.Equal(t, 1, status.Counters.Malformed)
				require.ErrorIs(t, status.LastMalformed, reflector.ErrMalformed)
				require.Contains(t, i.Status().String(), "1 malformed")
				require.NoError(t, status.Err)

				_, err = server.Update(widgets, named("foreign", 8))
				require.NoError(t, err)
				_, err = server.Update(widgets, named("w1", 9))
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, []string{"Updated w1 1→9"}, r.take(), "the watch must continue")
				require.Equal(t, 2, i.Status().Reflector.Counters.Malformed)
				require.Empty(t, i.Undecodable(), "foreign objects must not count as undecodable")
			})
		}
	}
}

func TestRelistOfUnchangedObjectsNotifiesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, lw := serve(t, testserver.Options{})
		i, r := synced(t, lw, options(t))
		before := i.Cache().List()
		r.take()
		outage := server.Inject(faults.Fault{Effect: faults.Outage{}})
		must.Get(server.Create(widgets, named("new", 9)))(t)
		compact := server.Inject(faults.Fault{Effect: faults.Compact{}})
		outage.Remove()
		<-time.After(time.Minute)
		synctest.Wait()
		require.Positive(t, compact.Seen())
		require.Equal(t, 2, i.Status().Reflector.Counters.Lists)
		require.Equal(t, []string{"Added new 9"}, r.take())
		for _, w := range before {
			now, _ := i.Cache().Get(api.KeyOf(w))
			require.Same(t, w, now)
		}
	})
}

// TestNoListReuse has a server whose objects change without a new version.
func TestNoListReuse(t *testing.T) {
	for _, noReuse := range []bool{false, true} {
		fixture.Bubble(t, fmt.Sprintf("noReuse=%v", noReuse), func(t *testing.T) {
			server, lw := serve(t, testserver.Options{})
			o := options(t)
			o.NoListReuse, o.NoWatchList = noReuse, true
			i, r := synced(t, lw, o)
			r.take()
			server.Inject(faults.Fault{
				Match: faults.Match{Frames: []watch.EventType{faults.Item}, Name: "w1"},
				Effect: faults.Malform{Mangle: func(object []byte) []byte {
					return bytes.Replace(object, []byte(`"size":1`), []byte(`"size":7`), 1)
				}},
			})
			server.Inject(faults.Fault{Effect: faults.Disconnect{Error: &metav1.Status{
				Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired,
			}}})
			<-time.After(time.Minute)
			synctest.Wait()
			require.Equal(t, 2, i.Status().Reflector.Counters.Lists)
			if noReuse {
				require.ElementsMatch(t, []string{"Updated w0 0→0", "Updated w1 1→7", "Updated w2 2→2"}, r.take())
			} else {
				require.Empty(t, r.take())
			}
		})
	}
}

func TestManagedFieldsAreDropped(t *testing.T) {
	for _, keep := range []bool{false, true} {
		fixture.Bubble(t, fmt.Sprintf("keep=%v", keep), func(t *testing.T) {
			_, lw := serve(t, testserver.Options{ManagedFields: true})
			o := options(t)
			o.KeepManagedFields = keep
			i := informer.New(lw, o)
			running(t, i)
			<-i.Synced()
			for _, w := range i.Cache().List() {
				require.Equal(t, keep, len(w.ManagedFields) > 0)
			}
		})
	}
}
