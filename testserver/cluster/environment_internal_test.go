package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestControllersOfEnvironment requires that an environment has no controllers unless a test wants them. The namespace
// controller then deletes a namespace, which stays in envtest.
func TestControllersOfEnvironment(t *testing.T) {
	nodes := &Nodes{Count: 1}
	for _, on := range []bool{false, true} {
		e := &Environment{Controllers: on, Options: Options{Behaviour: Behaviour{Nodes: nodes, NoDisruptionBudgets: true}}}
		config, err := e.Start()
		require.NoError(t, err)
		have := e.Cluster.options.Behaviour
		client := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()
		if on {
			require.Equal(t, Behaviour{Nodes: nodes, NoDisruptionBudgets: true}, have)
			require.NoError(t, client.Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{}))
			require.Eventually(t, func() bool {
				_, err := client.Get(t.Context(), "kube-node-lease", metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			}, time.Minute, time.Millisecond)
		} else {
			require.Len(t, have.parts(false, nil, nil), 1, "the nodes alone")
			require.Same(t, nodes, have.Nodes)
		}
		require.NoError(t, e.Stop())
	}
}
