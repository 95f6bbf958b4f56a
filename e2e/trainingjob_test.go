package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/internal/fixture/must"
)

var trainingJobs = api.Resource{
	Group: "training.leat.example", Version: "v1", Kind: "TrainingJob", Plural: "trainingjobs", Namespaced: true,
}

// definitionFile is what a reader of the example applies.
const definitionFile = "../examples/trainingjob/job/definition.yaml"

// trainingDefinition is where the definition of TrainingJobs is.
const trainingDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.training.leat.example"

// TestTrainingJobs runs the controller of examples/trainingjob and takes jobs to their end. It starts before the server
// serves TrainingJobs. Only the test changes the status of Pods.
func TestTrainingJobs(t *testing.T) {
	l := newLab(t)
	l.start(t)
	require.NoError(t, eventually(t.Context(), func() error {
		return l.said("waiting until the server serves the resource")
	}), "%s", l.log(t))
	l.define(t)

	l.submit(t, "mnist", training{"successPolicy": "Leader", "replicas": replicas{"chief": 1, "worker": 2}})
	l.submit(t, "broken", training{"replicas": replicas{"worker": 2}})
	l.submit(t, "paused", training{"activeDeadlineSeconds": 600, "replicas": replicas{"worker": 1, "ps": 1}})
	l.submit(t, "late", training{"activeDeadlineSeconds": 1, "cleanPodPolicy": "All", "replicas": replicas{"worker": 1}})
	l.submit(t, "elastic", training{"enableDynamicWorker": true, "replicas": replicas{"master": 1, "ps": 1, "worker": 1, "evaluator": 1}})
	l.submit(t, "leaderless", training{"replicas": replicas{"ps": 1}})

	t.Run("a replica is restarted, and the job succeeds", l.succeed)
	t.Run("a failure that no restart mends", l.fail)
	t.Run("suspended and resumed", l.suspend)
	t.Run("too late", func(t *testing.T) { l.becomes(t, "late", "Failed", "DeadlineExceeded"); l.empties(t, "late") })
	t.Run("workers come and go", l.scale)
	t.Run("invalid", l.refuse)
	t.Run("as the README has it", l.readme)
}

func (l *lab) succeed(t *testing.T) {
	require.Equal(t, []string{"mnist-chief-0", "mnist-worker-0", "mnist-worker-1"}, l.podsOf(t, "mnist", 3))
	for _, name := range l.podsOf(t, "mnist", 3) {
		l.phase(t, name, `{"phase":"Running"}`)
	}
	l.becomes(t, "mnist", "Running", "JobRunning")
	before := l.pod(t, "mnist-worker-1")
	l.phase(t, before.Name, `{"phase":"Failed","containerStatuses":[{"name":"tensorflow","image":"mnist:1","imageID":"",
		"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":137}}}]}`)
	require.NoError(t, eventually(t.Context(), func() error {
		if p, err := l.tryPod(t, before.Name); err != nil || p.UID == before.UID {
			return fmt.Errorf("worker 1 was not replaced: %w", err)
		}
		return nil
	}))
	l.becomes(t, "mnist", "Restarting", "ReplicaRestarting")
	require.EqualValues(t, 1, l.job(t, "mnist").Status.Restarts)
	l.phase(t, before.Name, `{"phase":"Running"}`)
	l.becomes(t, "mnist", "Running", "JobRunning")

	config := l.pod(t, before.Name).Spec.Containers[0].Env[0]
	require.Equal(t, "TF_CONFIG", config.Name)
	require.Contains(t, config.Value, `"mnist-chief-0.`+l.namespace+`.svc:2222"`)
	must.Get(server.Must(t.Context(), http.MethodGet, "/api/v1/namespaces/"+l.namespace+"/services/mnist-worker-1", nil))(t)

	wait := l.kubectl(t, "wait", "tj/mnist", "--for=condition=Succeeded", "--timeout=1m")
	l.phase(t, "mnist-chief-0", `{"phase":"Succeeded"}`)
	out, err := wait.CombinedOutput()
	require.NoError(t, err, "%s", out)
	// Not before, because kubectl may start after the time.
	must.Get(l.patch(t.Context(), "mnist", training{"ttlSecondsAfterFinished": 2}.patch()))(t)
	require.NoError(t, eventually(t.Context(), func() error {
		status, _, err := server.Do(t.Context(), cluster.AdminToken, http.MethodGet, l.path("mnist"), nil)
		if err == nil && status != http.StatusNotFound {
			err = errors.New("the job is there still")
		}
		return err
	}))
}

func (l *lab) fail(t *testing.T) {
	l.podsOf(t, "broken", 2)
	l.phase(t, "broken-worker-0", `{"phase":"Running"}`)
	l.phase(t, "broken-worker-1", `{"phase":"Failed","containerStatuses":[{"name":"tensorflow","image":"mnist:1","imageID":"",
		"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1}}}]}`)
	l.becomes(t, "broken", "Failed", "ReplicaFailed")
	require.Equal(t, []string{"broken-worker-1"}, l.podsOf(t, "broken", 1), "what failed stays for those who ask why")
	require.Zero(t, l.job(t, "broken").Status.Restarts)
}

