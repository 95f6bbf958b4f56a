package await_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

func (b *bench) phase(name, phase string) {
	b.Helper()
	b.Edit(pods, api.Key{Namespace: "default", Name: name}, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"phase": phase}
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

func exists(_ object, exists bool) (bool, error) { return exists, nil }

func gone(_ object, exists bool) (bool, error) { return !exists, nil }

// phaseIs waits until the phase of an object is the given one.
func phaseIs(phase string) func(object, bool) (bool, error) {
	return func(o object, exists bool) (bool, error) { return exists && phaseOf(o) == phase, nil }
}

func phaseOf(o object) string {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return phase
}

func TestObject(t *testing.T) {
	for _, confined := range []bool{false, true} {
		inBubble(t, testserver.Options{}, func(b *bench) {
			lw := b.everywhere
			if confined {
				lw = b.here
			}
			b.create("other")
			b.phase("other", "Running")
			ready := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, "the phase", phaseIs("Running"), await.Options{})
			})
			made := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, "creation", exists, await.Options{})
			})
			absent := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, "deletion", gone, await.Options{})
			})
			require.Nil(b, over(b, absent), "the selection is empty")
			waits(b, made)

			b.create("web")
			require.Equal(b, "web", over(b, made).GetName())
			removed := begin(func() (object, error) {
				return await.Object(b.Context(), lw, web, "deletion", gone, await.Options{})
			})
			b.phase("web", "Pending")
			waits(b, ready)
			b.phase("web", "Running")
			require.Equal(b, "Running", over(b, ready).Object["status"].(map[string]any)["phase"])
			waits(b, removed)
			b.remove("web")
			require.Equal(b, "web", over(b, removed).GetName(), "the last known state")

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
			_, err := await.Object(b.Context(), tt.lw, tt.key, "creation", exists, await.Options{})
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
		end := func(o object, exists bool) (bool, error) {
			phase := "gone"
			if exists {
				phase = phaseOf(o)
			}
			seen = append(seen, phase)
			return !exists, nil
		}
		succeeded := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, "the phase", phaseIs("Succeeded"), await.Options{})
		})
		ended := begin(func() (object, error) { return await.Object(b.Context(), b.here, web, "the end", end, await.Options{}) })
		for _, phase := range []string{"Running", "Succeeded"} {
			b.phase("web", phase)
		}
		b.remove("web")
		over(b, ended)
		require.Equal(b, []string{"Pending", "Running", "Succeeded", "gone"}, seen)
		over(b, succeeded)
	})
}

func TestAnObjectThatIsCreatedAgainWasGone(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.create("web")
		first := must.Get(b.Server.Get(pods, web))(b)
		deleted := func() <-chan outcome[object] {
			return begin(func() (object, error) {
				return await.Object(b.Context(), b.here, web, "deletion", gone, await.Options{})
			})
		}
		ended := deleted()
		waits(b, ended)
		b.remove("web")
		b.create("web")
		require.Equal(b, first.GetUID(), over(b, ended).GetUID())

		// The watch misses the delete: while the server cannot be reached, another object takes the name.
		again := deleted()
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
		unmet := func() error {
			b.Helper()
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			defer cancel()
			started := time.Now()
			_, err := await.Object(ctx, b.here, web, "luck", phaseIs("Running"), await.Options{})
			require.Equal(b, time.Minute, time.Since(started))
			require.ErrorIs(b, err, context.DeadlineExceeded)
			return err
		}
		require.EqualError(b, unmet(), "wait for luck of pods default/web: context deadline exceeded; it does not exist")
		b.create("web")
		require.ErrorContains(b, unmet(), "; it is at version "+b.Server.ResourceVersion())
		var err *await.UnmetError
		require.ErrorAs(b, unmet(), &err)
		require.Equal(b, await.UnmetError{
			Resource: pods, What: "luck", Subject: "pods default/web", Listed: true,
			State: "it is at version " + b.Server.ResourceVersion(), Err: context.DeadlineExceeded,
		}, *err)

		canceled, cancel := context.WithCancel(b.Context())
		never := func(*cache.Snapshot[object]) (bool, error) { return false, nil }
		ended := begin(func() (*cache.Snapshot[object], error) {
			return await.Until(canceled, b.here, "luck", never, await.Options{})
		})
		cancel()
		synctest.Wait()
		end := (<-ended).err
		require.ErrorIs(b, end, context.Canceled)
		require.EqualError(b, end, "wait for luck of pods: context canceled; the condition was not met")
	})
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		outage := b.Server.Inject(faults.Fault{Effect: faults.Outage{}})
		told := 0
		_, err := await.Object(ctx, b.here, web, "creation", exists, await.Options{OnError: func(error) { told++ }})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "; no list succeeded: ")
		require.ErrorContains(b, err, "connection refused")
		require.NotZero(b, told)
		outage.Remove()

		b.Server.Inject(faults.Fault{Effect: faults.Stall{}})
		ctx, cancel = context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = await.Object(ctx, b.here, web, "creation", exists, await.Options{})
		require.ErrorContains(b, err, "; the server has not answered")
	})
}

