package docs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/testkit"
)

var configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

// mirror keeps a copy of each ConfigMap of namespace source in namespace target.
type mirror struct {
	sources *informer.Informer[*corev1.ConfigMap]
	copies  *apiclient.TypedClient[*corev1.ConfigMap]
}

func (m mirror) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	name := api.Key{Namespace: "target", Name: key.Name}
	source, ok := m.sources.Cache().Get(key)
	if !ok {
		err := m.copies.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil // another client has deleted it
		}
		return controller.Result{}, err
	}
	intent := map[string]any{"data": source.Data}
	_, err := m.copies.Apply(ctx, name, intent, apiclient.ApplyOptions{FieldManager: "mirror"})
	return controller.Result{}, err
}

func runMirror(ctx context.Context, client *apiclient.Client) error {
	sources := informer.New(apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, "source"), informer.Options[*corev1.ConfigMap]{})
	c := controller.New("mirror", mirror{sources, apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, "target")}, controller.Options{})
	c.Watch(controller.For(sources))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return sources.Run(ctx) })
	g.Go(func() error { return c.Run(ctx) })
	return g.Wait()
}

// withMirror starts the program against a server in memory, on fake time.
func withMirror(t *testing.T, test func(*testkit.Kit)) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Start(func(ctx context.Context) error { return runMirror(ctx, k.Client) })
		test(k)
	})
}

func TestMirrorCopies(t *testing.T) {
	withMirror(t, func(k *testkit.Kit) {
		create(k, "blue")
		require.Equal(t, []string{"blue"}, copies(k))
	})
}

func TestMirrorSurvivesALostWatchEvent(t *testing.T) {
	withMirror(t, func(k *testkit.Kit) {
		create(k, "blue")
		require.Equal(t, []string{"blue"}, copies(k))

		k.LoseEvents(func() {
			testkit.Delete(k, configMaps, api.Key{Namespace: "source", Name: "blue"})
		})
		require.Empty(t, copies(k), "the list that followed did not contain the ConfigMap")
	})
}

func TestMirrorRetriesAFailedWrite(t *testing.T) {
	withMirror(t, func(k *testkit.Kit) {
		k.Fail("patch", "configmaps", 2, 500)
		create(k, "blue")
		require.Empty(t, copies(k))
		k.Pass(time.Minute)
		require.Equal(t, []string{"blue"}, copies(k))
	})
}

func create(k *testkit.Kit, name string) {
	testkit.Create(k, configMaps, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "source", Name: name}, Data: map[string]string{"colour": name},
	})
}

func copies(k *testkit.Kit) (names []string) {
	for _, c := range testkit.List[*corev1.ConfigMap](k, configMaps, "target") {
		names = append(names, c.Name)
	}
	return names
}
