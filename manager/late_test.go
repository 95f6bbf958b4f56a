package manager_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
)

// TestWhyAReplicaIsCold has a controller whose informer gets no list; no other runnable waits for it.
func TestWhyAReplicaIsCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		s.Server.Inject(failConfigMaps(http.StatusForbidden))
		logs, seen := observer.New(zap.WarnLevel)
		var j journal
		elector := j.newVote()
		m := newManager(t, manager.Options{Elector: elector, Logger: zap.New(logs), SyncTimeout: time.Minute})
		maps := mapInformer(s.Connect(nil))
		place(t, m, manager.Others, maps)
		ctl := controller.New("mill", doNothing, controller.Options{CacheSyncTimeout: -1})
		ctl.Watch(controller.For(maps))
		require.NoError(t, m.Add(ctl))
		b := run(t, m)
		<-time.After(time.Minute + time.Second)
		require.Equal(t, []string{"campaign"}, j.take())
		cold := seen.FilterMessage("campaigning before the runnable is synced").All()
		require.Len(t, cold, 1)
		require.Equal(t, "mill", cold[0].ContextMap()["name"])
		require.Regexp(t, `source configmaps not synced: configmaps: not synced, .* list configmaps: a fault was injected`, cold[0].ContextMap()["err"])
		_, err := b.stop()
		require.NoError(t, err)
	})
}

// TestControllerThatCannotSyncEndsTheManager has a controller without a permission, and no election.
func TestControllerThatCannotSyncEndsTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		s.Server.Inject(failConfigMaps(http.StatusForbidden))
		m := newManager(t, manager.Options{})
		maps := mapInformer(s.Connect(nil))
		place(t, m, manager.Others, maps)
		ctl := controller.New("mill", doNothing, controller.Options{})
		ctl.Watch(controller.For(maps))
		require.NoError(t, m.Add(ctl))
		err := <-run(t, m).ended
		require.ErrorIs(t, err, controller.ErrNotSynced)
		var late *controller.SyncError
		require.ErrorAs(t, err, &late)
		require.Equal(t, 2*time.Minute, late.Timeout)
		require.Regexp(t, `^manager: mill: controller: mill: source configmaps not synced after 2m0s: configmaps: not synced, .*: list configmaps: a fault was injected`, err.Error())
		require.False(t, errors.Is(err, manager.ErrGracePeriod))
	})
}

// candid is a cache that tells why it is not synced.
type candid struct{ *slow }

var errNoDisk = errors.New("no disk")

func (candid) NotSynced() error { return errNoDisk }

func TestCacheThatSaysWhyItIsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{ShowReasons: true})
		place(t, m, manager.Caches, candid{j.newSlow("cache")})
		b := run(t, m)
		synctest.Wait()
		_, text := ask(m.Readyz(), "/readyz/informer-sync")
		require.Equal(t, "internal server error: cache: not synced: no disk", text)
		err := <-b.ended
		require.ErrorIs(t, err, errNoDisk)
		require.EqualError(t, err, "manager: cache not synced after 2m0s: no disk")
	})
}
