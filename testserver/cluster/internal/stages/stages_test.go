package stages_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/cluster/internal/stages"
)

// world is a cluster with one simulated node and stages, on fake time.
type world struct {
	*testing.T
	failed *atomic.Pointer[error] // the last error of a stage
	client *apiclient.Client
	pods   *apiclient.TypedClient[*corev1.Pod]
	nodes  *apiclient.TypedClient[*corev1.Node]
}

func inWorld(t *testing.T, file string, test func(world)) {
	t.Helper()
	list := must.Get(cluster.ParseStages([]byte(file)))(t)
	var failed atomic.Pointer[error]
	list.OnError = func(err error) { failed.Store(&err) }
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{Behaviour: cluster.Behaviour{
			Nodes: &cluster.Nodes{Count: 1, Heartbeat: -1}, Stages: list,
		}})
		client := must.Get(apiclient.New(c.ClientConfig()))(t)
		synctest.Wait()
		test(world{
			t, &failed, client, apiclient.NewTyped[*corev1.Pod](client, api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}, ""),
			apiclient.NewTyped[*corev1.Node](client, api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}, ""),
		})
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func key(name string) api.Key { return api.Key{Namespace: "default", Name: name} }

func (w world) create(name, app string) {
	w.Helper()
	must.Get(w.pods.Create(w.Context(), &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}, {Name: "side", Image: "side:1"}}},
	}, metav1.CreateOptions{}))(w)
	synctest.Wait()
}

