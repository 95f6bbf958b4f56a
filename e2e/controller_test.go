package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/workqueue"
)

// widgetReconciler creates as many config maps for each widget as its size says, and writes their number into the
// status. It also deletes the config maps of a deleted widget, because there is no kube-controller-manager.
type widgetReconciler struct {
	widgets    *follower[*widget]
	configMaps *follower[*metav1.PartialObjectMetadata]
	byOwner    *cache.Index[*metav1.PartialObjectMetadata, api.Key]
	write      *apiclient.TypedClient[*corev1.ConfigMap]
	status     *apiclient.TypedClient[*widget]

	mu       sync.Mutex // guards the fields below
	inWork   map[api.Key]bool
	overlaps int
	count    int
}

// ownerKey is the index function of byOwner.
func ownerKey(o *metav1.PartialObjectMetadata) []api.Key {
	if ref := metav1.GetControllerOf(o); ref != nil {
		return []api.Key{{Namespace: o.Namespace, Name: ref.Name}}
	}
	return nil
}

func (r *widgetReconciler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	r.enter(key)
	defer r.leave(key)
	w, found := r.widgets.Cache().Get(key)
	size := 0
	if found {
		size = w.Spec.Size
	}
	ready := 0
	have := map[string]bool{}
	for _, owned := range r.byOwner.ByIndex(key) {
		name := owned.Name
		if found && metav1.IsControlledBy(owned, w) && wanted(key, name, size) {
			have[name] = true
			ready++
			continue
		}
		err := r.write.Delete(ctx, api.KeyOf(owned), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(owned.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return controller.Result{}, err
		}
	}
	if !found {
		return controller.Result{}, nil
	}
	for i := range size {
		if name := childName(key, i); !have[name] {
			if err := r.create(ctx, w, name); err != nil {
				return controller.Result{}, err
			}
		}
	}
	return controller.Result{}, r.updateStatus(ctx, w, ready)
}

func childName(key api.Key, i int) string { return fmt.Sprintf("%s-child-%d", key.Name, i) }

func wanted(key api.Key, name string, size int) bool {
	for i := range size {
		if name == childName(key, i) {
			return true
		}
	}
	return false
}

func (r *widgetReconciler) create(ctx context.Context, w *widget, name string) error {
	yes := true
	_, err := r.write.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "e2e.leat.example/v1", Kind: "Contraption", Name: w.Name, UID: w.UID, Controller: &yes,
		}},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache is late; its event causes another reconcile
	}
	return err
}

func (r *widgetReconciler) updateStatus(ctx context.Context, w *widget, ready int) error {
	if w.Status.Ready == ready {
		return nil
	}
	changed := api.Clone(w)
	changed.Status.Ready = ready
	_, err := r.status.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it is gone, and its deletion causes a reconcile
	}
	return err // includes conflicts: the cache is late, and the retry will succeed
}

func (r *widgetReconciler) enter(key api.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inWork[key] {
		r.overlaps++
	}
	r.inWork[key] = true
	r.count++
}

func (r *widgetReconciler) leave(key api.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inWork, key)
}

// TestReconcileConverges runs a controller with two informers. Widgets are created, resized, deleted and created again
// with the same name, another client deletes config maps, and the API server is killed.
func TestReconcileConverges(t *testing.T) {
	contraptions := customResource(t, "Contraption")
	owners := newCollection(t, contraptions, `{"spec":{"size":2}}`)
	children := &collection{resource: configMaps, namespace: owners.namespace, body: map[string]any{}}
	r := startWidgetController(t, owners, children)

	const widgets = 24
	for i := range widgets {
		must.Get(owners.create(t.Context(), objectName(i), nil))(t)
	}
	r.converge(t, owners, children)

	t.Cleanup(func() { ensureServer(t) })
	for i := range widgets {
		name, key := objectName(i), api.Key{Name: objectName(i)}
		switch i % 6 {
		case 0:
			require.NoError(t, owners.delete(t.Context(), name))
		case 1:
			require.NoError(t, owners.delete(t.Context(), name))
			must.Get(owners.create(t.Context(), name, nil))(t)
		case 2, 3:
			size := i % 6 // with 2, only the version changes
			must.Get(owners.patch(t.Context(), name, map[string]any{"spec": map[string]any{"size": size, "color": "blue"}}))(t)
		case 4:
			must.Get(owners.patch(t.Context(), name, map[string]any{"spec": map[string]any{"size": 0}}))(t)
		case 5:
			require.NoError(t, children.delete(t.Context(), childName(key, 1)))
		}
		if i == widgets/2 {
			require.NoError(t, server.RestartAPIServer(t.Context()))
		}
	}
	r.converge(t, owners, children)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Zero(t, r.overlaps, "one key was reconciled twice at once")
	t.Logf("%d reconciles", r.count)
}

func startWidgetController(t *testing.T, owners, children *collection) *widgetReconciler {
	t.Helper()
	client := newClient(t, adminConfig())
	namespace := owners.namespace
	r := &widgetReconciler{
		widgets: follow(t, "widgets", owners, apiclient.NewTyped[*widget](client, owners.resource, namespace), informer.Options[*widget]{}),
		configMaps: follow(t, "config maps", children, apiclient.NewPartial[*metav1.PartialObjectMetadata](client, configMaps, namespace),
			informer.Options[*metav1.PartialObjectMetadata]{}),
		write:  apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, namespace),
		status: apiclient.NewTyped[*widget](client, owners.resource, namespace),
		inWork: map[api.Key]bool{},
	}
	r.byOwner = informer.AddIndex(r.configMaps.Informer, ownerKey)
	c := controller.New("widgets", r, controller.Options{
		Workers: 4, Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: 10 * time.Millisecond, Max: time.Second}},
	})
	// The status counts too, because the last comparison may have used an older one than the server has.
	c.Watch(controller.For(r.widgets.Informer).WhenAny(predicate.GenerationChanged,
		predicate.Changed(func(w *widget) int { return w.Status.Ready })))
	c.Watch(controller.Owns(r.widgets.Informer, r.configMaps.Informer))

	fixture.Start(t, c.Run)
	return r
}

// converge waits until the server has exactly the wanted config maps of each widget, and a status with their number. It
// does not use leat.
func (r *widgetReconciler) converge(t *testing.T, owners, children *collection) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		want := map[string]bool{}
		for _, raw := range owners.list(t, "", "") {
			var w widget
			if err := json.Unmarshal(raw, &w); err != nil {
				return err
			}
			if w.Status.Ready != w.Spec.Size {
				return fmt.Errorf("%s: %d of %d", w.Name, w.Status.Ready, w.Spec.Size)
			}
			for i := range w.Spec.Size {
				want[childName(api.KeyOf(&w), i)+string(w.UID)] = true
			}
		}
		have := children.list(t, "", "")
		for _, raw := range have {
			var c metav1.PartialObjectMetadata
			if err := json.Unmarshal(raw, &c); err != nil {
				return err
			}
			if ref := metav1.GetControllerOf(&c); ref == nil || !want[c.Name+string(ref.UID)] {
				return fmt.Errorf("%s is too many", c.Name)
			}
		}
		return atLeast(len(want), len(have))
	}))
}