func (l *lab) suspend(t *testing.T) {
	l.podsOf(t, "paused", 2)
	l.phase(t, "paused-worker-0", `{"phase":"Running"}`)
	l.becomes(t, "paused", "Running", "JobRunning")
	must.Get(l.patch(t.Context(), "paused", training{"suspend": true}.patch()))(t)
	l.becomes(t, "paused", "Suspended", "JobSuspended")
	l.empties(t, "paused")
	require.Nil(t, l.job(t, "paused").Status.StartTime)
	must.Get(l.patch(t.Context(), "paused", training{"suspend": false}.patch()))(t)
	l.podsOf(t, "paused", 2)
	l.phase(t, "paused-worker-0", `{"phase":"Succeeded"}`)
	l.becomes(t, "paused", "Succeeded", "JobSucceeded")
}

// scale changes the number of workers of a job with an evaluator. The other Pods stay, and the job succeeds with its
// master.
func (l *lab) scale(t *testing.T) {
	fixed := []string{"elastic-evaluator-0", "elastic-master-0", "elastic-ps-0", "elastic-worker-0"}
	require.Equal(t, fixed, l.podsOf(t, "elastic", 4))
	for _, name := range fixed {
		l.phase(t, name, `{"phase":"Running"}`)
	}
	l.becomes(t, "elastic", "Running", "JobRunning")
	worker := l.pod(t, "elastic-worker-0")
	workers := func(n int) map[string]any {
		return training{"replicas": map[string]any{"worker": map[string]any{"replicas": n}}}.patch()
	}
	must.Get(l.patch(t.Context(), "elastic", workers(3)))(t)
	require.Equal(t, append(slices.Clone(fixed), "elastic-worker-1", "elastic-worker-2"), l.podsOf(t, "elastic", 6))
	config := l.pod(t, "elastic-worker-2").Spec.Containers[0].Env[0].Value
	require.Equal(t, `{"sparseCluster":{"worker":{"2":"elastic-worker-2.`+l.namespace+`.svc:2222"},"ps":["elastic-ps-0.`+l.namespace+
		`.svc:2222"]},"task":{"type":"worker","index":2}}`, config)
	must.Get(l.patch(t.Context(), "elastic", workers(1)))(t)
	require.Equal(t, fixed, l.podsOf(t, "elastic", 4))
	require.Equal(t, worker.UID, l.pod(t, worker.Name).UID)
	require.Zero(t, l.job(t, "elastic").Status.Restarts)
	l.phase(t, "elastic-master-0", `{"phase":"Succeeded"}`)
	l.becomes(t, "elastic", "Succeeded", "JobSucceeded")
}

// refuse has a job that only the controller finds invalid, and one that the server rejects.
func (l *lab) refuse(t *testing.T) {
	l.becomes(t, "leaderless", "Failed", "InvalidSpec")
	out, err := l.kubectl(t, "get", "tj", "leaderless").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "InvalidSpec")
	require.NoError(t, eventually(t.Context(), func() error {
		out, err := l.kubectl(t, "describe", "tj", "leaderless").CombinedOutput()
		if err == nil && !strings.Contains(string(out), "Warning  InvalidSpec") {
			err = fmt.Errorf("no event: %s", out)
		}
		return err
	}))
	_, err = l.write(t.Context(), http.MethodPost, l.path(), trainingJob("odd", training{"successPolicy": "Most", "replicas": replicas{"worker": 1}}))
	require.True(t, hasCode(err, http.StatusUnprocessableEntity), "%v", err)
}

func (l *lab) readme(t *testing.T) {
	out, err := l.kubectl(t, "apply", "-f", filepath.Join("..", "examples", "trainingjob", "mnist.yaml")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, []string{"mnist-chief-0", "mnist-ps-0", "mnist-worker-0", "mnist-worker-1"}, l.podsOf(t, "mnist", 4))
}

// lab is a namespace for training jobs, with their controller.
type lab struct {
	*collection
	binary, kubeconfig, stderr string
}

// training is a part of a job's spec.
type training map[string]any

func (s training) patch() map[string]any { return map[string]any{"spec": s} }

// replicas has the number of replicas of each type.
type replicas map[string]int

// MarshalJSON writes the numbers with one template for all types.
func (r replicas) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	for name, n := range r {
		all[name] = map[string]any{
			"replicas": n, "restartPolicy": "ExitCode",
			"template": map[string]any{"spec": map[string]any{"containers": []map[string]any{{"name": "tensorflow", "image": "mnist:1"}}}},
		}
	}
	return json.Marshal(all)
}

// trainingStatus has the fields of a job's status that the test reads.
type trainingStatus struct {
	Status struct {
		StartTime  *metav1.Time
		Restarts   int32
		Conditions []metav1.Condition
	}
}

