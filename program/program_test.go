package program_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/testkit"
)

var (
	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	nodes      = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
)

type maps = informer.Options[*corev1.ConfigMap]

// TestWholeProgram runs a program with a controller that copies the data of one ConfigMap to another and then panics.
// Its log and its metrics must show everything, although the test sets neither for any part.
func TestWholeProgram(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		core, logs := observer.New(zapcore.InfoLevel)
		p := must.Get(program.New(program.Options{
			Name: "copier", Client: k.Client, Logger: zap.New(core), Namespace: "default", Lease: api.Key{Namespace: "default", Name: "copier"},
		}))(t)
		objects := program.Typed(p, configMaps, maps{})
		metadata := program.Partial(p, configMaps, informer.Options[*metav1.PartialObjectMetadata]{})
		gate := p.Gate("copier")
		r := controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
			source, err := objects.Get(ctx, key)
			if err != nil || source.Data["to"] == "" {
				return controller.Result{}, err
			}
			to := source.Data["to"]
			_, err = objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: to}}, metav1.CreateOptions{})
			require.NoError(t, err)
			panic("the copy is made")
		})
		program.Controller(p, "copier", controller.Gated(r, gate), controller.For(objects.Informer()))
		require.Same(t, p.Recorder(), p.Recorder())
		require.NoError(t, p.Manager.Readyz().Add("heard", manager.HeardWithin(2*time.Minute, p.Informers.Status)))
		require.NoError(t, p.Err())
		running := k.Start(p.Run)
		testkit.Create(k, configMaps, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"to": "b"},
		})
		k.Idle()
		testkit.Get[*corev1.ConfigMap](k, configMaps, api.Key{Namespace: "default", Name: "b"})
		require.Equal(t, 2, metadata.Informer().Cache().Len(), "the metadata have their own informer")
		require.Equal(t, "configmaps in default", objects.Informer().Status().Name)
		require.NotZero(t, logs.FilterField(zap.String("controller", "copier")).FilterLevelExact(zapcore.ErrorLevel).Len(), "the panic")
		shown := map[string]bool{}
		families := must.Get(p.Registry.Gather())(t)
		for _, f := range families {
			shown[f.GetName()] = true
		}
		for _, name := range []string{
			"leat_informer_objects", "controller_runtime_reconcile_total", "leader_election_master_status", "leat_recorder_events_total",
			"leat_gate_waits_total", "go_goroutines",
		} {
			require.True(t, shown[name], name)
		}
		running.Stop()
	})
}

// TestCollectionsAreShared makes clients of one collection twice.
func TestCollectionsAreShared(t *testing.T) {
	p := offline(t, program.Options{Namespace: "default"})
	first, second := program.Typed(p, configMaps, maps{}), program.Typed(p, configMaps, maps{})
	require.Same(t, first.Informer(), second.Informer())
	require.Equal(t, "nodes", program.Typed(p, nodes, informer.Options[*corev1.Node]{}).Informer().Status().Name, "a node has no namespace")
	require.NoError(t, p.Err())
}

// TestChecksOfAllInformers gives a program a check. An informer with a check of its own keeps it.
func TestChecksOfAllInformers(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		p := must.Get(program.New(program.Options{Name: "checked", Client: k.Client, Logger: zap.NewNop(), Check: driftcheck.Every(time.Minute)}))(t)
		typed := program.Typed(p, configMaps, maps{})
		partial := program.Partial(p, configMaps, informer.Options[*metav1.PartialObjectMetadata]{})
		rare := program.Typed(p, nodes, informer.Options[*corev1.Node]{Check: driftcheck.Every(24 * time.Hour)})
		require.NoError(t, p.Err())
		running := k.Start(p.Run)
		k.Idle()
		k.Pass(2 * time.Minute)
		k.Idle()
		require.NotZero(t, typed.Informer().Status().Check.Checks)
		require.NotZero(t, partial.Informer().Status().Check.Checks)
		require.Zero(t, rare.Informer().Status().Check.Checks)
		running.Stop()
	})
}

// TestRunReturnsAllErrors has two parts that cannot be made. Run sends no request.
func TestRunReturnsAllErrors(t *testing.T) {
	p := offline(t, program.Options{})
	program.Typed(p, configMaps, maps{})
	other := program.Typed(p, configMaps, maps{Tuning: reflector.Tuning{PageSize: 7}})
	require.NotNil(t, other.Informer(), "the caller need not check each part")
	idle := controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) { return controller.Result{}, nil })
	program.Controller(p, "twice", idle, controller.For(other.Informer()))
	program.Controller(p, "twice", idle)
	err := p.Run(t.Context())
	require.ErrorContains(t, err, "configmaps is already shared with a different PageSize")
	require.ErrorContains(t, err, `"twice"`)
}

