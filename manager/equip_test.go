package manager_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

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
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/reconcile/events"
)

// parts has one runnable of each kind, all without a logger.
type parts struct {
	client     *apiclient.Client
	maps       *informer.Informer[*corev1.ConfigMap]
	factory    *factory.Factory
	controller *controller.Controller[api.Key]
	recorder   *events.Recorder
	elector    *leaderelection.Elector
}

func newParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{client: served(t).Connect(nil)}
	p.maps = mapInformer(p.client)
	p.factory = factory.New(factory.Options{})
	_, err := factory.Shared(p.factory, apiclient.NewTyped[*corev1.ConfigMap](p.client, configMaps, "default"),
		informer.Options[*corev1.ConfigMap]{Selector: api.Selector{Labels: "app=web"}})
	require.NoError(t, err)
	gate := cachedclient.NewGate(cachedclient.GateOptions{})
	p.controller = controller.New("mill", controller.Gated(controller.Func[api.Key](
		func(context.Context, api.Key) (controller.Result, error) { panic("out of grain") }), gate), controller.Options{})
	p.controller.Watch(controller.For(p.maps))
	p.recorder = must.Get(events.New(p.client, events.Options{Controller: "miller"}))(t)
	p.elector = must.Get(leaderelection.New(p.client, leaderelection.Options{Namespace: leaseKey.Namespace, Name: leaseKey.Name}))(t)
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
	stop := fixture.Start(t, m.Run)
	<-m.Elected()
	synctest.Wait()
	check()
	stop()
}

// TestLoggerIsHandedOn runs parts without a logger. The log must show the panic of the reconciler.
func TestLoggerIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		p := newParts(t)
		p.run(t, manager.Options{Logger: zap.New(core)}, func() {
			p.recorder.Event(events.Event{Resource: configMaps, Object: &corev1.ConfigMap{}, Reason: "Ground", Note: "flour"})
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

// registry is a MetricsRegistry that records what is registered.
type registry struct {
	mu    sync.Mutex
	names map[string]any
	fails string // the name whose registration fails
}

func (r *registry) Register(name string, of any) (remove func(), err error) {
	if name == r.fails {
		return nil, errors.New("no metrics today")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = of
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.names, name)
	}, nil
}

// TestMetricsAreRegistered runs parts that nobody registered. Their metrics end with them.
func TestMetricsAreRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{names: map[string]any{}}
		p := newParts(t)
		p.run(t, manager.Options{Metrics: r}, func() {
			require.Equal(t, map[string]any{
				"election": p.elector, "informer of configmaps": p.maps, "informers": p.factory, "mill": p.controller, "recorder of miller": p.recorder,
			}, r.names)
		})
		require.Empty(t, r.names)
	})
	t.Run("a runnable without metrics is not added", func(t *testing.T) {
		r := &registry{names: map[string]any{}, fails: "part"}
		m := newManager(t, manager.Options{Metrics: r})
		require.EqualError(t, must.Err(m.AddWith(manager.Func(nil), manager.Placement{Name: "part"})), "manager: part: no metrics today")
		must.Get(m.AddWith(manager.Func(nil), manager.Placement{Name: "other"}))(t)
	})
}

// TestANewThatFailsLeavesNoMetrics makes a manager whose admin server is invalid.
func TestANewThatFailsLeavesNoMetrics(t *testing.T) {
	r := &registry{names: map[string]any{}}
	_, err := manager.New(manager.Options{
		Elector: electorFunc(nil), Metrics: r, Admin: manager.AdminOptions{Address: ":0", AllowedHosts: []string{"no host:"}},
	})
	require.Error(t, err)
	require.Empty(t, r.names)
}

// talkative is a runnable and a MetricsRegistry that uses the manager in each method that the manager calls.
type talkative struct {
	m     *manager.Manager
	calls *[]string
}

func (r *talkative) use(method string) {
	*r.calls = append(*r.calls, method)
	_ = r.m.Readyz().Add(method, func(context.Context) error { return nil })
	r.m.AdminHandler(manager.AdminOptions{}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil))
}

func (r *talkative) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (r *talkative) UseLogger(*zap.Logger) { r.use("UseLogger") }

func (r *talkative) Register(string, any) (remove func(), err error) {
	r.use("Register")
	return func() { r.use("remove") }, nil
}

// TestNoLockIsHeldForUserCode adds a runnable that runs, one that is removed before it runs, and one that is added
// within UseLogger while the manager ends.
func TestNoLockIsHeldForUserCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &talkative{calls: new([]string)}
		r.m = newManager(t, manager.Options{Metrics: r, Logger: zap.NewNop()})
		early := must.Get(r.m.AddWith(r, manager.Placement{Name: "early"}))(t)
		early.Remove()
		<-early.Done()
		require.NoError(t, r.m.Add(r), "it is not a member any more")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.m.Run(ctx) }()
		<-r.m.Elected()
		synctest.Wait()
		late := &ending{stop: func() {
			cancel()
			require.NoError(t, <-ended)
		}}
		require.ErrorIs(t, r.m.Add(late), manager.ErrStopped)
		require.False(t, late.ran)
		require.Equal(t, []string{"UseLogger", "Register", "remove", "UseLogger", "Register", "remove", "Register", "remove"}, *r.calls)
	})
}

// ending is a runnable whose UseLogger ends the manager.
type ending struct {
	stop func()
	ran  bool
}

func (e *ending) UseLogger(*zap.Logger) { e.stop() }

func (e *ending) Run(context.Context) error {
	e.ran = true
	return nil
}
