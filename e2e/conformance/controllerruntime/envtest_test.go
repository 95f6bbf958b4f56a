package controllerruntime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/testserver/cluster"
)

// environment is what tests use of envtest.Environment and of cluster.Environment.
type environment interface {
	Start() (*rest.Config, error)
	Stop() error
}

// The lines of docs/envtest.md, before and after.
const (
	before = `env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd"}, ErrorIfCRDPathMissing: true} // before`
	after  = `env := &cluster.Environment{CRDDirectoryPaths: []string{"config/crd"}, ErrorIfCRDPathMissing: true} // after`
)

func withEnvtest() environment {
	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd"}, ErrorIfCRDPathMissing: true} // before
	return env
}

func withCluster() environment {
	env := &cluster.Environment{CRDDirectoryPaths: []string{"config/crd"}, ErrorIfCRDPathMissing: true} // after
	return env
}

// TestReplaceEnvtest is the test of a user, with a cluster.Environment or, with -server=real, an envtest.Environment.
func TestReplaceEnvtest(t *testing.T) {
	page, err := os.ReadFile("../../../docs/envtest.md")
	require.NoError(t, err)
	require.Contains(t, string(page), before)
	require.Contains(t, string(page), after)
	binaries, err := harness.Binaries()
	require.NoError(t, err)
	t.Setenv("KUBEBUILDER_ASSETS", binaries)
	t.Setenv("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "3m")

	t.Chdir(t.TempDir())
	widget := definition()
	widget.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
	text, err := yaml.Marshal(widget)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll("config/crd", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join("config/crd", "widgets.yaml"), text, 0o600))
	env := withCluster()
	if harness.IsReal() {
		env = withEnvtest()
	}
	config, err := env.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, env.Stop()) }()

	c, err := client.New(config, client.Options{Scheme: types})
	require.NoError(t, err)
	w := &Widget{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "default"}}
	require.NoError(t, c.Create(t.Context(), w))
	read := &Widget{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), read))
	require.Equal(t, w.UID, read.UID)
}
