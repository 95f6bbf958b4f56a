package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
)

// launch runs a command that was built until the test ends.
func launch(t *testing.T, name string, args ...string) {
	command := exec.Command(filepath.Join(filepath.Dir(leat), name), args...)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt) // it may have ended
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, &said)
		}
	})
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

// TestCommands opens the pages of leat serve, leat watch and the examples. One server serves all of them.
func TestCommands(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	at := map[string]string{}
	page := func(name, path string) string {
		address := freeAddress(t)
		at[name] = "http://" + address + path
		return address
	}
	launch(t, "leat", "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", path, "--page="+page("leat serve", "/"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, patience, 20*time.Millisecond)
	launch(t, "leat", "watch", "configmaps", "-A", "--kubeconfig", path, "--page="+page("leat watch configmaps", "/"))
	launch(t, "deployment", "--kubeconfig", path, "--run", "deployment,replicaset,kubelet", "--admin", page("deployment", "/page/"), "--page")
	change := scaler(t, path)
	for name, parts := range map[string]struct{ informers, controllers int }{
		"leat serve": {5, 0}, "leat watch configmaps": {1, 0}, "deployment": {3, 3},
	} {
		url := at[name]
		require.Eventually(t, func() bool { return answers(url + "state") }, patience, 20*time.Millisecond, name)
		p := open(t, url, "", light)
		p.until(`document.title === "` + name + ` · leat"`)
		p.until(fmt.Sprintf(rows+`.length === %d && [...`+rows+`].every(r => r.cells[1].innerText === "watching")`, parts.informers))
		p.until(fmt.Sprintf(`document.querySelectorAll("#controllers-title + .cards > .card").length === %d`, parts.controllers))
		require.Equal(t, name != "leat serve", eval[bool](p, `document.querySelector('nav a[data-view="lab"]').hidden`))
		require.False(t, eval[bool](p, `document.querySelector('nav a[data-view="object"]').hidden`))
		if name == "deployment" {
			p.until(`document.querySelector("#badges").textContent.includes("readyz")`)
			p.until(rows + `[1].cells[2].textContent !== "0"`) // its pods
			if *shots != "" {
				p.photograph(change)
			}
		}
	}
}

// photograph takes the picture of docs/livepage.png: half a minute of changes, and a moment in which a worker is busy.
func (p *tab) photograph(change func()) {
	p.run(chromedp.EmulateViewport(light.width, 1040))
	p.until(`performance.now() > 8000`)
	for eval[float64](p, `performance.now()`) < 30000 {
		change()
	}
	for !eval[bool](p, `parseFloat(`+big+`[0]) > 0 && document.querySelectorAll("#live .workers a").length > 2`) {
		change()
	}
	p.shoot("livepage")
}

// answers reports whether a URL answers.
func answers(url string) bool {
	answer, err := http.Get(url)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// scaled are the Deployments that scaler creates.
var scaled = []string{"web", "cart", "mail", "search"}

// scaler creates Deployments on the server of a kubeconfig, and returns a function that scales all of them.
func scaler(t *testing.T, path string) func() {
	cfg, _, err := kubeconfig.Load(context.Background(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	client := must.Get(apiclient.New(cfg))(t)
	t.Cleanup(client.CloseIdleConnections)
	deployments := apiclient.NewTyped[*unstructured.Unstructured](client, api.Resource{
		Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true,
	}, "default")
	for _, name := range scaled {
		labels := map[string]any{"app": name}
		_, err = deployments.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "default"},
			"spec": map[string]any{
				"replicas": 3, "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": name, "image": name + ":1"}}},
				},
			},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return func() {
		for _, name := range scaled {
			patch := must.Get(apiclient.MergePatch(map[string]any{"spec": map[string]any{"replicas": 1 + rand.IntN(8)}}))(t)
			must.Get(deployments.Patch(context.Background(), api.Key{Namespace: "default", Name: name}, patch, apiclient.PatchOptions{}))(t)
		}
		<-time.After(300 * time.Millisecond) // somebody looks
	}
}
