package manager_test

import (
	"context"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/workqueue"
)

var doNothing = controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
	return controller.Result{}, nil
})

// TestAdminShowsOptions asks managers with default options and with explicit ones.
func TestAdminShowsOptions(t *testing.T) {
	const path = "/debug/options"
	debug := manager.AdminOptions{Debug: true}
	m := newManager(t, manager.Options{})
	code, _ := ask(m.AdminHandler(manager.AdminOptions{}), path)
	require.Equal(t, 404, code)
	code, text := ask(m.AdminHandler(debug), path)
	require.Equal(t, 200, code)
	require.JSONEq(t, `{"Controllers": {}, "Manager": {
		"Elector": false, "ElectionTolerance": "20s", "GracePeriod": "30s", "SyncTimeout": "2m0s", "ShowReasons": false, "Logger": false, "Metrics": false,
		"Admin": {"Address": "", "Listener": false, "Metrics": false, "Profile": false, "Debug": false, "Page": false, "AllowedHosts": null,
			"ShutdownTimeout": "0s"}}}`, text)

	m = newManager(t, manager.Options{
		Elector: new(journal).newVote(), ElectionTolerance: time.Second, GracePeriod: -1, SyncTimeout: time.Minute, ShowReasons: true,
		Admin: manager.AdminOptions{Address: "127.0.0.1:8081"},
	})
	shared := controller.Options{
		Tuning: controller.Tuning{KindWorkers: map[schema.GroupKind]int{{Kind: "ConfigMap"}: 3}}, MaxRetries: 4,
	}
	for _, name := range []string{"mill", "alone"} {
		require.NoError(t, m.Add(controller.New(name, doNothing, shared)))
		shared.MaxRetries = 5
	}
	unlimited := controller.Options{Queue: workqueue.Options{Bucket: workqueue.Bucket{QPS: math.Inf(1)}}}
	require.NoError(t, m.Add(controller.New("unlimited", doNothing, unlimited)))
	require.NoError(t, m.Add(new(journal).newPart("part"), &talker{part: *new(journal).newPart("talker")}))
	_, text = ask(m.AdminHandler(debug), path)
	require.Contains(t, text, `"Address": "127.0.0.1:8081"`)
	require.Contains(t, text, `"GracePeriod": "-1ns"`)
	require.Contains(t, text, `"Elector": true`)
	require.Contains(t, text, `"ConfigMap": 3`)
	require.Contains(t, text, `"Max": "16m40s"`)
	require.Regexp(t, `(?s)"alone": \{.*"MaxRetries": 5.*"mill": \{.*"MaxRetries": 4`, text)
	require.Contains(t, text, `"QPS": "+Inf"`)
	require.NotContains(t, text, "talker")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	m = newManager(t, manager.Options{Admin: manager.AdminOptions{Listener: listener, Address: "ignored"}})
	_, text = ask(m.AdminHandler(debug), path)
	require.Contains(t, text, `"Listener": "`+listener.Addr().String()+`"`)
}
