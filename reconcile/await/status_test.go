package await_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reconcile/await"
)

var example = map[string]any{
	"metadata": map[string]any{"generation": int64(3)},
	"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "True"},
		map[string]any{"type": "Scheduled", "status": "Unknown"},
	}},
}

func TestStatus(t *testing.T) {
	object := &unstructured.Unstructured{Object: example}
	ask := func(c await.Condition[*unstructured.Unstructured]) bool {
		met := must.Get(c.Met(object, true))(t)
		absent := must.Get(c.Met(nil, false))(t)
		require.False(t, absent, "a missing object does not meet a condition")
		return met
	}
	require.True(t, ask(await.Status("Ready", "")))
	require.True(t, ask(await.Status("ready", "true")))
	require.False(t, ask(await.Status("Ready", "False")))
	require.False(t, ask(await.Status("Scheduled", "False")))
	require.Equal(t, "condition Ready=True", await.Status("Ready", "").Name)

	observed := func(place string, generation int64) *unstructured.Unstructured {
		u := object.DeepCopy()
		status := u.Object["status"].(map[string]any)
		if place == "status" {
			status["observedGeneration"] = generation
		} else {
			status["conditions"].([]any)[0].(map[string]any)["observedGeneration"] = generation
			status["observedGeneration"] = int64(9) // the observedGeneration of the condition counts
		}
		return u
	}
	c := await.Status("Ready", "True")
	for _, place := range []string{"status", "condition"} {
		met := must.Get(c.Met(observed(place, 3), true))(t)
		require.True(t, met, place)
		met = must.Get(c.Met(observed(place, 2), true))(t)
		require.False(t, met, place)
		require.Equal(t, "Ready=True, of an older generation", c.State(observed(place, 2)))
	}
	none := &unstructured.Unstructured{Object: map[string]any{"status": "odd"}}
	met := must.Get(c.Met(none, true))(t)
	require.False(t, met)
}

func TestStatesAreShort(t *testing.T) {
	finalizers := make([]string, 30)
	for i := range finalizers {
		finalizers[i] = "example.com/keep"
	}
	var object unstructured.Unstructured
	now := metav1.Now()
	object.SetDeletionTimestamp(&now)
	object.SetFinalizers(finalizers)
	state := await.Deleted[*unstructured.Unstructured]("").State(&object)
	require.Contains(t, state, "example.com/keep, example.com/keep and 20 more")
}
