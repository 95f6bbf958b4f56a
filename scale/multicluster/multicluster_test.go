package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/multicluster"
	"github.com/leatproject/leat/testserver"
)

func TestClustersJoinAndLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		east, west := w.serve("east"), w.serve("west")
		put(t, east, "a", "east")
		put(t, west, "a", "west")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run, w.ctl.Run)
		<-w.ctl.Synced()
		synctest.Wait()
		require.Equal(t, []string{"east: default/a=east"}, w.take())

		w.join("west", config("west", "w1"))
		synctest.Wait()
		require.Equal(t, []string{"west: default/a=west"}, w.take(), "the same name in another cluster is another key")
		put(t, west, "a", "west 2")
		synctest.Wait()
		require.Equal(t, []string{"west: default/a=west 2"}, w.take())
		require.Equal(t, []string{"east synced", "west synced"}, w.health())

		c, ok := w.set.Get("west")
		require.True(t, ok)
		w.leave("west")
		synctest.Wait()
		require.Equal(t, []string{"west: default/a is gone"}, w.take())
		require.Equal(t, []string{"east synced"}, w.health())
		<-c.Left()
		require.Empty(t, west.Watches())
		_, ok = w.set.Get("west")
		require.False(t, ok)

		w.join("west", config("west", "w1"))
		synctest.Wait()
		require.Equal(t, []string{"west: default/a=west 2"}, w.take())
	})
}

// TestAHundredClusters follows forks of one server, of which some change and leave.
func TestAHundredClusters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		base := testserver.New(testserver.Options{})
		put(t, base, "a", "base")
		var want []string
		forks := map[string]*testserver.Server{}
		for i := range 100 {
			name := fmt.Sprintf("c%02d", i)
			forks[name] = w.run(name, base.Fork())
			w.join(name, config(name, name))
			want = append(want, name+": default/a=base")
		}
		w.start(w.set.Run, w.ctl.Run)
		<-w.ctl.Synced()
		synctest.Wait()
		require.Equal(t, want, w.take())
		require.Len(t, w.health(), 100)
		put(t, forks["c07"], "a", "changed")
		w.leave("c93")
		synctest.Wait()
		require.Equal(t, []string{"c07: default/a=changed", "c93: default/a is gone"}, w.take())
	})
}

func TestCredentialsOfAClusterThatLeftAreDropped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.serve("east")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run)
		<-w.set.Synced()
		synctest.Wait()
		c, _ := w.set.Get("east")
		w.leave("east")
		synctest.Wait()
		maps := apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "default")
		require.ErrorIs(t, must.Err(maps.Get(t.Context(), key, metav1.GetOptions{})), multicluster.ErrLeft)
		require.Equal(t, []string{"e1"}, w.seen("east"))
	})
}

func TestTheEndOfRunDropsCredentialsAndDeletesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		put(t, w.serve("east"), "a", "1")
		w.join("east", config("east", "e1"))
		stop := w.start(w.set.Run)
		w.start(w.ctl.Run)
		synctest.Wait()
		require.Equal(t, []string{"east: default/a=1"}, w.take())
		c, _ := w.set.Get("east")
		stop()
		synctest.Wait()
		require.Empty(t, w.take(), "the objects still exist")
		_, err := apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "default").Get(t.Context(), key, metav1.GetOptions{})
		require.ErrorIs(t, err, multicluster.ErrLeft)
		require.ErrorIs(t, w.set.Run(t.Context()), informer.ErrRunning)
	})
}

func TestAnUnreachableClusterDelaysNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		put(t, w.serve("east"), "a", "1")
		w.join("east", config("east", "e1"))
		w.join("west", config("west", "w1"))
		w.start(w.set.Run, w.ctl.Run)
		started := time.Now()
		<-w.ctl.Synced()
		synctest.Wait()
		require.Zero(t, time.Since(started))
		require.Equal(t, []string{"east: default/a=1"}, w.take())
		health := w.health()
		require.Equal(t, "east synced", health[0])
		require.Contains(t, health[1], "west not synced: configmaps: not synced")
		require.Contains(t, health[1], "no route to host")
		err := w.set.Check(t.Context())
		require.ErrorContains(t, err, "cluster west: ")
		require.NotContains(t, err.Error(), "cluster east")

		put(t, w.serve("west"), "b", "2")
		<-time.After(time.Minute) // more than the longest backoff
		synctest.Wait()
		require.Equal(t, []string{"west: default/b=2"}, w.take())
		require.NoError(t, w.set.Check(t.Context()))
	})
}

