package clientgo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
)

// TestRefuseMasked reads masked pods through an informer and its lister, and checks that a clientset sends no update of
// them, in JSON and in protobuf.
func TestRefuseMasked(t *testing.T) {
	mask := must.Get(codec.NewMask[*corev1.Pod](`metadata.labels["app"]`))(t)
	var masked *corev1.Pod
	run(t, func(k *testkit.Kit) {
		i := clientgo.New(apiclient.NewMasked[*corev1.Pod](k.Client, pods, "", mask), clientgo.Options[*corev1.Pod]{})
		start(k, i)
		<-i.HasSyncedChecker().Done()
		object, _, err := i.GetStore().GetByKey("default/a")
		require.NoError(k, err)
		masked = object.(*corev1.Pod)
		require.Equal(k, "web", masked.Labels["app"])
	})
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: mediaType}}
		clientgo.RefuseMasked(config)
		to := must.Get(kubernetes.NewForConfig(config))(t).CoreV1().Pods("default")
		ctx := context.Background()
		_, updated := to.Update(ctx, masked.DeepCopy(), metav1.UpdateOptions{})
		_, status := to.UpdateStatus(ctx, masked.DeepCopy(), metav1.UpdateOptions{})
		_, created := to.Create(ctx, masked.DeepCopy(), metav1.CreateOptions{})
		for _, err := range []error{updated, status, created} {
			var refused *codec.MaskedError
			require.ErrorAs(t, err, &refused, mediaType)
			require.Equal(t, `metadata.labels["app"]`, refused.Fields, mediaType)
		}
		require.Zero(t, sent, mediaType)
		for _, text := range []string{`{"manager":"leat keeps only (x)"}`, "leat keeps only (x)"} {
			_, err := to.Update(ctx, pod("a", text), metav1.UpdateOptions{})
			require.Error(t, err)
			require.Equal(t, 1, sent, "a text that quotes the mark is no mark")
			sent = 0
		}
		_, err := to.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
		require.Error(t, err)
		require.Positive(t, sent)
		sent = 0
	}
}
