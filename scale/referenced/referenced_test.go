package referenced_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/scale/referenced"
	"github.com/leatproject/leat/testserver/faults"
)

// failGets makes requests for Secrets fail with a code.
func (r *rig) failGets(code int) *testserverInjection {
	return r.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"get"}, Resource: "secrets"}, Effect: faults.Fail{Code: code}})
}

// holdGets delays the answers to requests for Secrets.
func (r *rig) holdGets(d time.Duration) *testserverInjection {
	return r.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"get"}, Resource: "secrets"}, Effect: faults.Delay{For: d}})
}

// TestReferences counts references: two Widgets refer to one Secret, one after the other stops, and one refers again.
func TestReferences(t *testing.T) {
	inBubble(t, referenced.Options[*secret]{}, nil, func(t *testing.T, r *rig) {
		for _, name := range []string{"a", "b", "c"} {
			r.write(key(name), name)
		}
		r.refer(key("first"), "a")
		r.refer(key("second"), "a", "missing")
		history := r.record()
		r.sync()
		require.True(t, runstate.IsClosed(r.set.Synced()))
		require.Equal(t, []string{"Added default/a initial"}, history.Take())
		require.Equal(t, 1, r.gets())
		require.Equal(t, []api.Key{key("first"), key("second")}, r.index.Keys(key("a")))
		require.Equal(t, 3, r.set.Metadata().Cache().Len())
		require.Equal(t, r.set.Metadata().ResourceVersion(), r.set.ResourceVersion())

		r.Delete(widgets, key("first"))
		r.write(key("a"), "changed")
		r.write(key("b"), "changed")
		synctest.Wait()
		require.Equal(t, []string{"Updated default/a"}, history.Take())
		require.Equal(t, "changed", must.Get(r.set.Get(t.Context(), key("a")))(t).Labels["value"])
		require.Equal(t, 1, r.gets())

		r.refer(key("second"), "b", "missing")
		synctest.Wait()
		require.ElementsMatch(t, []string{"Deleted default/a final state unknown", "Added default/b"}, history.Take())
		r.write(key("missing"), "new")
		r.Delete(secrets, key("b"))
		synctest.Wait()
		require.ElementsMatch(t, []string{"Deleted default/b final state unknown", "Added default/missing"}, history.Take())
	})
}

// TestReads reads objects that are not referenced, that do not exist, and whose requests fail.
func TestReads(t *testing.T) {
	inBubble(t, referenced.Options[*secret]{}, nil, func(t *testing.T, r *rig) {
		r.write(key("a"), "a")
		r.write(key("other"), "b")
		r.sync()
		cached := cachedclient.NewTyped(r.live, r.set.Informer, cachedclient.Options{})
		for _, get := range []func(context.Context, api.Key) (*secret, error){r.set.Get, cached.Get} {
			_, err := get(t.Context(), key("other"))
			var unreferenced *referenced.NotReferencedError
			require.ErrorAs(t, err, &unreferenced)
			require.ErrorContains(t, err, "referenced: secrets default/other is not cached: no object refers to it")
		}
		forbidden := r.failGets(http.StatusForbidden)
		r.refer(key("w"), "a", "missing")
		<-informerHas(r, key("w"))
		for _, get := range []func(context.Context, api.Key) (*secret, error){r.set.Get, cached.Get} {
			_, err := get(t.Context(), key("missing"))
			require.True(t, apierrors.IsNotFound(err))
			_, err = get(t.Context(), key("a"))
			require.ErrorContains(t, err, "referenced: secrets default/a is not fetched: ")
			require.True(t, apierrors.IsForbidden(err))
		}
		require.ErrorContains(t, r.set.Status().Reflector.Err, "1 of 2 referenced objects are not fetched, such as default/a")
		fixture.Pass(10 * time.Minute)
		require.Less(t, r.gets(), 25, "a request that is forbidden is repeated rarely")
		require.NoError(t, r.set.WaitFor(t.Context(), r.write(key("other"), "c")), "an object that was never fetched delays no version")
		forbidden.Remove()
		fixture.Pass(time.Minute)
		require.NoError(t, r.set.Status().Reflector.Err)
		copied := must.Get(cached.Get(t.Context(), key("a")))(t)
		shared := must.Get(r.set.Get(t.Context(), key("a")))(t)
		require.NotSame(t, copied, shared)
		require.Equal(t, "a", string(shared.Data["value"]))
	})
}

