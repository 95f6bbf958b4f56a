package await_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reconcile/await"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

type object = *unstructured.Unstructured

var (
	pods = fixture.Pods
	web  = api.Key{Namespace: "default", Name: "web"}
)

// bench is a running server and two sources of its pods.
type bench struct {
	*fixture.Fixture
	everywhere, here *apiclient.PartialClient[object]
}

func inBubble(t *testing.T, o testserver.Options, test func(b *bench)) {
	t.Helper()
	o.ImmediateDeletion = true
	fixture.Run(t, o, func(_ *testing.T, f *fixture.Fixture) {
		test(&bench{f, apiclient.NewPartial[object](f.Client, pods, ""), apiclient.NewPartial[object](f.Client, pods, "default")})
	})
}

func pod(name string, labels ...string) object {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "default", "name": name}}}
	if len(labels) > 0 {
		u.SetLabels(map[string]string{"app": labels[0]})
	}
	return u
}

func (b *bench) create(name string, labels ...string) {
	b.Helper()
	b.Create(pods, pod(name, labels...))
}

func (b *bench) remove(name string) {
	b.Helper()
	b.Delete(pods, api.Key{Namespace: "default", Name: name})
}

// phase sets the phase of a pod, and the status of its Ready condition.
func (b *bench) phase(name, phase, ready string) {
	b.Helper()
	b.Edit(pods, api.Key{Namespace: "default", Name: name}, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{
			"phase": phase, "conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Because"}},
		}
	})
}

// outcome is the result of a wait in the background.
type outcome[T any] struct {
	value T
	err   error
}

// begin starts a wait and returns when the wait blocks.
func begin[T any](wait func() (T, error)) <-chan outcome[T] {
	ended := make(chan outcome[T], 1)
	go func() {
		v, err := wait()
		ended <- outcome[T]{v, err}
	}()
	synctest.Wait()
	return ended
}

// waits checks that a wait is still blocked.
func waits[T any](b *bench, ended <-chan outcome[T]) {
	b.Helper()
	synctest.Wait()
	require.Empty(b, ended)
}

func over[T any](b *bench, ended <-chan outcome[T]) T {
	b.Helper()
	synctest.Wait()
	require.NotEmpty(b, ended, "the wait is not over")
	o := <-ended
	require.NoError(b, o.err)
	return o.value
}

// phaseIs waits until the phase of an object is the given one.
func phaseIs(phase string) await.Condition[object] {
	read := func(o object) string {
		have, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return have
	}
	return await.Condition[object]{
		Name:  "phase " + phase,
		Met:   func(o object, exists bool) (bool, error) { return exists && read(o) == phase, nil },
		State: func(o object) string { return "phase " + read(o) },
	}
}

func TestObject(t *testing.T) {
	for _, confined := range []bool{false, true} {
		inBubble(t, testserver.Options{}, func(b *bench) {
			lw := b.everywhere
			if confined {
				lw = b.here
			}
			b.create("other")
			b.phase("other", "Running", "True")
			ready := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, await.Status("ready", ""), await.Options{})
			})
			made := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, await.Exists[object](), await.Options{})
			})
			gone := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, await.Deleted[object](""), await.Options{})
			})
			require.Nil(b, over(b, gone), "the selection is empty")
			waits(b, made)

			b.create("web")
			require.Equal(b, "web", over(b, made).GetName())
			gone = begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, await.Deleted[object](""), await.Options{})
			})
			b.phase("web", "Pending", "False")
			waits(b, ready)
			b.phase("web", "Running", "True")
			require.Equal(b, "Running", over(b, ready).Object["status"].(map[string]any)["phase"])
			waits(b, gone)
			b.remove("web")
			require.Equal(b, "web", over(b, gone).GetName(), "the last known state")

			for _, r := range b.Server.Requests() {
				require.NotEqual(b, confined, strings.Contains(r.Query.Get("fieldSelector"), "metadata.namespace=default"))
				require.Contains(b, r.Query.Get("fieldSelector"), "metadata.name=web")
			}
		})
	}
}