// A Secret changes while the set ends: its handler has parsed the new kubeconfig after the credentials were dropped.
func TestNewCredentialsDoNotReplaceDroppedOnes(t *testing.T) {
	for _, host := range []string{"east", "west"} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			o := followed
			o.Configure = func(string, *apiclient.Config) {
				if calls.Add(1) == 2 {
					cancel()
					<-time.After(time.Second)
				}
			}
			w := newWorld(t, o)
			w.serve("east")
			w.serve("west")
			w.join("east", config("east", "e1"))
			w.start(func(context.Context) error { return w.set.Run(ctx) })
			synctest.Wait()
			before, _ := w.set.Get("east")
			w.join("east", config(host, "e2"))
			<-time.After(time.Minute)
			require.EqualValues(t, 2, calls.Load())
			after, _ := w.set.Get("east")
			for _, c := range []*multicluster.Cluster{before, after} {
				maps := apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "default")
				require.ErrorIs(t, must.Err(maps.Get(t.Context(), key, metav1.GetOptions{})), multicluster.ErrLeft)
			}
			require.Empty(t, w.seen("west"))
		})
	}
}

// The set is not synced before it has read all Secrets, even if the first cluster is.
func TestASourceIsSyncedWhenTheSetIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan bool)
		o := followed
		o.Configure = func(string, *apiclient.Config) {
			if calls.Add(1) == 2 {
				<-release
			}
		}
		w := newWorld(t, o)
		for _, name := range []string{"east", "west"} {
			put(t, w.serve(name), "a", name)
			w.join(name, config(name, "e1"))
		}
		w.start(w.set.Run, w.ctl.Run)
		synctest.Wait()
		synced := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		require.EqualValues(t, 2, calls.Load())
		require.False(t, synced(w.set.Synced()))
		require.False(t, synced(w.ctl.Synced()))
		close(release)
		synctest.Wait()
		require.True(t, synced(w.ctl.Synced()))
		require.Equal(t, []string{"east: default/a=east", "west: default/a=west"}, w.take())
	})
}

func TestRotatedCredentialsKeepTheInformers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		east := w.serve("east")
		put(t, east, "a", "1")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run, w.ctl.Run)
		synctest.Wait()
		require.Equal(t, []string{"east: default/a=1"}, w.take())
		before, _ := w.set.Get("east")
		w.join("east", config("east", "e2"))
		synctest.Wait()
		after, _ := w.set.Get("east")
		require.Same(t, before, after)
		require.Empty(t, w.take(), "nothing was listed again")
		must.Get(apiclient.NewTyped[*corev1.ConfigMap](after.Client(), configMaps, "default").Get(t.Context(), key, metav1.GetOptions{}))(t)
		require.Equal(t, []string{"e1", "e2"}, w.seen("east"))
	})
}

func TestAnotherServerReplacesTheCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := w.serve("old")
		put(t, old, "kept", "old")
		put(t, old, "lost", "old")
		w.join("east", config("old", "e1"))
		w.start(w.set.Run, w.ctl.Run)
		synctest.Wait()
		require.Len(t, w.take(), 2)
		before, _ := w.set.Get("east")

		w.join("east", config("new", "e1")) // which is unreachable at first
		fixture.Pass(time.Second)
		require.Empty(t, w.take())
		after, _ := w.set.Get("east")
		require.NotSame(t, before, after)
		_, found := w.maps.Get(before.Key(api.Key{Namespace: "default", Name: "lost"}))
		require.True(t, found, "readers see the last state until the successor is synced")

		put(t, w.serve("new"), "kept", "new")
		fixture.Pass(time.Minute)
		require.Equal(t, []string{"east: default/kept=new", "east: default/lost is gone"}, w.take())
		require.Equal(t, []string{"east synced"}, w.health())
		require.Empty(t, old.Watches())
	})
}

