package after

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	stop := mills.Serve(t, config, types, webhook.Options{
		Host:    env.WebhookInstallOptions.LocalServingHost,
		Port:    env.WebhookInstallOptions.LocalServingPort,
		CertDir: env.WebhookInstallOptions.LocalServingCertDir,
	})
	defer stop()
	c, err := client.New(config, client.Options{Scheme: types})
	require.NoError(t, err)
	mills.TestWebhooks(t, c)

	user, err := env.AddUser(envtest.User{Name: "ann", Groups: []string{"millers"}}, &rest.Config{QPS: 100})
	require.NoError(t, err)
	testUser(t, user)
	require.NoError(t, mills.ListPods(t, mills.FromFile(t, env.KubeConfig)))
}

// testUser tests that a user may not list pods.
func testUser(t *testing.T, user *envtest.AuthenticatedUser) {
	text, err := user.KubeConfig()
	require.NoError(t, err)
	for _, config := range []*rest.Config{user.Config(), mills.FromFile(t, text)} {
		err := mills.ListPods(t, config)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, `User "ann" cannot list resource "pods"`)
	}
}
