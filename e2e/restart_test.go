package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
)

// TestRestartBetweenTwoWrites stops a controller that copies objects, changes the originals, and starts the controller
// again without any state. It must repair each difference and do nothing else.
func TestRestartBetweenTwoWrites(t *testing.T) {
	originals := newCollection(t, configMaps, `{"data":{"a":"b"}}`)
	for _, name := range []string{"kept", "changed", "deleted", "recreated", "bereft"} {
		must.Get(originals.create(t.Context(), name, labelSet{originalLabel: "yes"}))(t)
	}
	c := newCopier(t, originals)
	stop := c.start(t)
	c.converge(t, 5)
	stop()
	require.ElementsMatch(t, []string{
		"create kept-copy", "create changed-copy", "create deleted-copy", "create recreated-copy", "create bereft-copy",
	}, c.takeWrites())

	must.Get(originals.create(t.Context(), "new", labelSet{originalLabel: "yes"}))(t)
	require.NoError(t, originals.delete(t.Context(), "deleted"))
	must.Get(originals.patch(t.Context(), "changed", map[string]any{"data": labelSet{"a": "c"}}))(t)
	require.NoError(t, originals.delete(t.Context(), "recreated"))
	must.Get(originals.create(t.Context(), "recreated", labelSet{originalLabel: "yes"}))(t)
	require.NoError(t, originals.delete(t.Context(), "bereft-copy"))

	stop = c.start(t)
	c.converge(t, 5)
	stop()
	require.ElementsMatch(t, []string{
		"create new-copy", "delete deleted-copy", "update changed-copy", "update recreated-copy", "create bereft-copy",
	}, c.takeWrites())

	c.start(t)()
	require.Empty(t, c.takeWrites(), "there was nothing to do")
}

const (
	originalLabel = "original"
	copyLabel     = "copy"
	copiedUID     = "e2e.leat.example/uid" // an annotation with the UID of the original
)

// copier reconciles config maps. Each original has a copy, whose annotation names the original.
type copier struct {
	resource  *apiclient.TypedClient[*corev1.ConfigMap]
	originals *collection

	from, to *informer.Informer[*corev1.ConfigMap] // of this run

	mu     sync.Mutex // guards the fields below
	writes []string
}

func newCopier(t *testing.T, originals *collection) *copier {
	t.Helper()
	return &copier{resource: apiclient.NewTyped[*corev1.ConfigMap](newClient(t, adminConfig()), configMaps, originals.namespace), originals: originals}
}

// start runs the controller. When it has reconciled everything, start returns a function that stops it.
func (c *copier) start(t *testing.T) (stop func()) {
	t.Helper()
	c.from = informer.New(c.resource, informer.Options[*corev1.ConfigMap]{Selector: api.Selector{Labels: originalLabel}})
	c.to = informer.New(c.resource, informer.Options[*corev1.ConfigMap]{Selector: api.Selector{Labels: copyLabel}})
	ctl := controller.New("copier", c, controller.Options{Workers: 2})
	ctl.Watch(controller.For(c.from))
	ctl.Watch(controller.Map(c.to, func(m *corev1.ConfigMap) []api.Key {
		return []api.Key{{Namespace: m.Namespace, Name: m.Labels[copyLabel]}}
	}))
	m := must.Get(manager.New(manager.Options{}))(t)
	require.NoError(t, m.Add(c.from, c.to, ctl))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	require.NoError(t, eventually(t.Context(), func() error {
		s := ctl.Stats()
		if left := s.Queue.Depth + s.Queue.Processing + s.Queue.Delayed; !s.Synced || left > 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	}))
	return stop
}

func (c *copier) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	original, wanted := c.from.Cache().Get(key)
	name := api.Key{Namespace: key.Namespace, Name: key.Name + "-copy"}
	have, found := c.to.Cache().Get(name)
	switch {
	case !wanted && found:
		err := c.resource.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
		return controller.Result{}, c.note("delete", name, err)
	case wanted && !found:
		_, err := c.resource.Create(ctx, copyOf(original, name), metav1.CreateOptions{})
		return controller.Result{}, c.note("create", name, err)
	case wanted && (have.Annotations[copiedUID] != string(original.UID) || have.Data["a"] != original.Data["a"]):
		changed := copyOf(original, name)
		changed.ResourceVersion = have.ResourceVersion
		_, err := c.resource.Update(ctx, changed, metav1.UpdateOptions{})
		return controller.Result{}, c.note("update", name, err)
	}
	return controller.Result{}, nil
}

func copyOf(original *corev1.ConfigMap, name api.Key) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name,
			Labels: labelSet{copyLabel: original.Name}, Annotations: labelSet{copiedUID: string(original.UID)},
		},
		Data: original.Data,
	}
}

// note records a write that the server accepted. A conflict is no failure: the cache is late, and its event causes
// another reconcile.
func (c *copier) note(verb string, name api.Key, err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.writes = append(c.writes, verb+" "+name.Name)
	}
	return err
}

// takeWrites returns the writes since the last call.
func (c *copier) takeWrites() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := c.writes
	c.writes = nil
	return writes
}

// converge waits until the server has the given number of originals, one copy of each, and no other copy. It does not
// use leat.
func (c *copier) converge(t *testing.T, originals int) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		answer, err := server.Must(t.Context(), http.MethodGet, c.originals.path(), nil)
		if err != nil {
			return err
		}
		var list corev1.ConfigMapList
		if err := json.Unmarshal(answer, &list); err != nil {
			return err
		}
		wanted, copies := map[string]string{}, 0
		for _, m := range list.Items {
			if m.Labels[originalLabel] != "" {
				wanted[m.Name] = string(m.UID) + m.Data["a"]
			}
		}
		for _, m := range list.Items {
			if of := m.Labels[copyLabel]; of != "" {
				copies++
				if wanted[of] != m.Annotations[copiedUID]+m.Data["a"] {
					return fmt.Errorf("%s is wrong", m.Name)
				}
			}
		}
		if len(wanted) != originals || copies != originals {
			return fmt.Errorf("%d originals, %d copies", len(wanted), copies)
		}
		return nil
	}))
}
