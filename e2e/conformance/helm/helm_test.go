package helm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

var server *harness.Server

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m, harness.Options{ControllerManager: true}, func(s *harness.Server) { server = s }))
}

// release is a part of what helm prints about a release.
type release struct {
	Version int
	Info    struct{ Status, Description string }
}

// TestRelease installs, upgrades, rolls back and uninstalls a chart with a definition and hooks.
// kube-controller-manager rolls the Deployment out and runs the Jobs of the hooks, so that Helm waits for both.
func TestRelease(t *testing.T) {
	ctx, namespace, client := t.Context(), server.Namespace(t), server.Clientset()
	helm := program(t)
	run := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(ctx, helm, append(args, "--namespace", namespace, "--kubeconfig", server.Kubeconfig)...)
		command.Env = append(os.Environ(), "HOME="+t.TempDir())
		output, err := command.Output()
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		require.NoError(t, err, "helm %s\n%s%s", args, output, stderr)
		return string(output)
	}
	change := func(version int, status string, args ...string) {
		t.Helper()
		run(append(args, "--wait", "--timeout", "40s")...)
		var r release
		require.NoError(t, json.Unmarshal([]byte(run("status", "shop", "-o", "json")), &r))
		require.Equal(t, version, r.Version)
		require.Equal(t, status, r.Info.Status, r.Info.Description)
	}
	mills := dynamic.NewForConfigOrDie(server.Config).
		Resource(schema.GroupVersionResource{Group: "helm.leat.example", Version: "v1", Resource: "mills"}).Namespace(namespace)
	// shows requires the values of a release in the objects.
	shows := func(colour, image string, replicas int32) {
		t.Helper()
		flags := must.Get(client.CoreV1().ConfigMaps(namespace).Get(ctx, "shop", metav1.GetOptions{}))(t)
		require.Equal(t, colour, flags.Data["colour"])
		mill := must.Get(mills.Get(ctx, "shop", metav1.GetOptions{}))(t)
		require.Equal(t, map[string]any{"arms": int64(4), "colour": colour}, mill.Object["spec"])
		require.Equal(t, "Helm", mill.GetLabels()["app.kubernetes.io/managed-by"])
		d := must.Get(client.AppsV1().Deployments(namespace).Get(ctx, "shop", metav1.GetOptions{}))(t)
		require.Equal(t, image, d.Spec.Template.Spec.Containers[0].Image)
		require.Equal(t, replicas, d.Status.ReadyReplicas)
	}
	ran := func(hook string) {
		t.Helper()
		job := must.Get(client.BatchV1().Jobs(namespace).Get(ctx, "shop-"+hook, metav1.GetOptions{}))(t)
		require.Equal(t, int32(1), job.Status.Succeeded)
	}
	const chart = "testdata/chart"

	change(1, "deployed", "install", "shop", chart)
	shows("red", "registry.example/shop:1", 2)
	ran("pre-install")
	change(2, "deployed", "upgrade", "shop", chart, "--set", "colour=blue,replicas=3,image=registry.example/shop:2")
	shows("blue", "registry.example/shop:2", 3)
	ran("pre-upgrade")
	change(3, "deployed", "rollback", "shop", "1")
	shows("red", "registry.example/shop:1", 2)
	ran("pre-rollback")

	var history []struct {
		Revision int
		Status   string
	}
	require.NoError(t, json.Unmarshal([]byte(run("history", "shop", "-o", "json")), &history))
	require.Equal(t, "[{1 superseded} {2 superseded} {3 deployed}]", fmt.Sprint(history))

	run("uninstall", "shop", "--wait", "--timeout", "40s")
	ran("post-delete")
	_, err := client.AppsV1().Deployments(namespace).Get(ctx, "shop", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = mills.Get(ctx, "shop", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.JSONEq(t, "[]", run("list", "-o", "json"))
}

// program builds helm at the version of go.mod.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helm")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "helm.sh/helm/v4/cmd/helm").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}
