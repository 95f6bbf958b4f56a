package main

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver/faults"
)

// withAgent runs the agent of node n1.
func withAgent(t *testing.T, test func(k *testkit.Kit, a *agent, out *strings.Builder)) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		pod(k, "here", "n1", "10.0.0.1")
		pod(k, "elsewhere", "n2", "10.0.0.2")
		out := &strings.Builder{} // only the worker writes, and only while the test waits
		a, err := newAgent(program.Options{Name: "nodeagent", Client: k.Client, Logger: k.Logger}, "n1", out)
		require.NoError(t, err)
		k.Start(a.program.Run)
		test(k, a, out)
	})
}

func pod(k *testkit.Kit, name, node, ip string) {
	testkit.Create(k, podsResource, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "main:1"}}},
	})
	testkit.Edit(k, podsResource, api.Key{Namespace: "default", Name: name}, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, ip
	})
}

func TestAgentKnowsThePodsOfItsNode(t *testing.T) {
	withAgent(t, func(k *testkit.Kit, a *agent, out *strings.Builder) {
		k.Pass(time.Minute) // the jitter of the first list
		require.Equal(t, "default/here: 10.0.0.1\n", out.String())
		pod(k, "later", "n1", "10.0.0.3")
		require.Contains(t, out.String(), "default/later: 10.0.0.3\n")
		testkit.Delete(k, podsResource, api.Key{Namespace: "default", Name: "here"})
		require.NotContains(t, out.String(), "elsewhere")
		require.Equal(t, "spec.nodeName=n1", a.pods.Options().Selector.Fields)
	})
}

func TestAgentWithAnOldCacheIsNotReady(t *testing.T) {
	withAgent(t, func(k *testkit.Kit, a *agent, _ *strings.Builder) {
		ready := func() int {
			w := httptest.NewRecorder()
			a.program.Manager.Readyz().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			return w.Code
		}
		k.Pass(time.Minute)
		require.Equal(t, 200, ready())
		outage := k.Server.Inject(faults.Fault{Effect: faults.Outage{}})
		k.Pass(6 * time.Minute)
		require.Equal(t, 500, ready())
		outage.Remove()
		k.Pass(time.Minute)
		pod(k, "later", "n1", "10.0.0.3") // a server without writes sends no bookmarks
		require.Equal(t, 200, ready())
	})
}

func TestAgentNeedsANode(t *testing.T) {
	_, err := newAgent(program.Options{Name: "nodeagent"}, "", nil)
	require.ErrorContains(t, err, "NODE_NAME")
}

// TestManifestFitsTheAgent checks what the manifest and the program must agree on.
func TestManifestFitsTheAgent(t *testing.T) {
	text, err := os.ReadFile("manifest.yaml")
	require.NoError(t, err)
	documents := strings.Split(string(text), "\n---\n")
	require.Len(t, documents, 4)
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[1]), &role))
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}}, role.Rules)
	var set appsv1.DaemonSet
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[3]), &set))
	main := set.Spec.Template.Spec.Containers[0]
	require.Equal(t, "NODE_NAME", main.Env[0].Name)
	require.Equal(t, "spec.nodeName", main.Env[0].ValueFrom.FieldRef.FieldPath)
	soft, err := resource.ParseQuantity(strings.TrimSuffix(main.Env[1].Value, "B"))
	require.NoError(t, err)
	require.Equal(t, 3*main.Resources.Limits.Memory().Value(), 4*soft.Value(), "GOMEMLIMIT is three quarters of the limit")
	require.EqualValues(t, 8081, main.Ports[0].ContainerPort)
}

// TestPageShowsTheAgent holds docs/agent.md to the code, to the manifest and to the figures of the bench.
func TestPageShowsTheAgent(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(content)
	}
	page, figures := read("../../docs/agent.md"), read("../../docs/benchmarks/rows.md")
	ours := read("main.go") + read("pod.go") + read("manifest.yaml")
	shown := 0
	for n, block := range strings.Split(page, "```") {
		if n%2 == 0 || strings.HasPrefix(block, "sh\n") {
			continue
		}
		_, code, _ := strings.Cut(block, "\n")
		for line := range strings.Lines(code) {
			require.Contains(t, ours, strings.TrimSpace(line))
		}
		shown++
	}
	require.Equal(t, 4, shown)
	cells := regexp.MustCompile(`(?m)^\| [^|]+ \| ([\d,.]+) (\S+) \| "([^"|]+)", ([^|]+) \|$`).FindAllStringSubmatch(page, -1)
	require.Len(t, cells, 9)
	for _, c := range cells {
		_, row, found := strings.Cut(figures, "\n## "+c[3]+"\n")
		require.True(t, found, c[0])
		row, _, _ = strings.Cut(row, "\n## ")
		line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c[4]) + ` \|.*$`).FindString(row)
		require.Regexp(t, `\| `+regexp.QuoteMeta(c[1])+` (\||<)`, line, c[0])
	}
}