// The Secret is deleted and created again while a handler of the old cluster does not return.
func TestTheEndOfAClusterDoesNotHideItsSuccessor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		east := w.serve("east")
		put(t, east, "a", "1")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run, w.ctl.Run)
		synctest.Wait()
		before, ok := w.maps.In("east")
		require.True(t, ok)
		must.Get(before.Subscribe(func(api.Change[*corev1.ConfigMap]) { <-time.After(10 * time.Second) }, informer.HandlerOptions{}))(t)
		synctest.Wait() // the handler runs
		w.leave("east")
		w.join("east", config("east", "e1"))
		synctest.Wait()
		w.take()
		fixture.Pass(time.Minute)
		after, ok := w.maps.In("east")
		require.True(t, ok)
		require.NotSame(t, before, after)
		put(t, east, "a", "2")
		synctest.Wait()
		require.Contains(t, w.take(), "east: default/a=2")
		w.leave("east")
		synctest.Wait()
		_, ok = w.maps.In("east")
		require.False(t, ok)
	})
}

// The successor deletes an object just before its source subscribes.
func TestADeletionBeforeTheSourceOfASuccessorBegins(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var seen []string
		ctl := controller.New("all", controller.Func[multicluster.Key](func(_ context.Context, key multicluster.Key) (controller.Result, error) {
			if _, found := w.maps.Get(key); !found {
				seen = append(seen, key.String())
			}
			return controller.Result{}, nil
		}), controller.Options{Workers: 1})
		put(t, w.serve("old"), "a", "1")
		next := w.serve("new")
		put(t, next, "a", "2")
		ctl.Watch(multicluster.From(w.maps, func(c *multicluster.Cluster, maps controller.Informer[*corev1.ConfigMap]) controller.Source[multicluster.Key] {
			if c.Client().Host() == "http://new" {
				require.NoError(t, next.Delete(configMaps, key))
				for maps.Cache().Len() > 0 {
					<-time.After(time.Millisecond)
				}
			}
			return controller.Keyed(controller.For(maps), c.Key)
		}))
		w.join("east", config("old", "e1"))
		w.start(w.set.Run)
		w.start(ctl.Run)
		synctest.Wait()
		require.Empty(t, seen)
		w.join("east", config("new", "e1"))
		fixture.Pass(time.Second)
		require.Equal(t, []string{"east: default/a"}, seen)
	})
}

func TestConfigureMayUseTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var states []string
		o := followed
		o.Configure = func(cluster string, _ *apiclient.Config) {
			_, ok := w.set.Get(cluster)
			require.False(t, ok)
			states = append(states, w.health()...)
		}
		w = newWorld(t, o)
		w.serve("east")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run)
		synctest.Wait()
		require.Equal(t, []string{"east not synced: multicluster: it has not joined yet"}, states)
		require.Equal(t, []string{"east synced"}, w.health())
	})
}

func TestABadKubeconfigKeepsThePreviousOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		east := w.serve("east")
		w.join("east", "token: swordfish")
		w.start(w.set.Run, w.ctl.Run)
		synctest.Wait()
		const missing = `multicluster: Secret fleet/east: the kubeconfig in "kubeconfig": current-context: it is empty; the contexts are none`
		require.Equal(t, []string{"east not synced: " + missing}, w.health())
		_, ok := w.set.Get("east")
		require.False(t, ok)

		w.join("east", config("east", "e1"))
		synctest.Wait()
		require.Equal(t, []string{"east synced"}, w.health())
		w.join("east", "")
		put(t, east, "a", "1")
		synctest.Wait()
		require.Equal(t, []string{`east synced: multicluster: Secret fleet/east: the kubeconfig in "kubeconfig": it is missing or empty`}, w.health())
		require.Equal(t, []string{"east: default/a=1"}, w.take())
		w.join("east", config("east", "e1"))
		synctest.Wait()
		require.Equal(t, []string{"east synced"}, w.health())
	})
}

