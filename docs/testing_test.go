package docs_test

import (
	"context"
	"testing"
	"testing/synctest"
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
	"github.com/leatproject/leat/testserver"
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
			err = nil // somebody else was faster
		}
		return controller.Result{}, err
	}
	intent := map[string]any{"data": source.Data}
	_, err := m.copies.Apply(ctx, name, intent, apiclient.ApplyOptions{ApplyOptions: metav1.ApplyOptions{FieldManager: "mirror"}})
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

// withMirror runs the program against a server in memory, on fake time, and ends both after the test.
func withMirror(t *testing.T, test func(*testing.T, *testserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(testserver.Options{})
		client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
		require.NoError(t, err)
		serving, stopServer := context.WithCancel(context.Background())
		running, stopProgram := context.WithCancel(context.Background())
		served, ended := make(chan error, 1), make(chan error, 1)
		go func() { served <- server.Run(serving) }()
		go func() { ended <- runMirror(running, client) }()
		synctest.Wait() // until every goroutine waits for something

		test(t, server)

		stopProgram()
		require.NoError(t, <-ended)
		stopServer()
		require.NoError(t, <-served)
	})
}

func TestMirrorCopies(t *testing.T) {
	withMirror(t, func(t *testing.T, server *testserver.Server) {
		create(t, server, "blue")
		synctest.Wait()
		require.Equal(t, []string{"blue"}, copies(t, server))
	})
}

func TestMirrorSurvivesALostWatchEvent(t *testing.T) {
	withMirror(t, func(t *testing.T, server *testserver.Server) {
		create(t, server, "blue")
		synctest.Wait()
		require.Equal(t, []string{"blue"}, copies(t, server))

		// While the network is broken, the ConfigMap is deleted, and the server forgets that it was there.
		outage := server.Inject(testserver.Fault{Effect: testserver.Outage{}})
		require.NoError(t, server.Delete(configMaps, api.Key{Namespace: "source", Name: "blue"}))
		expired := server.Inject(testserver.Fault{Effect: testserver.Compact{}})
		outage.Remove()
		<-time.After(2 * time.Minute) // fake time: longer than every pause between two attempts
		synctest.Wait()

		require.Positive(t, expired.Seen(), "the program was told 410, so no watch brought the DELETED event")
		require.Empty(t, copies(t, server), "the list that followed showed that the ConfigMap is gone")
	})
}

func TestMirrorRetriesAFailedWrite(t *testing.T) {
	withMirror(t, func(t *testing.T, server *testserver.Server) {
		failing := server.Inject(testserver.Fault{
			Match: testserver.Match{Verbs: []string{"patch"}}, Times: 2, Effect: testserver.Fail{Code: 500},
		})
		create(t, server, "blue")
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, 2, failing.Seen())
		require.Equal(t, []string{"blue"}, copies(t, server))
	})
}

func create(t *testing.T, server *testserver.Server, name string) {
	t.Helper()
	_, err := server.Create(configMaps, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "source", Name: name}, Data: map[string]string{"colour": name},
	})
	require.NoError(t, err)
}

func copies(t *testing.T, server *testserver.Server) []string {
	t.Helper()
	list, err := server.List(configMaps, "target")
	require.NoError(t, err)
	var names []string
	for _, object := range list {
		names = append(names, object.GetName())
	}
	return names
}