func TestKeysThatNameNoObject(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		nodes := apiclient.NewPartial[object](b.here.Client(), api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}, "")
		for _, tt := range []struct {
			lw   api.ListerWatcher[object]
			key  api.Key
			want string
		}{
			{b.here, api.Key{Namespace: "default"}, "the name is empty"},
			{b.everywhere, api.Key{Name: "web"}, "pods are namespaced; the namespace is missing"},
			{nodes, web, `nodes are cluster-scoped; namespace "default" is not allowed`},
			{b.here, api.Key{Namespace: "kube-system", Name: "web"}, `the object is in namespace "kube-system", but the client is for namespace "default"`},
		} {
			_, err := await.Object(b.Context(), tt.lw, tt.key, await.Exists[object](), await.Options{})
			require.ErrorContains(b, err, tt.want)
			require.ErrorContains(b, err, "wait for creation of "+tt.lw.Collection().Resource.Plural)
		}
		require.Empty(b, b.Server.Requests())
	})
}

// TestEveryStateIsSeen changes an object so fast that several states arrive at once.
func TestEveryStateIsSeen(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.create("web")
		var seen []string
		c := await.Condition[object]{Name: "the end", Met: func(o object, exists bool) (bool, error) {
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			if !exists {
				phase = "gone"
			}
			seen = append(seen, phase)
			return !exists, nil
		}}
		succeeded := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, phaseIs("Succeeded"), await.Options{})
		})
		ended := begin(func() (object, error) { return await.Object(b.Context(), b.here, web, c, await.Options{}) })
		for _, phase := range []string{"Pending", "Running", "Succeeded"} {
			b.phase("web", phase, "False")
		}
		b.remove("web")
		over(b, ended)
		require.Equal(b, []string{"Pending", "Pending", "Running", "Succeeded", "gone"}, seen)
		over(b, succeeded)
	})
}

func TestDeletionIsOfOneObject(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.create("web")
		first := must.Get(b.Server.Get(pods, web))(b)
		deleted := func(uid types.UID) <-chan outcome[object] {
			return begin(func() (object, error) {
				return await.Object(b.Context(), b.here, web, await.Deleted[object](uid), await.Options{})
			})
		}
		any, this := deleted(""), deleted(first.GetUID())
		require.Equal(b, "web", over(b, deleted("another")).GetName(), "the wait was for another object of that name")
		waits(b, any)
		waits(b, this)
		b.remove("web")
		b.create("web")
		require.Equal(b, first.GetUID(), over(b, any).GetUID())
		require.Equal(b, first.GetUID(), over(b, this).GetUID())

		// The watch misses the delete: while the server cannot be reached, another object takes the name.
		again := deleted("")
		waits(b, again)
		outage := b.Server.Inject(faults.Fault{Effect: faults.Outage{}})
		b.remove("web")
		b.create("web")
		b.Server.Inject(faults.Fault{Effect: faults.Compact{}})
		outage.Remove()
		<-time.After(10 * time.Minute)
		over(b, again)
	})
}

func TestAllAtOneMoment(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		o := await.Options{Selector: api.Selector{Labels: "app=web"}}
		var told [][]await.Waiting
		o.OnWaiting = func(w []await.Waiting) { told = append(told, w) }
		b.create("other")
		all := begin(func() ([]object, error) {
			return await.All(b.Context(), b.everywhere, await.Status("Ready", "True"), o)
		})
		waits(b, all)
		require.Equal(b, [][]await.Waiting{nil}, told, "the selection is still empty")

		b.create("a", "web")
		b.create("b", "web")
		b.phase("a", "Running", "True")
		waits(b, all)
		b.phase("a", "Running", "False")
		b.phase("b", "Running", "True")
		waits(b, all)
		require.Equal(b, []await.Waiting{{Key: api.Key{Namespace: "default", Name: "a"}, Exists: true, State: "Ready=False, Because"}}, told[len(told)-1])
		b.remove("a")
		require.Len(b, over(b, all), 1, "All does not wait for deleted objects")

		again := must.Get(await.All(b.Context(), b.here, await.Status("Ready", "True"), o))(b)
		require.Equal(b, "b", again[0].GetName())
	})
}

