package e2e_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestLogs requests logs of pods that do not run. Without a kubelet, only the errors can be tested.
func TestLogs(t *testing.T) {
	client := newClient(t, adminConfig())
	namespace := newCollection(t, pods, podBody).namespace
	pod := runPod(t, client, namespace, "web")
	for name, c := range map[string]struct {
		key     api.Key
		options corev1.PodLogOptions
		is      func(error) bool
	}{
		"no such pod":       {api.Key{Namespace: namespace, Name: "nobody"}, corev1.PodLogOptions{}, apierrors.IsNotFound},
		"no such container": {api.KeyOf(pod), corev1.PodLogOptions{Container: "nothing"}, apierrors.IsBadRequest},
		"no such node":      {api.KeyOf(pod), corev1.PodLogOptions{Follow: true}, apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := client.Stream(t.Context(), pods, c.key, "log", &c.options)
			if err == nil {
				text, _ := io.ReadAll(stream)
				t.Fatalf("it answers %q", text)
			}
			require.True(t, c.is(err), "%v", err)
			require.ErrorContains(t, err, c.key.Name)
		})
	}
}

// TestTables reads pods as tables.
func TestTables(t *testing.T) {
	client := newClient(t, adminConfig())
	namespace := newCollection(t, pods, podBody).namespace
	runPod(t, client, namespace, "web")
	tables := apiclient.TablesOf(client, pods, namespace)
	table := must.Get(tables.List(t.Context(), metav1.ListOptions{}, metav1.IncludeMetadata))(t)
	require.Equal(t, "Name", table.ColumnDefinitions[0].Name)
	require.Len(t, table.Rows, 1)
	require.Equal(t, "web", table.Rows[0].Cells[0])
	require.Contains(t, table.Rows[0].Cells, any("Running"))
	table = must.Get(tables.Get(t.Context(), api.Key{Name: "web"}, metav1.GetOptions{}, metav1.IncludeNone))(t)
	require.Len(t, table.Rows, 1)
}

// TestWarnings writes an unknown field with each level of field validation.
func TestWarnings(t *testing.T) {
	var mu sync.Mutex
	var warnings []string
	requests := map[string]int{}
	config := adminConfig()
	config.OnWarning = func(w apiclient.Warning) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, w.Text)
	}
	config.OnRequest = func(r apiclient.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[r.Verb]++
	}
	client := newClient(t, config)
	namespace := newCollection(t, pods, podBody).namespace
	all := apiclient.NewTyped[*unstructured.Unstructured](client, configMaps, namespace)
	misspelt := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "dada": map[string]any{"a": "b"},
		}}
	}
	_, err := all.Create(t.Context(), misspelt("strict"), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "dada")
	for _, name := range []string{"one", "two"} {
		must.Get(all.Create(t.Context(), misspelt(name), metav1.CreateOptions{FieldValidation: metav1.FieldValidationWarn}))(t)
	}
	right := misspelt("dry")
	right.Object = map[string]any{"metadata": right.Object["metadata"], "data": right.Object["dada"]}
	dry := must.Get(all.Create(t.Context(), right, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "e2e"}))(t)
	require.NotEmpty(t, dry.GetUID())
	require.Equal(t, "e2e", dry.GetManagedFields()[0].Manager)
	_, err = all.Get(t.Context(), api.Key{Name: "dry"}, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, warnings, 1, "%q", warnings)
	require.Contains(t, warnings[0], "dada")
	require.Equal(t, map[string]int{"create": 4, "get": 1}, requests)
}

// TestAllPages reads all pages from a server with pages, and gets each object once.
func TestAllPages(t *testing.T) {
	client := newClient(t, adminConfig())
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, 25, noLabels)
	seen := map[string]int{}
	view := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, configMaps, c.namespace)
	options := apiclient.PageOptions[*metav1.PartialObjectMetadata]{}
	options.Limit = 7
	for o, err := range apiclient.All(t.Context(), view, options) {
		require.NoError(t, err)
		seen[o.Name]++
	}
	require.Len(t, seen, 25)
	for name, n := range seen {
		require.Equal(t, 1, n, name)
		require.True(t, strings.HasPrefix(name, "object-"), name)
	}
}
