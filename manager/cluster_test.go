package manager_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	configMaps = fixture.ConfigMaps
	leases     = fixture.Leases
	leaseKey   = api.Key{Namespace: "default", Name: "mill"}
)

func served(t *testing.T) *fixture.Fixture { return fixture.New(t, testserver.Options{}) }

func mapInformer(client *apiclient.Client) *informer.Informer[*corev1.ConfigMap] {
	return informer.New(apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, ""), informer.Options[*corev1.ConfigMap]{})
}

// replica is a manager whose controller records its reconciles; each takes five seconds.
func replica(t *testing.T, s *fixture.Fixture, j *journal, identity string) *bench {
	return newReplica(t, s, identity, 5*time.Second, j)
}

func newReplica(t *testing.T, s *fixture.Fixture, identity string, work time.Duration, j *journal) *bench {
	client := s.Connect(nil)
	elector := must.Get(leaderelection.New(client, leaderelection.Options{
		Namespace: leaseKey.Namespace, Name: leaseKey.Name, Identity: identity,
	}))(t)
	m := newManager(t, manager.Options{Elector: elector})
	maps := mapInformer(client)
	ctl := controller.New("greeter", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		j.note("%s begins %s", identity, key.Name)
		<-time.After(work)
		j.note("%s ends %s", identity, key.Name)
		return controller.Result{}, nil
	}), controller.Options{})
	ctl.Watch(controller.For(maps))
	require.NoError(t, m.Add(ctl, maps))
	return run(t, m)
}

func createMap(s *fixture.Fixture, name string) {
	s.Helper()
	s.Create(configMaps, &corev1.ConfigMap{ObjectMeta: fixture.Meta("default", name)})
}

// TestHandOverIsWarm stops the leader during a reconcile. The leader waits for the reconcile; the next leader need not
// list.
func TestHandOverIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		createMap(s, "one")
		var j journal
		a := replica(t, s, &j, "a")
		<-a.Elected()
		b := replica(t, s, &j, "b")
		<-time.After(time.Minute)
		require.Equal(t, []string{"a begins one", "a ends one"}, j.take())
		require.False(t, runstate.IsClosed(b.Elected()))
		createMap(s, "two")
		require.Equal(t, []string{"a begins two"}, j.take())
		s.Server.ForgetRequests()

		took := must.Get(a.stop())(t)
		require.Equal(t, 5*time.Second, took.Round(time.Second))
		require.Equal(t, []string{"a ends two"}, j.take())
		lease := must.Get(s.Server.Get(leases, leaseKey))(t)
		require.Empty(t, lease.Object["spec"].(map[string]any)["holderIdentity"], "the lease was released")
		released := time.Now()
		<-b.Elected()
		require.Less(t, time.Since(released), 5*time.Second)
		require.Equal(t, "b begins two", j.take()[0], "the queue is full, new keys before old ones")
		for _, r := range s.Server.Requests() {
			require.Equal(t, "leases", r.Resource, "it had to %s", r.Verb)
		}
		must.Get(b.stop())(t)
	})
}

// TestLeaderThatIsCutOff cuts the leader off from the server. It ends with an error.
func TestLeaderThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		var j journal
		a := replica(t, s, &j, "a")
		<-a.Elected()
		s.Server.Inject(faults.Fault{Match: faults.Match{Resource: "leases.coordination.k8s.io"}, Effect: faults.Fail{Code: http.StatusInternalServerError}})
		began := time.Now()
		err := <-a.ended
		require.ErrorIs(t, err, leaderelection.ErrLost)
		require.ErrorContains(t, err, "manager: no longer the leader: leaderelection: the lease is lost: default/mill could not be renewed for 10s: ")
		require.True(t, apierrors.IsInternalError(err), "the reason is missing: %v", err)
		require.Less(t, time.Since(began), 13*time.Second)
	})
}

// TestLeaderThatIsCutOffAtTheEnd loses the lease while a reconcile that ignores its context is still running.
func TestLeaderThatIsCutOffAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		var j journal
		a := newReplica(t, s, "a", time.Minute, &j)
		<-a.Elected()
		createMap(s, "one")
		require.Equal(t, []string{"a begins one"}, j.take())
		s.Server.Inject(faults.Fault{Match: faults.Match{Resource: "leases.coordination.k8s.io"}, Effect: faults.Fail{Code: http.StatusForbidden}})
		took, err := a.stop()
		require.ErrorIs(t, err, leaderelection.ErrLost)
		require.NotErrorIs(t, err, manager.ErrGracePeriod)
		require.True(t, apierrors.IsForbidden(err), "the reason is missing: %v", err)
		require.Equal(t, leaderelection.DefaultRenewDeadline, took)
		require.Empty(t, j.take(), "the reconcile is still running")
		<-time.After(time.Minute)
	})
}

