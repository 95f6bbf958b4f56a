package manager_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/leaderelection"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/recorder"
)

// parts has one runnable of each kind, all without a logger.
type parts struct {
	client     *apiclient.Client
	maps       *informer.Informer[*corev1.ConfigMap]
	factory    *informer.Factory
	controller *controller.Controller[api.Key]
	recorder   *recorder.Recorder
	elector    *leaderelection.Elector
}

func newParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{client: connect(t, served(t))}
	p.maps = mapInformer(p.client)
	p.factory = informer.NewFactory(informer.FactoryOptions{})
	_, err := informer.Shared(p.factory, apiclient.NewTyped[*corev1.ConfigMap](p.client, configMaps, "default"),
		informer.Options[*corev1.ConfigMap]{Selector: api.Selector{Labels: "app=web"}})
	require.NoError(t, err)
	gate := cachedclient.NewGate(cachedclient.GateOptions{})
	p.controller = controller.New("mill", controller.Gated(controller.Func[api.Key](
		func(context.Context, api.Key) (controller.Result, error) { panic("out of grain") }), gate), controller.Options{})
	p.controller.Watch(controller.For(p.maps))
	p.recorder, err = recorder.New(p.client, recorder.Options{Controller: "miller"})
	require.NoError(t, err)
	p.elector, err = leaderelection.New(p.client, leaderelection.Options{Namespace: leaseKey.Namespace, Name: leaseKey.Name})
	require.NoError(t, err)
	return p
}

// run runs the program in a manager until everything waits, and then calls check.
func (p *parts) run(t *testing.T, o manager.Options, check func()) {
	t.Helper()
	o.Elector = p.elector
	m := newManager(t, o)
	require.NoError(t, m.Add(p.maps, p.factory, p.controller, p.recorder))
	_, err := apiclient.NewTyped[*corev1.ConfigMap](p.client, configMaps, "default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "grain", Namespace: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-m.Elected()
	synctest.Wait()
	check()
	cancel()
	require.NoError(t, <-ended)
}

// TestLoggerIsHandedOn runs parts without a logger. The log must show the panic of the reconciler.
func TestLoggerIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		p := newParts(t)
		p.run(t, manager.Options{Logger: zap.New(core)}, func() {
			p.recorder.Event(recorder.Event{Resource: configMaps, Object: &corev1.ConfigMap{}, Reason: "Ground", Note: "flour"})
			synctest.Wait()
		})
		panics := logs.FilterFieldKey("controller").FilterLevelExact(zapcore.ErrorLevel)
		require.NotZero(t, panics.Len(), "the reconciler has panicked")
		require.NotZero(t, logs.FilterFieldKey("lease").Len())
		require.NotZero(t, logs.FilterMessageSnippet("event").Len(), "of the recorder")
	})
	t.Run("a runnable keeps its own logger", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			own, ownLogs := observer.New(zapcore.DebugLevel)
			core, logs := observer.New(zapcore.DebugLevel)
			p := newParts(t)
			p.controller = controller.New("mill", controller.Func[api.Key](
				func(context.Context, api.Key) (controller.Result, error) { panic("out of grain") }), controller.Options{Logger: zap.New(own)})
			p.controller.Watch(controller.For(p.maps))
			p.run(t, manager.Options{Logger: zap.New(core)}, func() {})
			require.NotZero(t, ownLogs.Len())
			require.Zero(t, logs.FilterFieldKey("controller").Len())
		})
	})
}

// TestMetricsAreRegistered runs parts that nobody registered. Their metrics end with them.
func TestMetricsAreRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		shown, err := metrics.New(registry)
		require.NoError(t, err)
		p := newParts(t)
		_, err = shown.Controller(p.controller) // the manager must not fail because of it
		require.NoError(t, err)
		p.run(t, manager.Options{Metrics: shown}, func() {
			require.Equal(t, []string{"configmaps", "configmaps in default, labels app=web"}, labels(t, registry, "leat_informer_synced", "informer"))
			require.Equal(t, []string{"mill"}, labels(t, registry, "leat_controller_synced", "controller"))
			require.Equal(t, []string{"default/mill"}, labels(t, registry, "leader_election_master_status", "name"))
			require.Equal(t, []string{"miller"}, labels(t, registry, "leat_recorder_waiting", "recorder"))
		})
		require.Empty(t, labels(t, registry, "leat_informer_synced", "informer"))
		require.Empty(t, labels(t, registry, "leader_election_master_status", "name"))
		require.Equal(t, []string{"mill"}, labels(t, registry, "leat_controller_synced", "controller"), "its owner removes it")
	})
}

// labels returns the values of a label in a family, sorted.
func labels(t *testing.T, registry *prometheus.Registry, family, label string) (values []string) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, pair := range m.GetLabel() {
				if f.GetName() == family && pair.GetName() == label {
					values = append(values, pair.GetValue())
				}
			}
		}
	}
	slices.Sort(values)
	return values
}
