package manager_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
)

var doNothing = controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
	return controller.Result{}, nil
})

// TestSettings asks managers for what nobody told them, and for what somebody did.
func TestSettings(t *testing.T) {
	const path = "/debug/options"
	debug := manager.AdminOptions{Debug: true}
	m := newManager(t, manager.Options{})
	code, _ := ask(m.AdminHandler(manager.AdminOptions{}), path)
	require.Equal(t, 404, code)
	code, text := ask(m.AdminHandler(debug), path)
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"Controllers": [], "Manager": {
		"Election": false, "ElectionTolerance": "20s", "GracePeriod": "30s", "SyncTimeout": "2m0s", "ShowReasons": false, "Admin": ""}}`, text)

	m = newManager(t, manager.Options{
		Elector: new(journal).newVote(), ElectionTolerance: time.Second, GracePeriod: -1, SyncTimeout: time.Minute, ShowReasons: true,
		Admin: manager.AdminOptions{Address: "127.0.0.1:8081"},
	})
	shared := controller.Options{KindWorkers: map[schema.GroupKind]int{{Kind: "ConfigMap"}: 3}, MaxRetries: 4}
	for _, name := range []string{"mill", "alone"} {
		require.NoError(t, m.Add(controller.New(name, doNothing, shared)))
		shared.MaxRetries = 5
	}
	require.NoError(t, m.Add(new(journal).newPart("part"), &talker{part: *new(journal).newPart("talker")}))
	_, text = ask(m.AdminHandler(debug), path)
	require.Contains(t, text, `"Admin": "127.0.0.1:8081"`)
	require.Contains(t, text, `"GracePeriod": "-1ns"`)
	require.Contains(t, text, `"Election": true`)
	require.Regexp(t, `(?s)"Name": "alone".*"MaxRetries": 5.*"Name": "mill".*"MaxRetries": 4`, text)
	require.NotContains(t, text, "talker")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	m = newManager(t, manager.Options{Admin: manager.AdminOptions{Listener: listener, Address: "ignored"}})
	_, text = ask(m.AdminHandler(debug), path)
	require.Contains(t, text, `"Admin": "`+listener.Addr().String()+`"`)
}

// TestWhyAReplicaIsCold has a controller whose informer gets no list and is waited for by nobody else.
func TestWhyAReplicaIsCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		s.Inject(failConfigMaps(http.StatusForbidden))
		logs, seen := observer.New(zap.WarnLevel)
		var j journal
		elector := j.newVote()
		m := newManager(t, manager.Options{Elector: elector, Logger: zap.New(logs), SyncTimeout: time.Minute})
		maps := mapInformer(connect(t, s))
		place(t, m, manager.Others, maps)
		ctl := controller.New("mill", doNothing, controller.Options{CacheSyncTimeout: -1})
		ctl.Watch(controller.For(maps))
		require.NoError(t, m.Add(ctl))
		b := run(t, m)
		<-time.After(time.Minute + time.Second)
		require.Equal(t, []string{"campaign"}, j.take())
		cold := seen.FilterMessage("campaigning before it is warm").All()
		require.Len(t, cold, 1)
		require.Equal(t, "mill", cold[0].ContextMap()["name"])
		require.Regexp(t, `source configmaps not synced: configmaps: not synced, .* list configmaps: a fault was injected`, cold[0].ContextMap()["err"])
		_, err := b.stop()
		require.NoError(t, err)
	})
}

// TestControllerThatCannotSyncEndsTheManager is what becomes of a permission that is missing where nobody campaigns.
func TestControllerThatCannotSyncEndsTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		s.Inject(failConfigMaps(http.StatusForbidden))
		m := newManager(t, manager.Options{})
		maps := mapInformer(connect(t, s))
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
