package cluster_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/faults"
)

const millCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mills.leat.example}
spec:
  group: leat.example
  scope: Namespaced
  names: {plural: mills, singular: mill, kind: Mill, listKind: MillList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mills.yaml"), []byte(millCRD), 0o600))
	e := &cluster.Environment{CRDDirectoryPaths: []string{dir, filepath.Join(dir, "missing")}}
	e.CRDInstallOptions.Paths = []string{filepath.Join(dir, "mills.yaml")} // the same definition again
	require.NoError(t, e.Stop())
	_, err := e.AddUser(cluster.User{Name: "ann"}, nil)
	require.EqualError(t, err, "cluster: the environment was not started")
	config := must.Get(e.Start())(t)
	require.Same(t, config, e.Config)
	require.Len(t, e.CRDs, 1)
	_, err = e.Start()
	require.EqualError(t, err, "cluster: the environment is running; call Stop before another Start")

	client := must.Get(apiextensions.NewForConfig(config))(t)
	mills := must.Get(client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "mills.leat.example", metav1.GetOptions{}))(t)
	require.Contains(t, established(mills), apiextensionsv1.ConditionTrue)

	fromFile := must.Get(clientcmd.RESTConfigFromKubeConfig(e.KubeConfig))(t)
	must.Get(kubernetes.NewForConfigOrDie(fromFile).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}))(t)

	require.NoError(t, e.Stop())
	require.NoError(t, e.Stop())
	_, err = e.AddUser(cluster.User{Name: "ann"}, nil)
	require.EqualError(t, err, "cluster: the environment was stopped")
	_, err = kubernetes.NewForConfigOrDie(rest.CopyConfig(config)).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.ErrorContains(t, err, "connection refused")
}

// established returns the values of the condition Established.
func established(crd *apiextensionsv1.CustomResourceDefinition) (out []apiextensionsv1.ConditionStatus) {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			out = append(out, c.Status)
		}
	}
	return out
}

// TestWrongEnvironments checks that each error names its cause, and that a failed Start leaves nothing.
func TestWrongEnvironments(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	busy := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	hooks := func(paths ...string) *cluster.Environment {
		return &cluster.Environment{WebhookInstallOptions: cluster.WebhookInstallOptions{Paths: paths}}
	}
	mills := file("mills.yaml", millCRD)
	wrong := file("wrong.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: 7\n")
	old := file("old.yaml", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n")
	empty := file("empty.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n")
	text := file("text.yaml", "kind: [\n")
	oldHook := file("oldhook.yaml", "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingWebhookConfiguration\n")
	incomplete := file("incomplete.yaml", `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: mills}
webhooks: [{name: mills.leat.example, clientConfig: {service: {name: a, namespace: b}}, admissionReviewVersions: [v1]}]
`)
	for _, tc := range []struct {
		says string
		env  *cluster.Environment
	}{
		{
			"cluster: read definitions: stat missing: no such file or directory",
			&cluster.Environment{CRDDirectoryPaths: []string{"missing"}, ErrorIfCRDPathMissing: true},
		},
		{"cluster: read definitions: stat missing: no such file or directory", &cluster.Environment{
			CRDInstallOptions: cluster.CRDInstallOptions{Paths: []string{"missing"}, ErrorIfPathMissing: true},
		}},
		{"cluster: read definitions in " + wrong, &cluster.Environment{CRDDirectoryPaths: []string{wrong}}},
		{"cluster: read definitions in " + old + ": the apiVersion of a CustomResourceDefinition must be " +
			`apiextensions.k8s.io/v1, and not "apiextensions.k8s.io/v1beta1"`, &cluster.Environment{CRDDirectoryPaths: []string{old}}},
		{"cluster: create the CustomResourceDefinition x: ", &cluster.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{
			{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		}}},
		{
			"cluster: create the CustomResourceDefinition x of " + empty + ": ",
			&cluster.Environment{CRDDirectoryPaths: []string{mills, empty}},
		},
		{"cluster: read webhook configurations: stat missing: no such file or directory", hooks("missing")},
		{"cluster: read webhook configurations in " + text, hooks(text)},
		{"cluster: read webhook configurations in " + oldHook + ": the apiVersion of a MutatingWebhookConfiguration must be ", hooks(oldHook)},
		{"cluster: " + mills + " has no MutatingWebhookConfiguration and no ValidatingWebhookConfiguration", hooks(mills)},
		{"cluster: create the ValidatingWebhookConfiguration mills of " + incomplete +
			`: ValidatingWebhookConfiguration.admissionregistration.k8s.io "mills" is invalid: webhooks[0].sideEffects`, hooks(incomplete)},
		{
			fmt.Sprintf("cluster: WebhookInstallOptions.LocalServingPort %d: listen tcp 127.0.0.1:%d: bind: address already in use", port, port),
			&cluster.Environment{WebhookInstallOptions: cluster.WebhookInstallOptions{LocalServingPort: port}},
		},
		{
			"cluster: WebhookInstallOptions.LocalServingHost nowhere.invalid: ",
			&cluster.Environment{WebhookInstallOptions: cluster.WebhookInstallOptions{LocalServingHost: "nowhere.invalid"}},
		},
		{
			"cluster: WebhookInstallOptions.LocalServingCertDir needs LocalServingCAData",
			&cluster.Environment{WebhookInstallOptions: cluster.WebhookInstallOptions{LocalServingCertDir: dir}},
		},
		{"cluster: admission: disable", &cluster.Environment{Options: cluster.Options{DisableAdmissionPlugins: []string{"none"}}}},
	} {
		before := *tc.env
		_, err := tc.env.Start()
		require.ErrorContains(t, err, tc.says)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, before, *tc.env)
		require.NoError(t, tc.env.Stop(), "as in the AfterSuite of a suite whose BeforeSuite failed")
		left := must.Get(os.ReadDir(temporary))(t)
		require.Empty(t, left, tc.says)
	}
}

func ExampleEnvironment() {
	env := &cluster.Environment{Options: cluster.Options{Server: testserver.Options{Seed: 1}}}
	config, err := env.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer env.Stop()
	client := kubernetes.NewForConfigOrDie(config)

	env.Cluster.Server.Inject(faults.Fault{Times: 1, Match: faults.Match{Verbs: []string{"create"}}, Effect: faults.Fail{Code: 403, Message: "not today"}})
	flags := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flags"}}
	for range 2 {
		_, err = client.CoreV1().ConfigMaps("default").Create(context.Background(), flags, metav1.CreateOptions{})
		fmt.Println(err)
	}
	// Output:
	// not today
	// <nil>
}
