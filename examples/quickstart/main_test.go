package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver"
)

// lines is a writer that passes on each line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestEachLayerPrintsThePod runs the layers against a server with one pod.
func TestEachLayerPrintsThePod(t *testing.T) {
	serving, stop := context.WithCancel(t.Context())
	server := testserver.New(testserver.Options{})
	served := make(chan error, 1)
	go func() { served <- server.Run(serving) }()
	client, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(t, err)
	_, err = apiclient.NewTyped[*unstructured.Unstructured](client, podsResource, "default").Create(t.Context(), &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{
				"nodeName": "n1", "containers": []any{map[string]any{"name": "main", "image": "a:1"}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for layer, want := range map[string]string{
		"client": "a is on n1\n", "informer": "Added a\n", "index": "1 pods on the node of a\n",
		"controller": "reconcile default/a: cached true\n", "program": "default/a is on n1\n",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := make(lines, 1), make(chan error, 1)
		go func() { ended <- layers[layer](ctx, client, out) }()
		require.Equal(t, want, <-out, layer)
		cancel()
		err := <-ended
		require.True(t, err == nil || layer == "client", err) // the context may end the list that has printed its last line
	}
	require.ErrorContains(t, run(t.Context(), nil), "name a layer")
	stop()
	require.NoError(t, <-served)
}

// TestPageShowsTheLayers holds the code of docs/quickstart.md to the code that is run here.
func TestPageShowsTheLayers(t *testing.T) {
	page, err := os.ReadFile("../../docs/quickstart.md")
	require.NoError(t, err)
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	shown := 0
	for block := range strings.SplitSeq(string(page), "```") {
		if code, ok := strings.CutPrefix(block, "go\n"); ok {
			inFunction := "\t" + strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n\t") + "\n"
			require.True(t, strings.Contains(string(source), code) || strings.Contains(string(source), inFunction), code)
			shown++
		}
	}
	require.Equal(t, 6, shown)
}
