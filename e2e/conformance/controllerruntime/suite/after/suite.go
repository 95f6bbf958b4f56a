package after

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	envtest "github.com/leatproject/leat/testserver/cluster"

	"github.com/leatproject/leat/e2e/conformance/controllerruntime/suite/mills"
)

// Run runs the tests of a project: its definitions, its webhooks, and a user with few rights. folder is the directory
// of its manifests, and binaries that of the programs that envtest starts.
func Run(t *testing.T, folder, binaries string) {
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	require.NoError(t, mills.AddToScheme(types))
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{folder + "/crd"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{folder + "/webhook"}},
		Scheme:                types,
		BinaryAssetsDirectory: binaries,
	}
	config, err := env.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, env.Stop()) }()
	stop := serve(t, config, types, &env.WebhookInstallOptions)
	defer stop()
	c, err := client.New(config, client.Options{Scheme: types})
	require.NoError(t, err)
	testWebhooks(t, c)

	user, err := env.AddUser(envtest.User{Name: "ann", Groups: []string{"millers"}}, &rest.Config{QPS: 100})
	require.NoError(t, err)
	testUser(t, user)
	require.NoError(t, listPods(t, fromFile(t, env.KubeConfig)))
}

// serve runs a manager with the webhooks. The function that it returns stops the manager.
func serve(t *testing.T, config *rest.Config, types *runtime.Scheme, o *envtest.WebhookInstallOptions) func() {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  types,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir,
		}),
	})
	require.NoError(t, err)
	require.NoError(t, ctrl.NewWebhookManagedBy(manager, &mills.Mill{}).
		WithDefaulter(mills.Rules{}).WithValidator(mills.Rules{}).Complete())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	<-manager.Elected() // webhooks start before
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// testWebhooks tests defaults, validation and conversion.
func testWebhooks(t *testing.T, c client.Client) {
	mill := &mills.Mill{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	require.NoError(t, c.Create(t.Context(), mill))
	require.EqualValues(t, 4, mill.Sails)
	old := &mills.OldMill{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(mill), old))
	require.Equal(t, "4", old.Sails)
	broken := &mills.Mill{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, Sails: 1}
	require.EqualError(t, c.Create(t.Context(), broken),
		`admission webhook "vmill-v1.kb.io" denied the request: a mill has more than one sail`)
}

// testUser tests that a user may not list pods.
func testUser(t *testing.T, user *envtest.AuthenticatedUser) {
	text, err := user.KubeConfig()
	require.NoError(t, err)
	for _, config := range []*rest.Config{user.Config(), fromFile(t, text)} {
		err := listPods(t, config)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, `User "ann" cannot list resource "pods"`)
	}
}

func listPods(t *testing.T, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c.List(t.Context(), &corev1.PodList{}, client.InNamespace("default"))
}

// fromFile returns the configuration of a kubeconfig.
func fromFile(t *testing.T, kubeconfig []byte) *rest.Config {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	return config
}