func TestInvalidOptions(t *testing.T) {
	require.EqualError(t, must.Err(program.New(program.Options{})), "program: Options.Name is empty")
	t.Setenv("KUBECONFIG", "/nowhere/config")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	require.ErrorContains(t, must.Err(program.New(program.Options{Name: "mill"})), "program: ")
	_, err := program.New(program.Options{Name: "mill", Config: apiclient.Config{Host: "http://127.0.0.1:1"}, Lease: api.Key{Name: "mill"}})
	require.ErrorContains(t, err, "Namespace is empty", "a lease needs a namespace outside a pod")
}

// TestLeaseInThePod names a lease without its namespace, which is the pod's.
func TestLeaseInThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "shop")
	p := offline(t, program.Options{Lease: api.Key{Name: "mill"}})
	lease := map[string]string{}
	for _, family := range must.Get(p.Registry.Gather())(t) {
		switch family.GetName() {
		case "leader_election_slowpath_total", "leader_election_master_status":
			lease[family.GetName()] = family.GetMetric()[0].GetLabel()[0].GetValue()
		}
	}
	require.Equal(t, map[string]string{"leader_election_slowpath_total": "shop/mill", "leader_election_master_status": "shop/mill"}, lease)
}

// offline returns a program whose server does not answer.
func offline(t *testing.T, o program.Options) *program.Program {
	t.Helper()
	o.Name, o.Config.Host, o.Logger = "mill", "http://127.0.0.1:1", zap.NewNop()
	return must.Get(program.New(o))(t)
}

// TestAddWhileItRuns adds a type and a controller to a running program.
func TestAddWhileItRuns(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		p := must.Get(program.New(program.Options{Name: "mill", Client: k.Client, Logger: zap.NewNop()}))(t)
		k.Start(p.Run)
		testkit.Create(k, configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
		var seen []api.Key
		objects := program.Typed(p, configMaps, maps{})
		program.Controller(p, "late", controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
			seen = append(seen, key)
			return controller.Result{}, nil
		}), controller.For(objects.Informer()))
		require.NoError(t, p.Err())
		synctest.Wait()
		k.Idle()
		require.Equal(t, []api.Key{{Namespace: "default", Name: "a"}}, seen)
	})
}

// TestTwoPrograms makes two programs in one process.
func TestTwoPrograms(t *testing.T) {
	first, second := offline(t, program.Options{}), offline(t, program.Options{})
	require.NotSame(t, program.Typed(first, configMaps, maps{}).Informer(), program.Typed(second, configMaps, maps{}).Informer())
	require.NotSame(t, first.Registry, second.Registry)
	require.NoError(t, first.Err())
	require.NoError(t, second.Err())
}

// TestConfigWithoutAHost takes the server from a kubeconfig, and keeps what only Config can say.
func TestConfigWithoutAHost(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, kubeconfig.Write(path, apiclient.Config{Host: k.Server.URL()}, ""))
		t.Setenv("KUBECONFIG", path)
		p := must.Get(program.New(program.Options{Name: "mill", Logger: zap.NewNop(), Config: apiclient.Config{
			FieldManager: "baker", UserAgent: "oven", Transport: k.Server.Client().Transport,
		}}))(t)
		client := apiclient.NewTyped[*corev1.ConfigMap](p.Client, configMaps, "default")
		must.Get(client.Create(k.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{}))(t)
		requests := k.Server.Requests()
		last := requests[len(requests)-1]
		require.Equal(t, "baker", last.Query.Get("fieldManager"))
		require.Equal(t, "oven", last.UserAgent)
	})
}

// TestTheFieldManager writes with the client that a program makes. The server knows the writer by the program's name.
func TestTheFieldManager(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		config := apiclient.Config{Host: k.Server.URL(), Transport: k.Server.Client().Transport}
		for _, manager := range []string{"mill", "baker"} {
			config.FieldManager = map[string]string{"baker": "baker"}[manager]
			p := must.Get(program.New(program.Options{Name: "mill", Config: config, Logger: zap.NewNop()}))(t)
			client := apiclient.NewTyped[*corev1.ConfigMap](p.Client, configMaps, "default")
			must.Get(client.Create(k.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{}))(t)
			requests := k.Server.Requests()
			require.Equal(t, manager, requests[len(requests)-1].Query.Get("fieldManager"))
		}
	})
}
