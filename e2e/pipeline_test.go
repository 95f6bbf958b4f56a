package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

const widgetBody = `{"spec":{"size":3,"color":"red","more":{"deep":[1,2.5,"three"]}}}`

// TestPipeline follows collections with each kind of type that leat can decode, over each kind of stream, at the same
// time.
func TestPipeline(t *testing.T) {
	client := newClient(t, adminConfig())
	json := adminConfig()
	json.DisableProtobuf = true
	jsonClient := newClient(t, json)
	widgets := customResource(t, "Widget")

	t.Run("of", func(t *testing.T) {
		t.Run("typed pods", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exercise(t, c, apiclient.NewTyped[*corev1.Pod](client, pods, c.namespace))
		})
		t.Run("typed pods in JSON", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exercise(t, c, apiclient.NewTyped[*corev1.Pod](jsonClient, pods, c.namespace))
		})
		t.Run("typed deployments", func(t *testing.T) {
			c := newCollection(t, deployments, deployBody)
			exercise(t, c, apiclient.NewTyped[*appsv1.Deployment](client, deployments, c.namespace))
		})
		t.Run("pods as metadata", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exercise(t, c, apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, c.namespace))
		})
		t.Run("unstructured pods", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exercise(t, c, apiclient.NewTyped[*unstructured.Unstructured](client, pods, c.namespace))
		})
		t.Run("unstructured custom resources", func(t *testing.T) {
			c := newCollection(t, widgets, widgetBody)
			exercise(t, c, apiclient.NewTyped[*unstructured.Unstructured](client, widgets, c.namespace))
		})
		t.Run("custom resources as a struct", func(t *testing.T) {
			c := newCollection(t, widgets, widgetBody)
			exercise(t, c, apiclient.NewTyped[*widget](client, widgets, c.namespace))
		})
		t.Run("custom resources as a few fields", func(t *testing.T) {
			c := newCollection(t, widgets, widgetBody)
			exercise(t, c, apiclient.NewPartial[*sighting](client, widgets, c.namespace))
		})
	})
}

// exercise follows a changing collection with a WatchList and with a list in pages, and registers a late handler.
func exercise[T api.Object](t *testing.T, c *collection, lw api.ListerWatcher[T]) {
	t.Parallel()
	const objects = 48
	c.fill(t, objects, noLabels)
	streamed := follow(t, "streamed", c, lw, informer.Options[T]{})
	paged := follow(t, "paged", c, lw, informer.Options[T]{Tuning: reflector.Tuning{NoWatchList: true}})
	for _, f := range []*follower[T]{streamed, paged} {
		f.awaitSynced(t)
		<-f.handler.Synced()
		require.Equal(t, objects, f.mirror.count(api.Added), f.name)
	}

	churning := &churner{collection: c, objects: objects, seed: 1, label: noLabels}
	require.NoError(t, churning.run(t.Context(), 100))
	late := newMirror[T](true)
	streamed.join(t, late)
	require.NoError(t, churning.run(t.Context(), 100))

	streamed.agree(t)
	late.agree(t, "late handler", streamed.plain(t))
	paged.agree(t)

	s, p := streamed.Status().Reflector.Counters, paged.Status().Reflector.Counters
	require.Equal(t, 1, s.WatchLists, "the server accepted no WatchList: %v", streamed.Status())
	require.Zero(t, s.Pages)
	require.Zero(t, p.WatchLists)
	require.Equal(t, 1, p.Pages)
	require.Equal(t, 1, p.Lists)
	require.GreaterOrEqual(t, p.Events, 100)
	for _, f := range []*follower[T]{streamed, paged} {
		require.Empty(t, f.errorsSince(0), f.name)
	}
}
