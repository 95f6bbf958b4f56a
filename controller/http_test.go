package controller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	secrets    = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
)

// sealer keeps a Secret for each ConfigMap, with the same name and the same label "spec"; the ConfigMap owns it.
type sealer struct {
	maps    *informer.Informer[*corev1.ConfigMap]
	sealed  *informer.Informer[*corev1.Secret]
	secrets *apiclient.TypedClient[*corev1.Secret]
}

func (s *sealer) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	original, wanted := s.maps.Cache().Get(key)
	secret, exists := s.sealed.Cache().Get(key)
	switch {
	case !wanted && !exists:
		return controller.Result{}, nil
	case !wanted:
		uid := secret.UID
		err := s.secrets.Delete(ctx, key, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return controller.Result{}, err
	case !exists:
		_, err := s.secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{"spec": original.Labels["spec"]}, OwnerReferences: s.owner(original),
		}}, metav1.CreateOptions{})
		return controller.Result{}, err
	case secret.Labels["spec"] != original.Labels["spec"] || secret.OwnerReferences[0].UID != original.UID:
		secret = api.Clone(secret)
		secret.Labels = map[string]string{"spec": original.Labels["spec"]}
		secret.OwnerReferences = s.owner(original)
		_, err := s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return controller.Result{}, err
	}
	return controller.Result{}, nil
}

func (s *sealer) owner(m *corev1.ConfigMap) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: m.Name, UID: m.UID, Controller: &yes}}
}

// TestConvergenceOverHTTP is TestConvergence with a client, a server, typed objects, and server faults.
func TestConvergenceOverHTTP(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { convergeOverHTTP(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func convergeOverHTTP(t *testing.T, r *rand.Rand) {
	server := testserver.New(testserver.Options{Seed: r.Uint64()})
	start(t, server.Run)
	transport := server.Client().Transport
	t.Cleanup(transport.(interface{ CloseIdleConnections() }).CloseIdleConnections)
	client := must.Get(apiclient.New(apiclient.Config{Host: server.URL(), Transport: transport}))(t)

	s := &sealer{
		maps:    informer.New(apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, ""), informer.Options[*corev1.ConfigMap]{}),
		sealed:  informer.New(apiclient.NewTyped[*corev1.Secret](client, secrets, ""), informer.Options[*corev1.Secret]{}),
		secrets: apiclient.NewTyped[*corev1.Secret](client, secrets, ""),
	}
	start(t, s.maps.Run)
	start(t, s.sealed.Run)
	ctl := controller.New("sealer", s, controller.Options{Workers: 3, ReconcileTimeout: 10 * time.Second})
	ctl.Watch(controller.For(s.maps).When(predicate.ResourceVersionChanged))
	ctl.Watch(controller.Owns(s.maps, s.sealed))
	start(t, ctl.Run)
	<-ctl.Synced()

	for range 150 {
		disturb(t, server, s, r)
		pass(time.Duration(r.IntN(300)) * time.Millisecond)
	}
	server.Heal()
	pass(time.Hour)
	require.Equal(t, specsOf(t, server, configMaps), specsOf(t, server, secrets))
	require.Positive(t, ctl.Stats().Succeeded)
}

// disturb changes an original, damages or deletes a secret, or makes the server misbehave for a while.
func disturb(t *testing.T, server *testserver.Server, s *sealer, r *rand.Rand) {
	key := keyOf(fmt.Sprint("o", r.IntN(8)))
	edit := func(resource api.Resource) error {
		_, err := server.Edit(resource, key, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"spec": fmt.Sprint(r.IntN(5))})
		})
		return err
	}
	var err error
	switch r.IntN(12) {
	case 0, 1, 2:
		_, err = server.Create(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	case 3, 4:
		err = edit(configMaps)
	case 5:
		err = server.Delete(configMaps, key)
	case 6:
		err = edit(secrets)
	case 7:
		// A secret that no watch delivered may disappear without an event too.
		live, _ := server.Get(secrets, key)
		if seen, exists := s.sealed.Cache().Get(key); exists && live != nil && seen.ResourceVersion == live.GetResourceVersion() {
			err = server.Delete(secrets, key)
		}
	case 8:
		server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: r.IntN(2) == 0}})
	case 9:
		server.Inject(faults.Fault{Effect: faults.Compact{}})
		server.Inject(faults.Fault{Effect: faults.Disconnect{}})
	case 10:
		server.Inject(faults.Fault{Times: 5, Effect: faults.Fail{Code: http.StatusInternalServerError}})
	case 11:
		outage := server.Inject(faults.Fault{Effect: faults.Outage{}})
		time.AfterFunc(time.Duration(r.IntN(2000))*time.Millisecond, outage.Remove)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

func specsOf(t *testing.T, server *testserver.Server, resource api.Resource) map[string]string {
	t.Helper()
	objects := must.Get(server.List(resource, ""))(t)
	specs := map[string]string{}
	for _, object := range objects {
		specs[object.GetName()] = object.GetLabels()["spec"]
	}
	return specs
}

// BenchmarkReconcileOverHTTP is a small reconcile: it makes one request, which the test server answers in memory.
// Compare the costs of a controller with it.
func BenchmarkReconcileOverHTTP(b *testing.B) {
	server := testserver.New(testserver.Options{})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(b, <-ended)
	}()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(b, err)
	maps := apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, "")
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}, metav1.CreateOptions{})
	require.NoError(b, err)
	r := controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
		_, err := maps.Get(ctx, key, metav1.GetOptions{})
		return controller.Result{}, err
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Reconcile(ctx, keyOf("a")); err != nil {
			b.Fatal(err)
		}
	}
}
