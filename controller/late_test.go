package controller_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/workqueue"
)

// TestWhyASourceIsNotSynced calls NotSynced at once, and reads the log later.
func TestWhyASourceIsNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.WarnLevel)
		var c cluster
		good, bad := c.collection(owners), c.collection(things)
		bad.fail(apierrors.NewForbidden(things.GroupResource(), "", errors.New("ask your administrator")))
		ctl := controller.New("test", &recorder{}, controller.Options{CacheSyncTimeout: -1, Logger: zap.New(core)})
		lost := ctl.Watch(controller.For(bad.running(t)))
		fine := ctl.Watch(controller.For(good.running(t)))
		start(t, ctl.Run)
		synctest.Wait()
		require.True(t, apierrors.IsForbidden(ctl.NotSynced()))
		require.ErrorIs(t, ctl.NotSynced(), controller.ErrNotSynced)
		require.Regexp(t, `^controller: test: source things not synced: things: not synced, .*ask your administrator$`, ctl.NotSynced().Error())
		require.True(t, apierrors.IsForbidden(lost.NotSynced()))
		require.NoError(t, fine.NotSynced())
		require.Zero(t, logs.Len(), "no log entry before 10 s")

		pass(75 * time.Second)
		entries := logs.FilterMessage("waiting for a source").All()
		require.Len(t, entries, 3) // after 10 s, 30 s and 70 s
		require.Equal(t, 60*time.Second, entries[2].Time.Sub(entries[0].Time))
		require.Equal(t, "things", entries[0].ContextMap()["source"])
		require.Contains(t, entries[0].ContextMap()["err"], "ask your administrator")

		bad.fail(nil)
		<-lost.Synced()
		require.NoError(t, lost.NotSynced())
		require.NoError(t, ctl.NotSynced())
	})
}

// TestASourceWaitsForItsController has a source whose informer is synced, before Run.
func TestASourceWaitsForItsController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cluster
		ctl := controller.New("test", &recorder{}, controller.Options{})
		things := ctl.Watch(controller.For(c.collection(things).running(t)))
		synctest.Wait()
		require.EqualError(t, ctl.NotSynced(), "controller: test: source things not synced: the controller has not started")
		start(t, ctl.Run)
		<-things.Synced()
		require.NoError(t, ctl.NotSynced())
	})
}

// TestLateSourceSaysWhyItIsNotSynced watches a source when the workers are already running. They do not wait for it.
func TestLateSourceSaysWhyItIsNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(cluster).collection(things)
		server.fail(apierrors.NewNotFound(things.GroupResource(), ""))
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		start(t, ctl.Run)
		<-ctl.Synced()
		late := ctl.Watch(controller.For(server.running(t)))
		pass(time.Hour)
		require.True(t, apierrors.IsNotFound(late.NotSynced()))
		require.True(t, apierrors.IsNotFound(ctl.NotSynced()))
		ctl.Add(keyOf("a"), workqueue.Item{})
		require.Equal(t, []string{"a"}, r.names())
		late.Remove()
		<-late.Done()
		require.NoError(t, late.NotSynced())
		require.NoError(t, ctl.NotSynced())
	})
}

// moody is a source whose NotSynced panics.
type moody struct{ *feed }

func (moody) NotSynced() error { panic("do not ask") }

func TestSourceThatPanicsWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		f.synced = nil
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{CacheSyncTimeout: time.Minute})
		ctl.Watch(moody{f})
		require.EqualError(t, ctl.Run(t.Context()),
			"controller: test: source feed not synced after 1m0s: panic: do not ask [recovered]")
	})
}

// TestUpdatesOfNoNewVersionAreLowPriority lists again without comparing objects.
func TestUpdatesOfNoNewVersionAreLowPriority(t *testing.T) {
	for _, versioned := range []bool{true, false} {
		fixture.Bubble(t, fmt.Sprint("versioned=", versioned), func(t *testing.T) {
			var c cluster
			server := c.collection(things)
			server.apply(named("a"))
			if !versioned {
				server.objects[keyOf("a")].ResourceVersion = ""
			}
			var seen reports
			ctl := traced(controller.New("test", &recorder{}, controller.Options{}), seen.add)
			i := informer.New(server, informer.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true, NoListReuse: true}})
			ctl.Watch(controller.For[*thing](i).When(func(n api.Change[*thing]) bool { return !n.InitialList }))
			start(t, i.Run)
			start(t, ctl.Run)
			<-ctl.Synced()
			c.collection(owners).apply(named("another")) // the version of the watch is now too old
			server.forgetHistory()
			pass(time.Minute)
			all := seen.take()
			require.Len(t, all, 1)
			require.Equal(t, "update", all[0].Causes[0].Event)
			require.Equal(t, versioned, all[0].Priority == controller.LowPriority, "an object without a version may have changed")
		})
	}
}

var _ controller.Source[api.Key] = controller.InformerSource[*thing, api.Key]{}

// TestAddAtAnyTime adds keys before, during and after Run.
func TestAddAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Add(keyOf("before"), workqueue.Item{})
		require.Empty(t, r.names())
		stop := start(t, ctl.Run)
		require.Equal(t, []string{"before"}, r.names())
		ctl.Add(keyOf("during"), workqueue.Item{})
		require.Equal(t, []string{"during"}, r.names())
		require.NoError(t, stop())
		ctl.Add(keyOf("after"), workqueue.Item{})
		require.Zero(t, ctl.Stats().Queue.Depth)
		require.Empty(t, r.names())
	})
}
