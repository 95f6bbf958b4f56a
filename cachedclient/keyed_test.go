package cachedclient_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	owners "github.com/leatproject/leat/reconcile/owner"
	"github.com/leatproject/leat/testkit"
)

// clusterKey is a key of one of several clusters.
type clusterKey struct {
	Cluster string
	api.Key
}

// mills counts the copies of each ConfigMap. It makes one copy, a Secret that the ConfigMap owns.
type mills struct {
	maps    map[string]*cachedclient.Typed[*corev1.ConfigMap]
	secrets map[string]*cachedclient.Typed[*corev1.Secret]
	log     []string
}

func (m *mills) Reconcile(ctx context.Context, c *corev1.ConfigMap) (controller.Result, error) {
	cluster := c.Namespace
	copied, err := m.secrets[cluster].Get(ctx, api.KeyOf(c))
	m.log = append(m.log, fmt.Sprint(cluster, " ", c.Name, " ", err == nil && copied != nil))
	if err == nil {
		return controller.Result{}, nil
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	if err := owners.SetController(c, configMapResource, s); err != nil {
		return controller.Result{}, err
	}
	_, err = m.secrets[cluster].Create(ctx, s, metav1.CreateOptions{})
	return controller.Result{}, err
}

func (m *mills) Deleted(_ context.Context, key clusterKey) (controller.Result, error) {
	m.log = append(m.log, fmt.Sprint(key.Cluster, " ", key.Name, " deleted"))
	return controller.Result{}, nil
}

var (
	configMapResource = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	secretResource    = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
)

// TestKeysOfSeveralClusters runs one controller for the objects of two clusters, which are namespaces here. Its
// sources, its gate and its reconciler have keys that contain the cluster.
func TestKeysOfSeveralClusters(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		m := &mills{maps: map[string]*cachedclient.Typed[*corev1.ConfigMap]{}, secrets: map[string]*cachedclient.Typed[*corev1.Secret]{}}
		gate := cachedclient.NewKeyedGate[clusterKey](cachedclient.GateOptions{Logger: k.Logger})
		r := controller.KeyedObjects(func(key clusterKey) (*corev1.ConfigMap, bool) {
			return m.maps[key.Cluster].Informer().Cache().Get(key.Key)
		}, m)
		c := controller.New("mills", controller.Gated(r, gate), controller.Options{Logger: k.Logger})
		var runs []func(context.Context) error
		for _, cluster := range []string{"eu", "us"} {
			maps := apiclient.NewTyped[*corev1.ConfigMap](k.Client, configMapResource, cluster)
			m.maps[cluster] = cachedclient.NewTyped(maps, informer.New(maps, informer.Options[*corev1.ConfigMap]{}), cachedclient.Options{})
			secrets := apiclient.NewTyped[*corev1.Secret](k.Client, secretResource, cluster)
			m.secrets[cluster] = cachedclient.NewTyped(secrets, informer.New(secrets, informer.Options[*corev1.Secret]{}), cachedclient.Options{})
			runs = append(runs, m.maps[cluster].Informer().Run, m.secrets[cluster].Informer().Run)
			in := func(key api.Key) clusterKey { return clusterKey{cluster, key} }
			c.Watch(controller.Keyed(controller.For(m.maps[cluster].Informer()), in))
			c.Watch(controller.Keyed(controller.Owns(m.maps[cluster].Informer(), m.secrets[cluster].Informer()), in))
		}
		running := k.Start(func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			for _, run := range append(runs, c.Run) {
				g.Go(func() error { return run(ctx) })
			}
			return g.Wait()
		})
		for _, cluster := range []string{"eu", "us"} {
			testkit.Create(k, configMapResource, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "north"}})
			require.True(t, testkit.Has(k, secretResource, api.Key{Namespace: cluster, Name: "north"}))
		}
		require.Equal(t, "eu north false", m.log[0])
		require.Equal(t, 1, count(m.log, "eu north false"), "the gate waits for the cache")
		require.Equal(t, 1, count(m.log, "us north false"))
		require.NotZero(t, count(m.log, "us north true"))

		m.log = nil
		testkit.Delete(k, secretResource, api.Key{Namespace: "us", Name: "north"})
		require.Equal(t, "us north false", m.log[0], "Owns adds the key of the owner")
		testkit.Delete(k, configMapResource, api.Key{Namespace: "eu", Name: "north"})
		require.True(t, slices.Contains(m.log, "eu north deleted"))
		require.Zero(t, gate.Stats().TimedOut)
		running.Stop()
	})
	require.Panics(t, func() {
		controller.Keyed[*corev1.ConfigMap, string](controller.InformerSource[*corev1.ConfigMap, api.Key]{}, nil)
	})
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}
