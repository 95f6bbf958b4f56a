package serve_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/multicluster"
)

var configMaps = fixture.ConfigMaps

// follow is in docs/serve.md.
func follow(ctx context.Context, hub *apiclient.Client, reconcile controller.Func[multicluster.Key]) error {
	set, err := multicluster.New(hub, multicluster.Options{Namespace: "default", Selector: api.Selector{Labels: "cluster=yes"}})
	if err != nil {
		return err
	}
	maps := multicluster.Inform(set, func(c *multicluster.Cluster) api.ListerWatcher[*corev1.ConfigMap] {
		return apiclient.NewTyped[*corev1.ConfigMap](c.Client(), configMaps, "")
	}, informer.Options[*corev1.ConfigMap]{})
	ctl := controller.New("maps", reconcile, controller.Options{})
	ctl.Watch(multicluster.For(maps))
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return set.Run(ctx) })
	all.Go(func() error { return ctl.Run(ctx) })
	return all.Wait()
}

func TestThePageHasTheControllerOfTheTest(t *testing.T) {
	source := string(must.Get(os.ReadFile("multicluster_test.go"))(t))
	_, rest, _ := strings.Cut(source, "// follow is in docs/serve.md.\n")
	body, _, found := strings.Cut(rest, "\n}\n")
	require.True(t, found)
	require.Contains(t, string(must.Get(os.ReadFile("../../docs/serve.md"))(t)), body)
}

// TestAControllerOverAHundredClusters creates clusters, puts their kubeconfigs into Secrets of the first one, and
// changes and deletes one.
func TestAControllerOverAHundredClusters(t *testing.T) {
	p := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	hub := must.Get(apiclient.New(apiclient.Config{Host: p.api}))(t)
	p.requireCode(201, "POST", mapsPath, oneMap)
	secrets := apiclient.NewTyped[*corev1.Secret](hub, api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}, "default")
	want := map[string]bool{}
	for i := range 100 {
		name := fmt.Sprintf("c%02d", i)
		p.ok("PUT", "/clusters/"+name, "")
		_ = must.Get(secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"cluster": "yes"}},
			Data:       map[string][]byte{"kubeconfig": []byte(p.ok("GET", "/clusters/"+name+"/kubeconfig", ""))},
		}, metav1.CreateOptions{}))(t)
		want[name+": default/one"] = true
	}
	reconciled, ended := make(chan string), make(chan error)
	go func() {
		ended <- follow(ctx, hub, func(ctx context.Context, key multicluster.Key) (controller.Result, error) {
			select {
			case reconciled <- key.String():
			case <-ctx.Done():
			}
			return controller.Result{}, nil
		})
	}()
	next := func() string {
		select {
		case key := <-reconciled:
			return key
		case err := <-ended:
			require.FailNow(t, "the controller has ended", "%v", err)
			return ""
		}
	}
	got := map[string]bool{}
	for range 100 {
		got[next()] = true
	}
	require.Equal(t, want, got)
	p.requireCode(200, "PUT", "/clusters/c07"+mapsPath+"/one", strings.Replace(oneMap, "{", `{"data":{"a":"b"},`, 1))
	require.Equal(t, "c07: default/one", next())
	p.ok("DELETE", "/clusters/c93", "")
	p.requireCode(200, "DELETE", "/api/v1/namespaces/default/secrets/c93", "")
	require.Equal(t, "c93: default/one", next())
	cancel()
	require.NoError(t, <-ended)
}
