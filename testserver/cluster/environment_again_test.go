package cluster_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

// TestOrdersOfStartAndStop calls Start and Stop in every order, of which each pair occurs.
func TestOrdersOfStartAndStop(t *testing.T) {
	before := runtime.NumGoroutine()
	e := &cluster.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{wheels("v1", true)}}
	refused := func(err error, says string) {
		t.Helper()
		require.EqualError(t, err, "cluster: the environment "+says)
	}
	start := func() error {
		_, err := e.Start()
		return err
	}
	user := func() error {
		_, err := e.AddUser(cluster.User{Name: "ann"}, nil)
		return err
	}
	fail := func() {
		t.Helper()
		e.WebhookInstallOptions.Paths = []string{"missing"}
		require.ErrorContains(t, start(), "cluster: read webhook configurations: ")
		e.WebhookInstallOptions.Paths = nil
	}
	require.NoError(t, e.Stop())
	refused(user(), "was not started")
	fail()
	require.NoError(t, e.Stop())
	refused(user(), "was not started")
	for range 3 {
		require.NoError(t, start())
		refused(start(), "is running; call Stop before another Start")
		require.NoError(t, user())
		requireNew(t, e.Config)
		require.NoError(t, e.Stop())
		refused(user(), "was stopped")
		require.NoError(t, e.Stop())
		fail()
		require.NoError(t, e.Stop())
		refused(user(), "was stopped")
	}
	ended := func() bool { return runtime.NumGoroutine() <= before+1 } // Eventually calls it on a goroutine of its own
	require.Eventually(t, ended, time.Minute, time.Millisecond, "goroutines are left")
}

// requireNew requires that a cluster has nothing of an earlier one, and creates something.
func requireNew(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	connections, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer connections.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, connections)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Get(ctx, "earlier", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "earlier"}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestStartAgainBeginsWithTheFieldsOfTheTest requires that nothing of an earlier Start decides about the next one.
func TestStartAgainBeginsWithTheFieldsOfTheTest(t *testing.T) {
	e := &cluster.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{wheels("v1", true)},
		WebhookInstallOptions: cluster.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{hook("suite.leat.example")},
		},
	}
	o := &e.WebhookInstallOptions
	must.Get(e.Start())(t)
	config, first, directory, url := e.Config, e.Cluster, o.LocalServingCertDir, *o.ValidatingWebhooks[0].Webhooks[0].ClientConfig.URL
	require.NoError(t, e.Stop())
	require.Same(t, first, e.Cluster, "a test can read the state after Stop")
	require.NoDirExists(t, directory)

	e.CRDs = nil
	o.LocalServingHost = "localhost"
	must.Get(e.Start())(t)
	require.NotSame(t, config, e.Config)
	require.NotSame(t, first, e.Cluster)
	require.Empty(t, e.CRDs, "the test has changed the field")
	require.NotEqual(t, directory, o.LocalServingCertDir)
	must.Get(os.Stat(o.LocalServingCertDir))(t)
	again := o.ValidatingWebhooks[0].Webhooks[0].ClientConfig
	require.NotEqual(t, url, *again.URL)
	require.Contains(t, *again.URL, "https://localhost:")
	require.Equal(t, o.LocalServingCAData, again.CABundle)
	require.NoError(t, e.Stop())
}

// TestExistingClusterAgain uses an existing cluster twice.
func TestExistingClusterAgain(t *testing.T) {
	e := newExisting(t)
	env := e.using()
	env.CRDInstallOptions.CleanUpAfterUse = true
	for range 2 {
		config := must.Get(env.Start())(t)
		require.Same(t, e.env.Config, config)
		e.requireDefinition(true)
		require.NoError(t, env.Stop())
		require.NoError(t, env.Stop())
		e.requireDefinition(false)
	}
}
