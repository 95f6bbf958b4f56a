package mills

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Serve runs a manager with the webhooks. The function that it returns stops the manager.
func Serve(t *testing.T, config *rest.Config, types *runtime.Scheme, o webhook.Options) func() {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:        types,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(o),
	})
	require.NoError(t, err)
	require.NoError(t, ctrl.NewWebhookManagedBy(manager, &Mill{}).
		WithDefaulter(Rules{}).WithValidator(Rules{}).Complete())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	<-manager.Elected() // webhooks start before
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// TestWebhooks tests defaults, validation and conversion.
func TestWebhooks(t *testing.T, c client.Client) {
	mill := &Mill{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	require.NoError(t, c.Create(t.Context(), mill))
	require.EqualValues(t, 4, mill.Sails)
	old := &OldMill{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(mill), old))
	require.Equal(t, "4", old.Sails)
	broken := &Mill{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, Sails: 1}
	require.EqualError(t, c.Create(t.Context(), broken),
		`admission webhook "vmill-v1.kb.io" denied the request: a mill has more than one sail`)
}

// ListPods lists the pods of a namespace with a client of its own.
func ListPods(t *testing.T, config *rest.Config) error {
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c.List(t.Context(), &corev1.PodList{}, client.InNamespace("default"))
}

// FromFile returns the configuration of a kubeconfig.
func FromFile(t *testing.T, kubeconfig []byte) *rest.Config {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	return config
}