// Each content has the word swordfish in another place, which no error may show.
func TestAnErrorNamesTheSecretAndNoContent(t *testing.T) {
	valid := config("east", "e1")
	for _, c := range []struct{ name, content, says string }{
		{"not YAML", "swordfish: [", "line"},
		{"a token alone", "swordfish", "text stands where a map belongs"},
		{"a context", strings.Replace(valid, "current-context: it", "current-context: swordfish", 1), "there is no context (not shown)"},
		{
			"a name with a bracket",
			strings.NewReplacer("current-context: it", `current-context: "]swordfish"`, "name: it, context: {cluster: it", `name: "]swordfish", context: {cluster: none`).Replace(valid),
			"contexts[].cluster: ",
		},
		{"a kind", strings.Replace(valid, "kind: Config", "kind: swordfish", 1), "it is not a Config of v1"},
		{"a server without a scheme", strings.Replace(valid, "http://east", "swordfish", 1), "clusters[].server: (not shown) has no scheme"},
		{"a server", strings.Replace(valid, "http://east", "swordfish://east", 1), "clusters[].server"},
		{"a duplicate", strings.ReplaceAll(valid, "users: [", "users: [{name: swordfish}, {name: swordfish}, "), "two entries"},
		{"certificate data", strings.Replace(valid, "token: e1", "client-certificate-data: swordfish!", 1), "users[].client-certificate-data"},
		{"a certificate", strings.Replace(valid, "token: e1", "client-certificate-data: c3dvcmRmaXNo, client-key-data: c3dvcmRmaXNo", 1), "PEM"},
		{"a token file", strings.Replace(valid, "token: e1", "tokenFile: /etc/swordfish", 1), "users[].tokenFile: it names a file"},
		{"a certificate file", strings.Replace(valid, "token: e1", "client-certificate: swordfish, client-key: swordfish", 1), "it names a file"},
		{"an authority", strings.Replace(valid, `"http://east"`, `"https://east", certificate-authority: swordfish`, 1), "it names a file"},
		{"a plugin", strings.Replace(valid, "token: e1", "exec: {command: swordfish, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", 1), "users[].exec"},
		{"a password", strings.Replace(valid, "token: e1", "username: u, password: swordfish", 1), "basic authentication"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.join("east", c.content)
				w.start(w.set.Run)
				<-w.set.Synced()
				h := w.set.Health()
				require.Len(t, h, 1)
				require.Error(t, h[0].Err)
				text := h[0].Err.Error()
				require.Contains(t, text, "multicluster: Secret fleet/east: ")
				require.Contains(t, text, c.says)
				require.NotContains(t, text, "swordfish")
				require.NotContains(t, text, "\n")
			})
		})
	}
}

func TestAFailedInformerStartsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		east := w.serve("east")
		var broken atomic.Bool
		broken.Store(true)
		things := multicluster.Inform(w.set, func(c *multicluster.Cluster) api.ListerWatcher[*corev1.ConfigMap] {
			return apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "default")
		}, informer.Options[*corev1.ConfigMap]{
			Transform: func(m *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if broken.Load() {
					return nil, errors.New("broken")
				}
				return m, nil
			},
			Hooks: reflector.Hooks{OnUndecodable: reflector.Fail},
		})
		put(t, east, "a", "1")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run)
		synctest.Wait()
		require.Contains(t, w.health()[0], "broken")
		broken.Store(false)
		fixture.Pass(2 * time.Minute)
		require.Equal(t, []string{"east synced"}, w.health())
		inf, ok := things.In("east")
		require.True(t, ok)
		require.Equal(t, 1, inf.Cache().Len())
	})
}

func TestWithAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := must.Get(manager.New(manager.Options{ShowReasons: true}))(t)
		o := followed
		o.Checks = m.Readyz()
		w := newWorld(t, o)
		put(t, w.serve("east"), "a", "1")
		w.join("east", config("east", "e1"))
		w.join("west", config("west", "w1"))
		require.NoError(t, m.Add(w.set, w.ctl))
		w.start(m.Run)
		<-m.Elected()
		<-w.ctl.Synced()
		synctest.Wait()
		require.Equal(t, []string{"east: default/a=1"}, w.take())
		ready := func(path string) (int, string) {
			r := httptest.NewRecorder()
			m.Readyz().ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
			return r.Code, r.Body.String()
		}
		code, body := ready("/readyz?verbose")
		require.Equal(t, http.StatusInternalServerError, code)
		require.Contains(t, body, "[+]cluster-east ok\n")
		require.Contains(t, body, "[-]cluster-west failed: ")
		require.Contains(t, body, "[+]informer-sync ok\n")
		w.leave("west")
		synctest.Wait()
		code, _ = ready("/readyz")
		require.Equal(t, http.StatusOK, code)
	})
}

func TestAllNamespacesAndOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := followed
		o.Namespace = ""
		w := newWorld(t, o)
		w.serve("east")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run)
		<-w.set.Synced()
		synctest.Wait()
		require.Equal(t, []string{"fleet/east synced"}, w.health())
		require.Len(t, w.set.Status(), 2)
		require.PanicsWithValue(t, "multicluster: Inform was called after Run; call it before", func() {
			multicluster.Inform(w.set, func(*multicluster.Cluster) api.ListerWatcher[*corev1.ConfigMap] { return nil }, informer.Options[*corev1.ConfigMap]{})
		})
	})
	require.ErrorContains(t, must.Err(multicluster.New(nil, multicluster.Options{})), "Selector is empty")
}

// TestOptionsOverrideTheKubeconfig has authorities in a file, which Options may name and a Secret may not.
func TestOptionsOverrideTheKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := followed
		o.Kubeconfig.CAFile = "/etc/authorities.pem"
		o.Configure = func(_ string, c *apiclient.Config) {
			require.Equal(t, apiclient.TLS{CAFile: "/etc/authorities.pem"}, c.TLS)
			c.TLS = apiclient.TLS{} // the transport of the test has none
		}
		w := newWorld(t, o)
		w.serve("east")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run)
		<-w.set.Synced()
		synctest.Wait()
		require.Equal(t, []string{"east synced"}, w.health())
	})
	for _, k := range []kubeconfig.Options{
		{Path: "config"},
		{CertFile: "cert.pem"},
		{KeyFile: "key.pem"},
		{Username: "u"},
		{Password: apiclient.NewSecret("p")},
	} {
		o := followed
		o.Kubeconfig = k
		require.ErrorContains(t, must.Err(multicluster.New(nil, o)), "Options.Kubeconfig")
	}
}

func TestTheSetSaysWhyItIsNotSynced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.cut("hub")
		w.start(w.set.Run)
		synctest.Wait()
		require.ErrorContains(t, w.set.NotSynced(), "no route to host")
		require.ErrorIs(t, w.set.NotSynced(), errNoRoute)
		require.ErrorContains(t, w.set.Status()[0].Reflector.Err, "no route to host")
	})
}

func TestFromHasPredicates(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		east := w.serve("east")
		var seen []string
		ctl := controller.New("values", controller.Func[string](func(_ context.Context, key string) (controller.Result, error) {
			seen = append(seen, key)
			return controller.Result{}, nil
		}), controller.Options{Workers: 1})
		ctl.Watch(multicluster.From(w.maps, func(c *multicluster.Cluster, maps controller.Informer[*corev1.ConfigMap]) controller.Source[string] {
			return controller.Map(maps, func(m *corev1.ConfigMap) []string { return []string{c.Name() + " " + m.Data["v"]} }).
				When(func(change api.Change[*corev1.ConfigMap]) bool { return change.Object.Name == "a" })
		}))
		put(t, east, "a", "1")
		put(t, east, "b", "2")
		w.join("east", config("east", "e1"))
		w.start(w.set.Run)
		w.start(ctl.Run)
		synctest.Wait()
		require.Equal(t, []string{"east 1"}, seen)
		w.leave("east")
		synctest.Wait()
		require.Equal(t, []string{"east 1", "east 1"}, seen)
	})
}