// line has the restarts and the state of each container, and what the condition Tired says.
func (w world) line(name string) string {
	w.Helper()
	p, err := w.pods.Get(w.Context(), key(name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "gone"
	}
	require.NoError(w, err)
	var out []string
	for _, s := range p.Status.ContainerStatuses {
		state := "running"
		if s.State.Waiting != nil {
			state = s.State.Waiting.Reason
		}
		if last := s.LastTerminationState.Terminated; last != nil {
			state += fmt.Sprintf("(%s %d)", last.Reason, last.ExitCode)
		}
		out = append(out, fmt.Sprint(s.Name, ":", state, "/", s.RestartCount))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "Tired" {
			out = append(out, fmt.Sprint("Tired:", c.Status, " ", c.Reason, " ", c.LastTransitionTime.Sub(p.CreationTimestamp.Time)))
		}
	}
	return strings.Join(out, " ")
}

// TestCrashLoop lets one container of some pods crash. The simulated kubelet restarts it, each time after a longer
// pause, and the stage waits for it to run again.
func TestCrashLoop(t *testing.T) {
	inWorld(t, `
- {name: flaky, kind: Pod, selector: app=flaky, delay: 30s,
   when: "object.status.containerStatuses.all(c, has(c.state.running))",
   crash: {container: main, exitCode: 137, reason: OOMKilled}}
`, func(w world) {
		w.create("a", "flaky")
		w.create("b", "steady")
		require.Equal(w, "main:running/0 side:running/0", w.line("a"))
		pass(29 * time.Second)
		require.Equal(w, "main:running/0 side:running/0", w.line("a"))
		pass(2 * time.Second)
		require.Equal(w, "main:running(OOMKilled 137)/1 side:running/0", w.line("a"))
		pass(30 * time.Second)
		require.Equal(w, "main:CrashLoopBackOff(OOMKilled 137)/1 side:running/0", w.line("a"))
		pass(10 * time.Second)
		require.Equal(w, "main:running(OOMKilled 137)/2 side:running/0", w.line("a"))
		require.Equal(w, "main:running/0 side:running/0", w.line("b"))
	})
}

// TestConditions sets a condition of a pod, and then another value. A node under pressure gets its taint, and loses it.
// A stage that patches waits for another that acts first, so it does nothing.
func TestConditions(t *testing.T) {
	inWorld(t, `
- {name: tired, kind: Pod, delay: 1m, condition: {type: Tired, status: "True", reason: Work},
   when: '!object.status.conditions.exists(c, c.type == "Tired")'}
- {name: rested, kind: Pod, delay: 2m, condition: {type: Tired, status: "False"},
   when: 'object.status.conditions.exists(c, c.type == "Tired" && c.status == "True")'}
- {name: missing, kind: Pod, when: object.metadata.annotations.nothing == "x", delete: true}
- {name: late, kind: Node, delay: 5m, patch: {metadata: {labels: {late: "yes"}}},
   when: '!object.status.conditions.exists(c, c.type == "MemoryPressure" && c.status == "True")'}
- {name: pressure, kind: Node, delay: 1m, jitter: 1m, weight: 1000000, condition: {type: MemoryPressure, status: "True"},
   when: '!has(object.metadata.labels.relieved) && !object.status.conditions.exists(c, c.type == "MemoryPressure" && c.status == "True")'}
- {name: relief, kind: Node, delay: 1h, patch: {metadata: {labels: {relieved: "yes"}}},
   when: 'object.status.conditions.exists(c, c.type == "MemoryPressure" && c.status == "True") && !has(object.metadata.labels.relieved)'}
- {name: capacity, kind: Node, selector: relieved, status: {capacity: {leat.example/gpu: "2"}}}
`, func(w world) {
		w.create("a", "web")
		pass(59 * time.Second)
		require.NotContains(w, w.line("a"), "Tired")
		pass(2 * time.Second)
		require.Contains(w, w.line("a"), "Tired:True Work 1m0s")
		pass(2 * time.Minute)
		require.Contains(w, w.line("a"), "Tired:False  3m0s")
		node := func() *corev1.Node {
			return must.Get(w.nodes.Get(w.Context(), api.Key{Name: "node-0"}, metav1.GetOptions{}))(w)
		}
		require.Equal(w, "node.kubernetes.io/memory-pressure", node().Spec.Taints[0].Key)
		require.NotContains(w, node().Labels, "late")
		pass(24 * time.Hour)
		require.Equal(w, "yes", node().Labels["relieved"])
		require.Equal(w, "2", node().Status.Capacity.Name("leat.example/gpu", "").String())
	})
}

// TestLosses evicts a pod as soon as its budget allows it, and deletes another.
func TestLosses(t *testing.T) {
	inWorld(t, `
- {name: evict, kind: Pod, selector: app=web, delay: 10s, evict: true}
- {name: delete, kind: Pod, selector: app=batch, delay: 10s, delete: true, when: object.status.phase == "Running"}
`, func(w world) {
		budgets := apiclient.NewTyped[*policyv1.PodDisruptionBudget](w.client,
			api.Resource{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets", Namespaced: true}, "")
		one := intstr.FromInt32(1)
		must.Get(budgets.Create(w.Context(), &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		}, metav1.CreateOptions{}))(w)
		w.create("a", "web")
		w.create("b", "batch")
		pass(time.Minute)
		require.Equal(w, "gone", w.line("b"))
		require.Contains(w, w.line("a"), "running", "the budget allows no eviction")
		pass(time.Hour)
		require.NoError(w, budgets.Delete(w.Context(), key("web"), metav1.DeleteOptions{}))
		pass(15 * time.Second)
		require.Equal(w, "gone", w.line("a"))
	})
}

// TestWeights chooses one stage of ten in nine tenths of the cases.
func TestWeights(t *testing.T) {
	inWorld(t, `
- {name: often, kind: Pod, weight: 9, when: '!has(object.metadata.labels.way)', patch: {metadata: {labels: {way: often}}}}
- {name: rarely, kind: Pod, when: '!has(object.metadata.labels.way)', patch: {metadata: {labels: {way: rarely}}}}
`, func(w world) {
		ways := map[string]int{}
		for i := range 100 {
			w.create(fmt.Sprint("p", i), "web")
			p := must.Get(w.pods.Get(w.Context(), key(fmt.Sprint("p", i)), metav1.GetOptions{}))(w)
			ways[p.Labels["way"]]++
		}
		require.Equal(w, 100, ways["often"]+ways["rarely"], "%v", ways)
		require.Greater(w, ways["often"], 60)
		require.Positive(w, ways["rarely"])
	})
}

// TestRefusedPatch has a patch that the server refuses. The error names the stage, and the others go on.
func TestRefusedPatch(t *testing.T) {
	inWorld(t, `
- {name: wrong, kind: Pod, selector: app=web, patch: {spec: {nodeName: elsewhere}}}
- {name: right, kind: Pod, selector: app=batch, delete: true}
`, func(w world) {
		w.create("a", "web")
		w.create("b", "batch")
		pass(time.Minute)
		require.ErrorContains(w, *w.failed.Load(), `stage "wrong" of Pod default/a: `)
		require.Equal(w, "gone", w.line("b"))
	})
}

func TestParse(t *testing.T) {
	for file, message := range map[string]string{
		"": "the file has no stages", "a": "the file is not a list of stages", "- {kind: Pod, delay: 5}": "the file is not a list of stages",
		"- {kind: Pod, evict: true, dely: 1s}":                                                       `unknown field "dely"`,
		"- {kind: Job, delete: true}":                                                                `stage 1 (""): kind is "Job": it is Pod or Node`,
		"- {name: a, kind: Pod}":                                                                     `stage 1 ("a"): give exactly one of crash, condition, evict, delete, patch and status, not 0`,
		"- {name: a, kind: Pod, evict: true, delete: true}":                                          "not 2",
		"- {name: a, kind: Node, evict: true}":                                                       "crash and evict are for pods",
		"- {name: a, kind: Pod, evict: true}\n---\n- {name: b, kind: Pod, evict: true}":              "several YAML documents",
		"- {name: a, kind: Pod, evict: true, weight: 1000001}":                                       "weight is 1000001: it is at most 1000000",
		"- {name: a, kind: Pod, delay: -1s, evict: true}":                                            "must not be negative",
		"- {name: a, kind: Pod, condition: {type: A, status: 'yes'}}":                                `the status "yes"`,
		"- {name: a, kind: Pod, selector: '!!', evict: true}":                                        "selector: ",
		"- {name: a, kind: Pod, when: 'object.', evict: true}":                                       "when: ERROR: <input>:1:8",
		"- {name: a, kind: Pod, when: '1', evict: true}":                                             "when: it is of type int, not bool",
		"- {name: a, kind: Pod, evict: true}\n- {name: b, kind: Pod, when: pod == '1', evict: true}": `stage 2 ("b"): when: ERROR: <input>:1:1: undeclared reference to 'pod'`,
	} {
		_, err := stages.Parse([]byte(file))
		require.ErrorContains(t, err, message, file)
		require.ErrorContains(t, err, "stages: ", file)
	}
}

// TestThePage reads the example of docs/serve.md.
func TestThePage(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../../../docs/serve.md"))(t))
	_, example, found := strings.Cut(page, "# stages.yaml\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	require.Len(t, must.Get(stages.Parse([]byte(example)))(t), 3)
}
