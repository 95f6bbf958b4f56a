package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/internal/fixture/must"
)

const (
	fleetSize     = 100 // Deployments
	fleetReplicas = 10  // of each
)

// TestDeployments lets the controllers of examples/deployment move a hundred Deployments from one image to the next. An
// independent observer checks that there are never too many replicas or too few available ones, and kubectl reports the
// end.
func TestDeployments(t *testing.T) {
	f := newFleet(t)
	f.start(t)
	phase := func(name string, do func()) {
		began := time.Now()
		do()
		f.observer.check(t)
		t.Logf("%s: %s", name, time.Since(began).Round(100*time.Millisecond))
	}
	phase("roll out", func() {
		f.observer.limit(fleetReplicas+3, 0)
		f.each(t, func(name string) error { return f.create(t.Context(), name, "app:1") })
		f.settle(t, fleetReplicas, "app:1")
		f.generation(t, 1)
	})
	phase("roll over, while the API server is restarted", func() {
		t.Cleanup(func() { ensureServer(t) })
		f.observer.limit(fleetReplicas+3, fleetReplicas-2)
		f.patchAll(t, image("app:2"))
		f.halfway(t, "app:2")
		require.NoError(t, server.RestartAPIServer(t.Context()))
		out, err := f.kubectl(t, "rollout", "status", "deployment/"+fleetName(fleetSize-1), "--timeout=4m").CombinedOutput()
		require.NoError(t, err, "%s", out)
		f.settle(t, fleetReplicas, "app:2")
		f.generation(t, 2)
	})
	const scaled = fleetReplicas + 2
	phase("scale", func() {
		f.observer.limit(scaled+3, fleetReplicas-2)
		f.patchAll(t, spec{"replicas": scaled})
		f.settle(t, scaled, "app:2")
		f.observer.limit(scaled+3, scaled-3)
	})
	phase("pause", func() {
		f.patchAll(t, spec{"paused": true})
		f.patchAll(t, image("app:3"))
		f.observed(t)
		require.Zero(t, f.replicasOf(t, "app:3"), "paused, nothing is rolled out")
	})
	phase("resume, kill the controllers in the midst of it, and roll back", func() {
		f.patchAll(t, spec{"paused": false})
		f.halfway(t, "app:3")
		f.kill(t)
		require.Less(t, f.complete(t, scaled, "app:3"), fleetSize, "it was over too soon to be broken off")
		f.patchAll(t, map[string]any{"metadata": map[string]any{"annotations": labelSet{appsv1.DeprecatedRollbackTo: "2"}}})
		f.start(t)
		f.settle(t, scaled, "app:2")
	})
	f.agree(t)
}

// TestStuckDeployment checks that kubectl and the controllers agree on a rollout that times out.
func TestStuckDeployment(t *testing.T) {
	f := newFleet(t)
	f.start(t)
	f.observer.limit(fleetReplicas+3, 0)
	require.NoError(t, f.create(t.Context(), "stuck", "app:broken"))
	must.Get(f.patch(t.Context(), "stuck", spec{"progressDeadlineSeconds": 1}.patch()))(t)
	status := f.kubectl(t, "rollout", "status", "deployment/stuck", "--timeout=1m")
	out, err := status.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Contains(t, string(out), "exceeded its progress deadline")
	// A step of a rollout may take more than a second, and the dates in a status have no fractions of one.
	must.Get(f.patch(t.Context(), "stuck", spec{"progressDeadlineSeconds": 600}.patch()))(t)
	undo := f.kubectl(t, "set", "image", "deployment/stuck", "app=app:1")
	require.NoError(t, undo.Run())
	require.NoError(t, f.kubectl(t, "rollout", "status", "deployment/stuck", "--timeout=1m").Run())
	f.observer.check(t)
}

// fleet is a number of Deployments in one namespace, with their controllers.
type fleet struct {
	*collection
	observer   *observer
	binary     string
	kubeconfig string
	stderr     *bytes.Buffer
	running    *exec.Cmd
}

// spec is a part of a Deployment's spec.
type spec map[string]any

func (s spec) patch() map[string]any { return map[string]any{"spec": s} }

func image(name string) spec {
	return spec{"template": map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": "app", "image": name}}}}}
}

func fleetName(i int) string { return fmt.Sprintf("d-%d", i) }

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{collection: newCollection(t, deployments, `{}`), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	var err error
	f.binary = must.Get(filepath.Abs(filepath.Join("bin", "deployment")))(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", f.binary, "./examples/deployment")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, kubeconfig.Write(f.kubeconfig, adminConfig(), f.namespace))
	f.observer = observe(t, f.namespace)
	return f
}

// start starts the controllers, which end with the test.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	f.stderr = &bytes.Buffer{}
	cmd := exec.Command(f.binary, "--kubeconfig", f.kubeconfig, "--namespace", f.namespace, "--run", "deployment,replicaset,kubelet", "--workers", "20")
	cmd.Stderr = f.stderr
	require.NoError(t, cmd.Start())
	f.running = cmd
	t.Cleanup(func() {
		if f.running != cmd {
			return
		}
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, cmd.Wait(), "%s", f.stderr)
		t.Logf("the controllers took %s", cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if t.Failed() {
			t.Logf("the controllers said\n%s", f.stderr)
		}
	})
}

// kill kills the controllers at any point of their work.
func (f *fleet) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, f.running.Process.Kill())
	_ = f.running.Wait() // the error says that it was killed
	f.running = nil
}

