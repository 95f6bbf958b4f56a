package program_test

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/scale/multicluster"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/webhook"
	"github.com/leatproject/leat/webhook/selfsigned"
)

// addable are the types of leat that a program can add, without a logger and without metrics. logs is a part of an
// entry that proves the logger, and metric a series; both may be empty.
var addable = map[string]struct {
	make         func(t *testing.T, c *apiclient.Client) manager.Runnable
	logs, metric string
}{
	"informer.Informer": {func(_ *testing.T, c *apiclient.Client) manager.Runnable {
		return informer.New(apiclient.NewTyped[*corev1.ConfigMap](c, configMaps, "default"), maps{})
	}, "the request failed", `leat_informer_objects{informer="configmaps in default"}`},
	"factory.Factory": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		f := factory.New(factory.Options{})
		must.Get(factory.Shared(f, apiclient.NewTyped[*corev1.ConfigMap](c, configMaps, "default"), maps{}))(t)
		return f
	}, "the request failed", `leat_informer_objects{informer="configmaps in default"}`},
	"controller.Controller": {func(_ *testing.T, _ *apiclient.Client) manager.Runnable {
		return controller.New("miller", controller.Func[api.Key](nil), controller.Options{})
	}, "workers", `controller_runtime_max_concurrent_reconciles{controller="miller"}`},
	"events.Recorder": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		return must.Get(events.New(c, events.Options{Controller: "miller"}))(t)
	}, "event", `leat_recorder_events_total{recorder="miller"}`},
	"manager.Server": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		return must.Get(manager.NewServer("mill", manager.ServerOptions{Handler: http.NotFoundHandler(), Listener: make(silent)}))(t)
	}, "listening", ""},
	"webhook.Server": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		s := must.Get(webhook.New(webhook.Options{Certificates: source(t, c), Listener: make(silent)}))(t)
		s.Handle("/bread", webhook.Admission[*corev1.ConfigMap]{Default: webhook.DefaultFunc[*corev1.ConfigMap](nil)})
		return s
	}, "certificate of the webhooks", `controller_runtime_webhook_requests_total{code="200",webhook="/bread"}`},
	"selfsigned.Source": {
		func(t *testing.T, c *apiclient.Client) manager.Runnable { return source(t, c) },
		"certificate", "certwatcher_read_certificate_total{}",
	},
	"recording.Recorder": {func(t *testing.T, _ *apiclient.Client) manager.Runnable {
		return must.Get(recording.New(io.Discard, recording.Options{}))(t)
	}, "recording", `leat_recording_streams_total{recording="recording"}`},
	"shard.Member": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		return must.Get(shard.New(c, shard.Options{Namespace: "default", Group: "mill"}))(t)
	}, "cannot list the group", `leat_shard_members{group="mill"}`},
	"multicluster.Set": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		return must.Get(multicluster.New(c, multicluster.Options{Selector: api.Selector{Labels: "cluster=yes"}}))(t)
	}, "the request failed", ""},
	"shardedsource.Scopes": {func(t *testing.T, c *apiclient.Client) manager.Runnable {
		set := scopes.New(configMaps, scopes.Options[*corev1.ConfigMap]{})
		return shardedsource.NewScopes(set, apiclient.NewTyped[*corev1.ConfigMap](c, configMaps, ""), hashrange.UID, shardedsource.Options{})
	}, "", ""},
}

// source returns the certificates of a webhook server.
func source(t *testing.T, c *apiclient.Client) *selfsigned.Source {
	t.Helper()
	s, err := selfsigned.New(selfsigned.Options{Client: c, Secret: api.Key{Namespace: "default", Name: "mill"}, Hosts: []string{"mill.default.svc"}})
	require.NoError(t, err)
	return s
}

// silent is a listener without connections, for a bubble.
type silent chan struct{}

func (s silent) Accept() (net.Conn, error) {
	<-s
	return nil, net.ErrClosed
}

func (s silent) Close() error {
	close(s)
	return nil
}

func (s silent) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// TestEverythingThatIsAddedLogsAndHasMetrics adds one part after the other to a program. All requests fail, so that
// parts which log only trouble have some.
func TestEverythingThatIsAddedLogsAndHasMetrics(t *testing.T) {
	for name, a := range addable {
		t.Run(name, func(t *testing.T) {
			testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
				t := k.T
				k.Server.Inject(faults.Fault{Effect: faults.Fail{Code: 500}})
				core, logs := observer.New(zap.DebugLevel)
				p := must.Get(program.New(program.Options{Name: "mill", Client: k.Client, Logger: zap.New(core)}))(t)
				part := a.make(t, k.Client)
				require.Implements(t, (*manager.LoggerUser)(nil), part)
				p.Add(part)
				require.NoError(t, p.Err())
				if r, ok := part.(*events.Recorder); ok {
					r.Event(events.Event{Resource: configMaps, Reason: "NoObject"})
				}
				running := k.Start(p.Run)
				k.Pass(time.Second)
				if a.logs != "" {
					require.NotZero(t, logs.FilterMessageSnippet(a.logs).Len(), "%v", logs.All())
				}
				require.Contains(t, series(t, p), a.metric)
				k.Server.Heal()
				running.Stop()
			})
		})
	}
}

// series returns the names and the labels of all series.
func series(t *testing.T, p *program.Program) string {
	t.Helper()
	families := must.Get(p.Registry.Gather())(t)
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			all = append(all, f.GetName()+"{"+strings.Join(labels, ",")+"}")
		}
	}
	return strings.Join(all, "\n")
}

// TestAllPartsAreAddable finds each exported type of the module with a method Run(ctx) error.
func TestAllPartsAreAddable(t *testing.T) {
	others := []string{
		"manager.Manager", "program.Program", "manager.Func", // not a part
		"reflector.Reflector", // an informer runs it
	}
	run := regexp.MustCompile(`(?m)^func \(\w+ \*?([A-Z]\w*)(?:\[\w+\])?\) Run\(ctx context.Context\) error`)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); d.IsDir() && path != ".." && (err == nil || notLibrary[d.Name()]) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range run.FindAllSubmatch(text, -1) {
			if name := filepath.Base(filepath.Dir(path)) + "." + string(found[1]); !slices.Contains(others, name) {
				require.Contains(t, addable, name, "no test shows that it logs and has metrics")
			}
		}
		return err
	}))
}

// notLibrary are folders without parts of programs.
var notLibrary = map[string]bool{"internal": true, "testserver": true, "testkit": true, "examples": true, "cmd": true}