func newLab(t *testing.T) *lab {
	t.Helper()
	folder := t.TempDir()
	l := &lab{
		collection: newCollection(t, trainingJobs, `{}`), binary: filepath.Join(folder, "trainingjob"),
		kubeconfig: filepath.Join(folder, "kubeconfig"), stderr: filepath.Join(folder, "stderr"),
	}
	l.undefine(t) // an earlier run may have left it
	build := exec.CommandContext(t.Context(), "go", "build", "-o", l.binary, "./examples/trainingjob")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, kubeconfig.Write(l.kubeconfig, adminConfig(), l.namespace))
	return l
}

func (l *lab) undefine(t *testing.T) {
	t.Helper()
	_, _, err := server.Do(t.Context(), cluster.AdminToken, http.MethodDelete, trainingDefinition, nil)
	require.NoError(t, err)
	require.NoError(t, eventually(t.Context(), func() error {
		status, _, err := server.Do(t.Context(), cluster.AdminToken, http.MethodGet, l.path(), nil)
		if err == nil && status != http.StatusNotFound {
			err = errors.New("the server knows training jobs still")
		}
		return err
	}))
}

// define creates the definition and waits until the server serves TrainingJobs.
func (l *lab) define(t *testing.T) {
	t.Helper()
	out, err := l.kubectl(t, "apply", "-f", definitionFile).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, eventually(t.Context(), func() error {
		_, err := server.Must(t.Context(), http.MethodGet, l.path(), nil)
		return err
	}))
}

// start starts the controller, which ends with the test.
func (l *lab) start(t *testing.T) {
	t.Helper()
	stderr := must.Get(os.Create(l.stderr))(t)
	cmd := exec.Command(l.binary, "--kubeconfig", l.kubeconfig, "--namespace", l.namespace)
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, cmd.Wait(), "%s", l.log(t))
		require.NoError(t, stderr.Close())
		if t.Failed() {
			t.Logf("the controller said\n%s", l.log(t))
		}
	})
}

func (l *lab) log(t *testing.T) []byte {
	t.Helper()
	return must.Get(os.ReadFile(l.stderr))(t)
}

func (l *lab) said(text string) error {
	log, err := os.ReadFile(l.stderr)
	if err == nil && !bytes.Contains(log, []byte(text)) {
		err = fmt.Errorf("it did not say %q", text)
	}
	return err
}

func (l *lab) kubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join("bin", "kubectl"), append([]string{"--kubeconfig", l.kubeconfig}, args...)...)
}

func trainingJob(name string, spec training) map[string]any {
	return map[string]any{
		"apiVersion": trainingJobs.GroupVersion().String(), "kind": trainingJobs.Kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}
}

func (l *lab) submit(t *testing.T, name string, spec training) {
	t.Helper()
	must.Get(l.write(t.Context(), http.MethodPost, l.path(), trainingJob(name, spec)))(t)
}

func (l *lab) job(t *testing.T, name string) (j trainingStatus) {
	t.Helper()
	answer := must.Get(server.Must(t.Context(), http.MethodGet, l.path(name), nil))(t)
	require.NoError(t, json.Unmarshal(answer, &j))
	return j
}

// becomes waits until a condition of a job is true with a reason.
func (l *lab) becomes(t *testing.T, name, kind, reason string) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		conditions := l.job(t, name).Status.Conditions
		for _, c := range conditions {
			if c.Type == kind && c.Status == metav1.ConditionTrue && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("%s is not %s for %s: %v", name, kind, reason, conditions)
	}), "%s", l.log(t))
}

// podsOf waits until a job has n Pods, and returns their names.
func (l *lab) podsOf(t *testing.T, name string, n int) (names []string) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		query := "?labelSelector=training.leat.example/job-name=" + name
		answer, err := server.Must(t.Context(), http.MethodGet, "/api/v1/namespaces/"+l.namespace+"/pods"+query, nil)
		if err != nil {
			return err
		}
		var list corev1.PodList
		if err := json.Unmarshal(answer, &list); err != nil {
			return err
		}
		names = nil
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		if len(names) != n {
			return fmt.Errorf("%s has %v", name, names)
		}
		return nil
	}), "%s", l.log(t))
	slices.Sort(names)
	return names
}

func (l *lab) empties(t *testing.T, name string) {
	t.Helper()
	require.Empty(t, l.podsOf(t, name, 0))
}

func (l *lab) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	return must.Get(l.tryPod(t, name))(t)
}

func (l *lab) tryPod(t *testing.T, name string) (*corev1.Pod, error) {
	t.Helper()
	answer, err := server.Must(t.Context(), http.MethodGet, "/api/v1/namespaces/"+l.namespace+"/pods/"+name, nil)
	if err != nil {
		return nil, err
	}
	p := &corev1.Pod{}
	return p, json.Unmarshal(answer, p)
}

// phase writes the status of a Pod as a kubelet would.
func (l *lab) phase(t *testing.T, name, status string) {
	t.Helper()
	must.Get(server.Must(t.Context(), http.MethodPatch, "/api/v1/namespaces/"+l.namespace+"/pods/"+name+"/status", []byte(`{"status":`+status+`}`)))(t)
}