func TestAWaitSurvives(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Server.Inject(faults.Fault{Times: 2, Effect: faults.Fail{Code: http.StatusServiceUnavailable}})
		ready := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, "the phase", phaseIs("Running"), await.Options{})
		})
		<-time.After(time.Minute)
		b.create("web")
		waits(b, ready)
		b.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
		outage := b.Server.Inject(faults.Fault{Effect: faults.Outage{}})
		b.phase("web", "Running")
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
		_, err := await.Object(b.Context(), b.here, web, "creation", exists, await.Options{})
		require.True(b, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(b, err, "wait for creation of pods default/web: list pods: ")
	})
	inBubble(t, testserver.Options{Tokens: testserver.Tokens{"sesame": "ali"}}, func(b *bench) {
		_, err := await.Object(b.Context(), b.here, web, "creation", exists, await.Options{})
		require.True(b, apierrors.IsUnauthorized(err), "%v", err)
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		mills := api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
		_, err := await.Object(b.Context(), apiclient.NewPartial[object](b.here.Client(), mills, ""), web, "creation", exists, await.Options{})
		require.True(b, apierrors.IsNotFound(err), "%v", err)
		_, err = await.Object(b.Context(), b.here, web, "creation", exists, await.Options{Selector: api.Selector{Fields: "spec.luck=much"}})
		require.True(b, apierrors.IsBadRequest(err), "%v", err)

		// A client that may no longer list gets the error too.
		allowed := true
		b.Server.Inject(faults.Fault{Match: faults.Match{Func: func(*http.Request) bool { return !allowed }}, Effect: faults.Fail{Code: 403}})
		made := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, "creation", exists, await.Options{})
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
		_, err = await.Object(b.Context(), apiclient.NewPartial[object](strange, pods, "default"), web, "creation", exists, await.Options{})
		var certificate *apiclient.CertificateError
		require.ErrorAs(b, err, &certificate)
		strange.CloseIdleConnections()
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.create("web")
		b.Server.Inject(faults.Fault{Effect: faults.Malform{}})
		typed := apiclient.NewPartial[*brittle](b.here.Client(), pods, "default")
		gone := func(_ *brittle, exists bool) (bool, error) { return !exists, nil }
		_, err := await.Object(b.Context(), typed, web, "deletion", gone, await.Options{})
		var undecodable *api.UndecodableError
		require.ErrorAs(b, err, &undecodable)
		require.Equal(b, web, undecodable.Key)
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		failed := errors.New("it has failed")
		b.create("web")
		success := func(_ object, exists bool) (bool, error) {
			if !exists {
				return false, failed
			}
			return false, nil
		}
		ended := begin(func() (object, error) {
			return await.Object(b.Context(), b.here, web, "success", success, await.Options{})
		})
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