// TestSyncTimeoutNamesTheCause lists without permission: with an informer, with a factory, and with a cache that does
// not tell the reason.
func TestSyncTimeoutNamesTheCause(t *testing.T) {
	for _, how := range []string{"informer", "factory", "other"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := served(t)
				s.Server.Inject(failConfigMaps(http.StatusForbidden))
				client := s.Connect(nil)
				var j journal
				m := newManager(t, manager.Options{})
				worker := j.newPart("worker")
				require.NoError(t, m.Add(worker))
				switch how {
				case "informer":
					require.NoError(t, m.Add(mapInformer(client)))
				case "factory":
					f := factory.New(factory.Options{})
					_, err := factory.Shared(f, apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, ""), informer.Options[*corev1.ConfigMap]{})
					require.NoError(t, err)
					require.NoError(t, m.Add(f))
				default:
					place(t, m, manager.Caches, j.newSlow("cache"))
				}
				began := time.Now()
				err := <-run(t, m).ended
				require.Equal(t, 2*time.Minute, time.Since(began).Round(time.Second))
				require.ErrorIs(t, err, manager.ErrNotSynced)
				require.NotContains(t, j.take(), "start worker")
				if how == "other" {
					require.EqualError(t, err, "manager: cache not synced after 2m0s")
					return
				}
				require.True(t, apierrors.IsForbidden(unwrapped(err)), "%v", err)
				require.ErrorContains(t, err, "not synced after 2m0s: configmaps: not synced")
			})
		})
	}
}

// unwrapped returns the API's error in a tree of joined errors.
func unwrapped(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return err
}

// TestReplicaThatCannotWarmUp has a controller of an unknown kind. It must not block the other one.
func TestReplicaThatCannotWarmUp(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		elector := j.newVote()
		close(elector.win)
		m := newManager(t, manager.Options{Elector: elector, SyncTimeout: time.Minute})
		cold, warm := j.newHeld("cold"), j.newHeld("warm")
		close(warm.synced)
		require.NoError(t, m.Add(cold, warm))
		b := run(t, m)
		<-time.After(59 * time.Second)
		require.ElementsMatch(t, []string{"warm up cold", "warm up warm"}, j.take())
		<-time.After(time.Second)
		require.ElementsMatch(t, []string{"campaign", "start cold", "start warm"}, j.take())
		must.Get(b.stop())(t)
	})
}

func TestWaitsHaveALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{SyncTimeout: -1})
		cache := j.newSlow("cache")
		place(t, m, manager.Caches, cache)
		require.NoError(t, m.Add(j.newPart("worker")))
		b := run(t, m)
		<-time.After(24 * time.Hour)
		require.Equal(t, []string{"start cache"}, j.take())
		close(cache.synced)
		require.Equal(t, []string{"start worker"}, j.take())
		must.Get(b.stop())(t)
	})
}

// TestDefaultGroups checks the default groups.
func TestDefaultGroups(t *testing.T) {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://h"}))(t)
	shared := factory.New(factory.Options{})
	share := must.Get(factory.Shared(shared, apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, ""), informer.Options[*corev1.ConfigMap]{}))(t)
	events := must.Get(events.New(client, events.Options{Controller: "mill"}))(t)
	server := must.Get(manager.NewServer("webhooks", manager.ServerOptions{Address: "127.0.0.1:0", Handler: http.NotFoundHandler()}))(t)
	ctl := controller.New("greeter", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
		return controller.Result{}, nil
	}), controller.Options{})
	m := newManager(t, manager.Options{})
	for _, c := range []struct {
		runnable manager.Runnable
		group    manager.Group
		name     string
	}{
		{mapInformer(client), manager.Caches, "informer of configmaps"},
		{mapInformer(client), manager.Caches, "informer of configmaps #2"},
		{shared, manager.Caches, "informers"},
		{events, manager.Servers, "recorder of mill"},
		{server, manager.Servers, "webhooks"},
		{ctl, manager.WarmUp, "greeter"},
		{onEach{need: false}, manager.Others, "manager_test.onEach"},
		{onEach{need: true}, manager.Elected, "manager_test.onEach #2"},
		{manager.Func(nil), manager.Elected, "manager.Func"},
	} {
		r := must.Get(m.AddWith(c.runnable, manager.Placement{}))(t)
		require.Equal(t, c.group, r.Group(), c.name)
		require.Equal(t, c.name, r.Name())
	}
	require.ErrorContains(t, m.Add(share), "a factory runs the share of the informer of configmaps")
}

// onEach is a runnable that says whether it works only on the leader.
type onEach struct {
	manager.Func
	need bool
}

func (e onEach) NeedLeaderElection() bool { return e.need }

// failConfigMaps fails every request for ConfigMaps.
func failConfigMaps(code int) faults.Fault {
	return faults.Fault{Match: faults.Match{Resource: "configmaps"}, Effect: faults.Fail{Code: code}}
}
