package cluster_test

import (
	"context"
	"fmt"
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
	_, err := e.KubeConfig()
	require.EqualError(t, err, "cluster: the environment was not started")
	require.EqualError(t, e.Stop(), "cluster: the environment was not started")
	config, err := e.Start()
	require.NoError(t, err)
	require.Same(t, config, e.Config)
	_, err = e.Start()
	require.EqualError(t, err, "cluster: the environment was already started")

	client, err := apiextensions.NewForConfig(config)
	require.NoError(t, err)
	mills, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "mills.leat.example", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, established(mills), apiextensionsv1.ConditionTrue)

	text, err := e.KubeConfig()
	require.NoError(t, err)
	fromFile, err := clientcmd.RESTConfigFromKubeConfig(text)
	require.NoError(t, err)
	_, err = kubernetes.NewForConfigOrDie(fromFile).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)

	require.NoError(t, e.Stop())
	require.NoError(t, e.Stop())
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

func TestWrongEnvironments(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte("kind: CustomResourceDefinition\nspec: 7\n"), 0o600))
	for says, e := range map[string]*cluster.Environment{
		"no such file or directory":      {CRDDirectoryPaths: []string{"missing"}, ErrorIfCRDPathMissing: true},
		filepath.Join(dir, "wrong.yaml"): {CRDDirectoryPaths: []string{dir}},
		"cluster: create the definition x": {CRDs: []*apiextensionsv1.CustomResourceDefinition{
			{TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		}},
	} {
		_, err := e.Start()
		require.ErrorContains(t, err, says)
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