func (f *fleet) kubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join("bin", "kubectl"), append([]string{"--kubeconfig", f.kubeconfig}, args...)...)
}

func (f *fleet) create(ctx context.Context, name, image string) error {
	return f.createSized(ctx, name, image, fleetReplicas)
}

func (f *fleet) createSized(ctx context.Context, name, image string, replicas int) error {
	app := labelSet{"app": name}
	_, err := f.write(ctx, http.MethodPost, f.path(), map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "labels": labelSet{"fleet": "yes"}},
		"spec": map[string]any{
			"replicas": replicas, "selector": map[string]any{"matchLabels": app},
			"template": map[string]any{
				"metadata": map[string]any{"labels": app},
				"spec":     map[string]any{"containers": []map[string]any{{"name": "app", "image": image}}},
			},
		},
	})
	return err
}

// each calls do for each Deployment, several at a time, and repeats it while the API server is away.
func (f *fleet) each(t *testing.T, do func(name string) error) {
	t.Helper()
	names := make(chan string)
	errs := make(chan error, fleetSize)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for name := range names {
				errs <- do(name)
			}
		})
	}
	for i := range fleetSize {
		names <- fleetName(i)
	}
	close(names)
	all.Wait()
	for range fleetSize {
		require.NoError(t, <-errs)
	}
}

func (f *fleet) patchAll(t *testing.T, change any) {
	t.Helper()
	if s, ok := change.(spec); ok {
		change = s.patch()
	}
	f.each(t, func(name string) error {
		_, err := f.patch(t.Context(), name, change)
		return err
	})
}

func (f *fleet) deployments(t *testing.T) []appsv1.Deployment {
	t.Helper()
	var list appsv1.DeploymentList
	require.NoError(t, eventually(t.Context(), func() error {
		answer, err := server.Must(t.Context(), http.MethodGet, f.path()+"?labelSelector=fleet", nil)
		if err != nil {
			return err
		}
		list = appsv1.DeploymentList{}
		return json.Unmarshal(answer, &list)
	}))
	return list.Items
}

// complete counts the Deployments with a complete rollout: all replicas have the image and are available, and no others
// are left.
func (f *fleet) complete(t *testing.T, replicas int32, image string) (n int) {
	t.Helper()
	for _, d := range f.deployments(t) {
		s := d.Status
		if d.Spec.Template.Spec.Containers[0].Image == image && s.ObservedGeneration == d.Generation &&
			s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas {
			n++
		}
	}
	return n
}

func (f *fleet) settle(t *testing.T, replicas int32, image string) {
	t.Helper()
	f.wait(t, fleetSize, func() int { return f.complete(t, replicas, image) })
}

// generation requires a generation of every Deployment. It counts the changes by users; the revision that the
// controllers write must not increment it.
func (f *fleet) generation(t *testing.T, want int64) {
	t.Helper()
	for _, d := range f.deployments(t) {
		require.Equal(t, want, d.Generation, d.Name)
	}
}

// wait polls a number until it is high enough. It polls rarely, because a list of the whole fleet costs the server as
// much as dozens of writes.
func (f *fleet) wait(t *testing.T, want int, count func() int) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		n := count()
		if n >= want {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			require.Failf(t, "the controllers took too long", "%d of %d\n%s", n, want, f.stderr)
		}
	}
}

// observed waits until the controller has observed the newest generation of each Deployment.
func (f *fleet) observed(t *testing.T) {
	t.Helper()
	f.wait(t, fleetSize, func() (n int) {
		for _, d := range f.deployments(t) {
			if d.Status.ObservedGeneration == d.Generation {
				n++
			}
		}
		return n
	})
}

// halfway waits until half of the replicas have an image.
func (f *fleet) halfway(t *testing.T, image string) {
	t.Helper()
	f.wait(t, fleetSize*fleetReplicas/2, func() int { return f.replicasOf(t, image) })
}

// replicasOf returns the sum of the sizes of ReplicaSets with an image.
func (f *fleet) replicasOf(t *testing.T, image string) (n int) {
	t.Helper()
	answer := must.Get(server.Must(t.Context(), http.MethodGet, "/apis/apps/v1/namespaces/"+f.namespace+"/replicasets", nil))(t)
	var list appsv1.ReplicaSetList
	require.NoError(t, json.Unmarshal(answer, &list))
	for _, s := range list.Items {
		if s.Spec.Template.Spec.Containers[0].Image == image {
			n += int(*s.Spec.Replicas)
		}
	}
	return n
}

// agree asks kubectl about each Deployment, and about the history of one whose second revision is now its fourth.
func (f *fleet) agree(t *testing.T) {
	t.Helper()
	out, err := f.kubectl(t, "rollout", "status", "deployment", "--selector=fleet", "--timeout=1m").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, fleetSize, strings.Count(string(out), "successfully rolled out"), "%s", out)
	out, err = f.kubectl(t, "rollout", "history", "deployment/"+fleetName(7)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var revisions []string
	for _, line := range strings.Split(string(out), "\n") {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] != "REVISION" {
			revisions = append(revisions, fields[0])
		}
	}
	require.Equal(t, []string{"1", "3", "4"}, revisions, "%s", out)
}