// informerHas returns a channel that is closed when the informer of Widgets has one. The set may not know it yet.
func informerHas(r *rig, k api.Key) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		require.NoError(r, r.widgets.WaitUntil(r.Context(), func(s *widgetSnapshot) bool {
			_, found := s.Get(k)
			return found
		}))
	}()
	return done
}

// TestGetWaits reads an object that was just referenced, while the request for it takes a second.
func TestGetWaits(t *testing.T) {
	inBubble(t, referenced.Options[*secret]{}, nil, func(t *testing.T, r *rig) {
		r.write(key("a"), "a")
		stop := r.sync()
		r.holdGets(time.Second)
		r.refer(key("w"), "a")
		<-informerHas(r, key("w"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := r.set.Get(ctx, key("a"))
		require.ErrorContains(t, err, "referenced: secrets default/a is not fetched: ")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		must.Get(r.set.Get(t.Context(), key("a")))(t)

		r.write(key("b"), "b")
		r.refer(key("w"), "b")
		synctest.Wait()
		began := time.Now()
		stop() // a request is in flight
		require.Zero(t, time.Since(began))
		_, err = r.set.Get(t.Context(), key("b"))
		require.ErrorIs(t, err, informer.ErrStopped)
		_, err = referenced.Follow(r.set, r.widgets, references)
		require.ErrorIs(t, err, informer.ErrRunning)
	})
}

// TestWaitFor waits for versions while requests take a second, and while an object changes all the time.
func TestWaitFor(t *testing.T) {
	inBubble(t, referenced.Options[*secret]{}, nil, func(t *testing.T, r *rig) {
		r.write(key("a"), "a")
		r.refer(key("w"), "a")
		r.sync()
		require.NoError(t, r.set.WaitFor(t.Context(), "0"))
		require.NoError(t, r.set.WaitFor(t.Context(), r.write(key("other"), "b")), "no request is necessary")
		r.holdGets(time.Second)
		version := r.write(key("a"), "changed")
		synctest.Wait()
		require.NotEqual(t, version, r.set.ResourceVersion())
		require.NoError(t, r.set.WaitFor(t.Context(), version))
		require.Equal(t, version, must.Get(r.set.Get(t.Context(), key("a")))(t).ResourceVersion)

		changing, end := context.WithCancel(t.Context())
		defer end()
		go func() {
			for n := 0; changing.Err() == nil; n++ {
				r.write(key("a"), fmt.Sprint(n))
				<-time.After(30 * time.Millisecond)
			}
		}()
		for range 5 {
			version := r.write(key("other"), fmt.Sprint(time.Now().UnixNano()))
			began := time.Now()
			require.NoError(t, r.set.WaitFor(t.Context(), version))
			require.LessOrEqual(t, time.Since(began), 3*time.Second)
		}
		end()
		r.write(key("new"), "new")
		r.refer(key("w2"), "new")
		synctest.Wait()
		require.NoError(t, r.set.WaitFor(t.Context(), "0"))
		_, cached := r.set.Cache().Get(key("new"))
		require.True(t, cached, "WaitFor also waits for an object that was just referenced")
	})
}

// TestGate writes a referenced and another object behind a Gate of package cachedclient.
func TestGate(t *testing.T) {
	inBubble(t, referenced.Options[*secret]{}, nil, func(t *testing.T, r *rig) {
		r.write(key("a"), "a")
		r.refer(key("w"), "a")
		r.sync()
		cached := cachedclient.NewTyped(r.live, r.set.Informer, cachedclient.Options{})
		gate := cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Hour})
		ctx := gate.Begin(t.Context(), key("w"))
		written, err := cached.Create(ctx, &secret{ObjectMeta: fixture.Meta("default", "other")}, metav1.CreateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.True(t, gate.Ready(key("w"), nil), "the metadata show it, and it is not referenced")
		require.NoError(t, cached.Delete(ctx, api.KeyOf(written), metav1.DeleteOptions{}))

		r.holdGets(time.Second)
		object := must.Get(cached.Get(ctx, key("a")))(t)
		object.Data["value"] = []byte("written")
		must.Get(cached.Update(ctx, object, metav1.UpdateOptions{}))(t)
		ready := make(chan struct{})
		require.False(t, gate.Ready(key("w"), func() { close(ready) }))
		<-ready
		require.Equal(t, "written", string(must.Get(cached.Get(ctx, key("a")))(t).Data["value"]))
		require.Zero(t, gate.Stats().TimedOut)
	})
}

// TestRequestsAreBounded counts the requests in flight.
func TestRequestsAreBounded(t *testing.T) {
	var inFlight, most atomic.Int64
	count := func(next http.RoundTripper) http.RoundTripper {
		return fixture.RoundTripper(func(q *http.Request) (*http.Response, error) {
			if q.URL.Path == "/api/v1/secrets" {
				return next.RoundTrip(q)
			}
			most.Store(max(most.Load(), inFlight.Add(1)))
			defer inFlight.Add(-1)
			<-time.After(time.Second)
			return next.RoundTrip(q)
		})
	}
	inBubble(t, referenced.Options[*secret]{MaxFetches: 3}, count, func(t *testing.T, r *rig) {
		var names []string
		for n := range 20 {
			names = append(names, fmt.Sprint("s", n))
			r.write(key(names[n]), "a")
		}
		r.refer(key("w"), names...)
		r.sync()
		<-r.set.Synced()
		require.Equal(t, 20, r.set.Cache().Len())
		require.Equal(t, int64(3), most.Load())
	})
}

// TestTransform checks that a Transform gets whole objects, and that one which fails is reported.
func TestTransform(t *testing.T) {
	var failed []error
	o := referenced.Options[*secret]{}
	o.Transform = func(s *secret) (*secret, error) {
		switch s.Name {
		case "panics":
			panic("no")
		case "renamed":
			s.Name = "x"
		case "fails":
			return s, errors.New("it fails")
		}
		s.Data = nil
		return s, nil
	}
	o.OnError = func(err error) { failed = append(failed, err) }
	inBubble(t, o, nil, func(t *testing.T, r *rig) {
		names := []string{"panics", "renamed", "fails", "good"}
		for _, name := range names {
			r.write(key(name), "a")
		}
		r.refer(key("w"), names...)
		r.sync()
		require.Len(t, failed, 3)
		require.Equal(t, 1, r.set.Cache().Len())
		require.Empty(t, must.Get(r.set.Get(t.Context(), key("good")))(t).Data)
	})
}

// TestMisuse has options that a set cannot honour.
func TestMisuse(t *testing.T) {
	require.Panics(t, func() { referenced.New[*secret](nil, referenced.Options[*secret]{}) })
	f := fixture.New(t, testserverOptions{})
	mask := must.Get(codec.NewMask[*secret]("data"))(t)
	require.NotNil(t, referenced.New(&apiclient.NewMasked[*secret](f.Client, secrets, "", mask).PartialClient, referenced.Options[*secret]{}))
	o := referenced.Options[*secret]{}
	o.Hold = notHeld{}
	require.Panics(t, func() { referenced.New(apiclient.NewPartial[*secret](f.Client, secrets, ""), o) })
}

// TestMemory has 40,000 Secrets in another process, of which 100 are referenced. It bounds the live heap, and finds
// the data of no other Secret in the memory of this process.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	const all, few = 40_000, 100
	server := startForeign(t, all)
	client := must.Get(apiclient.New(apiclient.Config{Host: server.URL}))(t)
	f := fixture.New(t, testserverOptions{})
	before := fixture.Heap()
	refers := informer.New(fixture.Source(f, ""), informer.Options[*widget]{})
	set := referenced.New(apiclient.NewPartial[*secret](client, secrets, ""), referenced.Options[*secret]{})
	must.Get(referenced.Follow(set, refers, references))(t)
	w := fixture.Named("default", "w")
	for n := range few {
		w.Spec.Tags = append(w.Spec.Tags, foreignKey(n).Name)
	}
	f.Create(widgets, w)
	f.Start(fixture.All(refers.Run, set.Run))
	<-set.Synced()
	require.Equal(t, few, set.Cache().Len())
	require.Equal(t, all, set.Metadata().Cache().Len())
	require.NoError(t, set.WaitFor(t.Context(), server.change(10*few)), "changes of referenced and of other Secrets")
	found := server.found()
	live := fixture.Heap() - before
	t.Logf("%d Secrets, %d referenced: %.1f MB live; data found of %d", all, few, float64(live)/1e6, len(found))
	require.Less(t, live, int64(30e6))
	for n := range few {
		number := fmt.Sprintf("%0*d", digits, n)
		require.True(t, found[number], "the search finds what is cached")
		delete(found, number)
	}
	require.Empty(t, found)
}
