package e2e_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
)

// selection is a part of a collection, with patches that make an object leave and enter it.
type selection struct {
	labels, fields string
	subresource    string // the target of the patches; empty means the object itself
	leave, enter   string // merge patches
}

// TestSelectors follows parts of collections that existing objects enter and leave.
func TestSelectors(t *testing.T) {
	client := newClient(t, adminConfig())
	gadgets := customResource(t, "Gadget")

	t.Run("of", func(t *testing.T) {
		t.Run("labels", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exerciseSelection(t, c, apiclient.NewTyped[*corev1.Pod](client, pods, c.namespace), selection{
				labels: "tier in (1,2),!absent",
				leave:  `{"metadata":{"labels":{"absent":"no"}}}`,
				enter:  `{"metadata":{"labels":{"absent":null}}}`,
			})
		})
		t.Run("fields", func(t *testing.T) {
			c := newCollection(t, pods, podBody)
			exerciseSelection(t, c, apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, c.namespace), selection{
				fields:      "spec.nodeName=n1,metadata.name!=object-7,status.phase!=Running",
				subresource: "status",
				leave:       `{"status":{"phase":"Running"}}`,
				enter:       `{"status":{"phase":"Pending"}}`,
			})
		})
		t.Run("labels and fields of custom resources", func(t *testing.T) {
			c := newCollection(t, gadgets, `{"spec":{"color":"green","size":1}}`)
			exerciseSelection(t, c, apiclient.NewTyped[*widget](client, gadgets, c.namespace), selection{
				labels: "tier=1",
				fields: "spec.color=green",
				leave:  `{"spec":{"color":"blue"}}`,
				enter:  `{"spec":{"color":"green"}}`,
			})
		})
	})
}

func exerciseSelection[T api.Object](t *testing.T, c *collection, lw api.ListerWatcher[T], s selection) {
	t.Parallel()
	const objects = 48
	tiers := func(i int) labelSet { return labelSet{"tier": strconv.Itoa(i % 3)} }
	c.markLabel = labelSet{"tier": "1"}
	c.fill(t, objects, tiers)
	streamed := follow(t, "streamed", c, lw, informer.Options[T]{Selector: api.Selector{Labels: s.labels, Fields: s.fields}})
	paged := follow(t, "paged", c, lw, informer.Options[T]{
		Selector: api.Selector{Labels: s.labels, Fields: s.fields}, Tuning: reflector.Tuning{NoWatchList: true},
	})
	for _, f := range []*follower[T]{streamed, paged} {
		f.awaitSynced(t)
		require.NotZero(t, f.Cache().Len(), f.name)
		require.Less(t, f.Cache().Len(), objects, f.name)
	}
	require.NoError(t, (&churner{collection: c, objects: objects, seed: 4, label: tiers}).run(t.Context(), 200))
	streamed.agree(t)
	paged.agree(t)

	must.Get(c.create(t.Context(), "wanderer", c.markLabel))(t)
	key := api.Key{Namespace: c.namespace, Name: "wanderer"}
	for _, step := range []struct {
		patch string
		there bool
	}{{s.leave, false}, {s.enter, true}} {
		must.Get(server.Must(t.Context(), http.MethodPatch, c.path("wanderer", s.subresource), []byte(step.patch)))(t)
		streamed.agree(t)
		paged.agree(t)
		_, there := streamed.Cache().Get(key)
		require.Equal(t, step.there, there, step.patch)
	}
}