func TestGoneWaitsForTheFirstObjects(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		o := await.Options{Selector: api.Selector{Labels: "app=web", Fields: "metadata.namespace=default"}}
		none := must.Get(await.Gone(b.Context(), b.here, o))(b)
		require.Empty(b, none)

		b.create("a", "web")
		b.create("b", "web")
		b.create("other")
		gone := begin(func() ([]object, error) { return await.Gone(b.Context(), b.here, o) })
		b.remove("a")
		b.create("c", "web")
		waits(b, gone)
		b.remove("b")
		b.create("b", "web")
		names := []string{}
		for _, u := range over(b, gone) {
			names = append(names, u.GetName())
		}
		slices.Sort(names)
		require.Equal(b, []string{"a", "b"}, names)
	})
}

func TestUntil(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.create("a")
		three := func(s *cache.Snapshot[object]) (bool, error) { return s.Len() >= 3, nil }
		met := begin(func() (*cache.Snapshot[object], error) {
			return await.Until(b.Context(), b.here, "three pods", three, await.Options{})
		})
		b.create("b")
		waits(b, met)
		b.create("c")
		require.Equal(b, b.Server.ResourceVersion(), over(b, met).ResourceVersion())

		broken := errors.New("no pod is good enough")
		_, err := await.Until(b.Context(), b.here, "a good one", func(*cache.Snapshot[object]) (bool, error) { return false, broken }, await.Options{})
		require.ErrorIs(b, err, broken)
		require.EqualError(b, err, "wait for a good one of pods: no pod is good enough")
	})
}

func TestUnmet(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		after := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(b.Context(), d)
			b.Cleanup(cancel)
			return ctx
		}
		ready := await.Status("Ready", "True")
		started := time.Now()
		_, err := await.Object(after(time.Minute), b.here, web, ready, await.Options{})
		require.Equal(b, time.Minute, time.Since(started))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.EqualError(b, err, "wait for condition Ready=True of pods default/web: context deadline exceeded; still waiting for default/web (does not exist)")

		b.create("web", "web")
		_, err = await.Object(after(time.Minute), b.here, web, ready, await.Options{})
		require.ErrorContains(b, err, "; still waiting for default/web (no condition Ready)")
		b.phase("web", "Pending", "False")
		_, err = await.Object(after(time.Minute), b.here, web, ready, await.Options{})
		require.ErrorContains(b, err, "; still waiting for default/web (Ready=False, Because)")
		var unmet *await.UnmetError
		require.ErrorAs(b, err, &unmet)
		require.Equal(b, []await.Waiting{{Key: web, Exists: true, State: "Ready=False, Because"}}, unmet.Waiting)

		_, err = await.Object(after(time.Minute), b.here, web, phaseIs("Running"), await.Options{})
		require.ErrorContains(b, err, "wait for phase Running of pods default/web: context deadline exceeded; still waiting for default/web (phase Pending)")
		_, err = await.Object(after(time.Minute), b.here, web, await.Condition[object]{Name: "luck", Met: func(object, bool) (bool, error) { return false, nil }}, await.Options{})
		require.ErrorContains(b, err, "; still waiting for default/web (at version "+b.Server.ResourceVersion()+")")

		b.Edit(pods, web, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"leat.example/keep"}) })
		_, err = await.Object(after(time.Minute), b.here, web, await.Deleted[object](""), await.Options{})
		require.ErrorContains(b, err, "; still waiting for default/web (at version ")
		b.remove("web")
		_, err = await.Gone(after(time.Minute), b.here, await.Options{})
		require.ErrorContains(b, err, "wait for deletion of all pods: context deadline exceeded; still waiting for default/web (being deleted, held by leat.example/keep)")

		for _, name := range []string{"a", "b", "c", "d"} {
			b.create(name)
		}
		canceled, cancel := context.WithCancel(b.Context())
		ended := begin(func() ([]object, error) { return await.All(canceled, b.here, ready, await.Options{}) })
		cancel()
		synctest.Wait()
		err = (<-ended).err
		require.ErrorIs(b, err, context.Canceled)
		require.ErrorContains(b, err, "; still waiting for default/a (no condition Ready), default/b (no condition Ready), default/c (no condition Ready) and 2 more")
	})
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		outage := b.Server.Inject(faults.Fault{Effect: faults.Outage{}})
		told := 0
		_, err := await.Object(ctx, b.here, web, await.Exists[object](), await.Options{OnError: func(error) { told++ }})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "; no list succeeded: ")
		require.ErrorContains(b, err, "connection refused")
		require.NotZero(b, told)
		outage.Remove()

		b.Server.Inject(faults.Fault{Effect: faults.Stall{}})
		ctx, cancel = context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = await.Object(ctx, b.here, web, await.Exists[object](), await.Options{})
		require.ErrorContains(b, err, "; the server has not answered")
	})
}

func TestAWaitSurvives(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Server.Inject(faults.Fault{Times: 2, Effect: faults.Fail{Code: http.StatusServiceUnavailable}})
		ready := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, await.Status("Ready", "True"), await.Options{})
		})
		<-time.After(time.Minute)
		b.create("web")
		waits(b, ready)
		b.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
		outage := b.Server.Inject(faults.Fault{Effect: faults.Outage{}})
		b.phase("web", "Running", "True")
		b.Server.Inject(faults.Fault{Effect: faults.Compact{}})
		<-time.After(time.Minute)
		waits(b, ready)
		outage.Remove()
		<-time.After(10 * time.Minute)
		over(b, ready)
	})
}

func TestPointlessWaits(t *testing.T) {
	refusing := func(err error) testserver.Options {
		return testserver.Options{Authorize: func(testserver.Request) error { return err }}
	}
	inBubble(t, refusing(errors.New("not you")), func(b *bench) {
		_, err := await.Object(b.Context(), b.here, web, await.Exists[object](), await.Options{})
		require.True(b, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(b, err, "wait for creation of pods default/web: list pods: ")
	})
	inBubble(t, testserver.Options{Tokens: testserver.Tokens{"sesame": "ali"}}, func(b *bench) {
		_, err := await.All(b.Context(), b.here, await.Exists[object](), await.Options{})
		require.True(b, apierrors.IsUnauthorized(err), "%v", err)
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		mills := api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
		_, err := await.Object(b.Context(), apiclient.NewPartial[object](b.here.Client(), mills, ""), web, await.Exists[object](), await.Options{})
		require.True(b, apierrors.IsNotFound(err), "%v", err)
		_, err = await.All(b.Context(), b.here, await.Exists[object](), await.Options{Selector: api.Selector{Fields: "spec.luck=much"}})
		require.True(b, apierrors.IsBadRequest(err), "%v", err)

		// A client that may no longer list gets the error too.
		allowed := true
		b.Server.Inject(faults.Fault{Match: faults.Match{Func: func(*http.Request) bool { return !allowed }}, Effect: faults.Fail{Code: 403}})
		made := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, await.Exists[object](), await.Options{})
		})
		waits(b, made)
		allowed = false
		b.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
		<-time.After(30 * time.Minute)
		require.True(b, apierrors.IsForbidden((<-made).err))
	})
	inBubble(t, testserver.Options{TLS: true}, func(b *bench) {
		strange, err := apiclient.New(apiclient.Config{
			Host:        b.Server.URL(),
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Server.Dial(ctx) },
		})
		require.NoError(b, err)
		_, err = await.Object(b.Context(), apiclient.NewPartial[object](strange, pods, "default"), web, await.Exists[object](), await.Options{})
		var certificate *apiclient.CertificateError
		require.ErrorAs(b, err, &certificate)
		strange.CloseIdleConnections()
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.create("web")
		b.Server.Inject(faults.Fault{Effect: faults.Malform{}})
		typed := apiclient.NewPartial[*brittle](b.here.Client(), pods, "default")
		_, err := await.Object(b.Context(), typed, web, await.Deleted[*brittle](""), await.Options{})
		var undecodable *api.UndecodableError
		require.ErrorAs(b, err, &undecodable)
		require.Equal(b, web, undecodable.Key)
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		failed := errors.New("it has failed")
		b.create("web")
		c := await.Condition[object]{Name: "success", Met: func(o object, exists bool) (bool, error) {
			if !exists {
				return false, failed
			}
			return false, nil
		}}
		ended := begin(func() (object, error) { return await.Object(b.Context(), b.here, web, c, await.Options{}) })
		b.remove("web")
		synctest.Wait()
		err := (<-ended).err
		require.ErrorIs(b, err, failed)
		require.EqualError(b, err, "wait for success of pods default/web: it has failed")
	})
}

// brittle is a type that a malformed pod cannot be decoded into.
type brittle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Containers []struct {
			Name string `json:"name"`
		} `json:"containers"`
	} `json:"spec"`
}
