package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/kubeconfig"
	"github.com/leatproject/leat/reconcile/await"
)

// podsOf returns a client of the pods on the server of a kubeconfig.
func podsOf(t *testing.T, path string) *apiclient.TypedClient[*corev1.Pod] {
	t.Helper()
	cfg, _, err := kubeconfig.Load(t.Context(), kubeconfig.Options{Path: path})
	require.NoError(t, err)
	client, err := apiclient.New(cfg)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return apiclient.NewTyped[*corev1.Pod](client, api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}, "default")
}

// setPod creates a pod with a phase, or updates it. A running pod is Ready.
func setPod(t *testing.T, pods *apiclient.TypedClient[*corev1.Pod], name string, phase corev1.PodPhase) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}}
	if _, err := pods.Get(t.Context(), api.Key{Name: name}, metav1.GetOptions{}); err != nil {
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	pod.Status = corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
	_, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestWait(t *testing.T) {
	path := serving(t)
	pods := podsOf(t, path)
	setPod(t, pods, "web", corev1.PodRunning)
	setPod(t, pods, "db", corev1.PodPending)
	for _, tc := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"pods/web --for condition=Ready", 0, "pod/web condition met\n", ""},
		{"po web --for condition=ready=true", 0, "pod/web condition met\n", ""},
		{"pods db --for condition=Ready=False --timeout 0", 0, "pod/db condition met\n", ""},
		{"pods/web pod/db --for create", 0, "pod/db condition met\npod/web condition met\n", ""},
		{"pods web db --for create", 0, "pod/db condition met\npod/web condition met\n", ""},
		{"pods --all --for jsonpath={.status.phase}", 0, "pod/db condition met\npod/web condition met\n", ""},
		{"pods -l app=web,tier!=cache --for create -A", 0, "pod/db condition met\npod/web condition met\n", ""},
		{"pods --field-selector metadata.name=web --for jsonpath={.status.phase}=Running", 0, "pod/web condition met\n", ""},
		{"pods/web --for jsonpath=.status.conditions[?(@.type==\"Ready\")].status=True", 0, "pod/web condition met\n", ""},
		{"pods/none --for delete", 0, "pod/none condition met\n", ""},
		{"pods -l app=none --for delete", 0, "", ""},
		{"namespaces/default --for create", 0, "namespace/default condition met\n", ""},
		{"pods -l app=none --for condition=Ready", 1, "", "wait for condition Ready=True of pods with app=none: await: the selection is empty"},
		{"pods db --for condition=Ready --timeout 0", 1, "", "condition Ready=True of pods default/db: not yet; still waiting for default/db (Ready=False)"},
		{"pods/web pods/db --for condition=Ready --timeout 1500ms", 1, "pod/web condition met\n", "timed out after 1.5s waiting for condition Ready=True of pods default/db; still waiting for default/db (Ready=False)"},
		{"pods --all --for condition=Ready --timeout 1500ms", 1, "", "timed out after 1.5s waiting for condition Ready=True of all pods; still waiting for default/db (Ready=False)"},
		{"pods/none --for create --timeout 1500ms", 1, "", "timed out after 1.5s waiting for creation of pods default/none; still waiting for default/none (does not exist)"},
		{"pods/web --for delete --timeout 1500ms -n default", 1, "", "timed out after 1.5s waiting for deletion of pods default/web; still waiting for default/web (at version "},
		{"pods/web --for jsonpath={.spec} --timeout 0", 0, "pod/web condition met\n", ""},
		{"pods/web --for jsonpath={.status}=x --timeout 0", 1, "", "{.status} leads to an object; only a plain value can be compared"},
		{"podz/web --for create", 1, "", `unknown resource "podz"`},
	} {
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			out, errs := newOutput(), newOutput()
			require.Equal(t, tc.code, run(t.Context(), append([]string{"wait", "--kubeconfig", path}, strings.Fields(tc.args)...), out, errs), errs)
			got := strings.SplitAfter(out.String(), "\n")
			require.ElementsMatch(t, strings.SplitAfter(tc.out, "\n"), got)
			require.Contains(t, errs.String(), tc.err)
			if tc.err == "" {
				require.Empty(t, errs.String())
			}
		})
	}
}

func TestWaitForWhatHappens(t *testing.T) {
	path := serving(t)
	pods := podsOf(t, path)
	setPod(t, pods, "web", corev1.PodPending)
	begin := func(ctx context.Context, args string) (*output, chan int) {
		ended, errs := make(chan int, 1), newOutput()
		go func() {
			ended <- run(ctx, append([]string{"wait", "--kubeconfig", path, "--timeout", "-1s"}, strings.Fields(args)...), newOutput(), errs)
		}()
		return errs, ended
	}
	_, ready := begin(t.Context(), "pods/web --for condition=Ready")
	_, gone := begin(t.Context(), "pods -l app=web --for delete")
	errs, never := begin(t.Context(), "pods/web pods/db --for jsonpath={.status.phase}=Failed")
	errs.await(t, "leat: waiting for {.status.phase}=Failed: ")
	errs.await(t, `pods: default/db (does not exist); pods: default/web ({.status.phase} is "Pending")`)
	setPod(t, pods, "web", corev1.PodRunning)
	require.Zero(t, <-ready)
	require.NoError(t, pods.Delete(t.Context(), api.Key{Name: "web"}, metav1.DeleteOptions{}))
	require.Zero(t, <-gone)
	require.Empty(t, never)

	ctx, cancel := context.WithCancel(t.Context())
	errs, never = begin(ctx, "pods/none --for create")
	errs.await(t, "waiting for creation: pods: default/none (does not exist)")
	cancel()
	require.Equal(t, 1, <-never, "what was waited for has not happened")
	require.Contains(t, errs.String(), "leat: interrupted waiting for creation of pods default/none; still waiting for")
}

func TestWaitNeedsAClearCommandLine(t *testing.T) {
	for args, says := range map[string]string{
		"":                                      "--for is needed",
		"pods/web":                              "--for is needed",
		"--for delete":                          "needs objects to wait for",
		"pods --for delete":                     "pods alone is not enough: add names, -l",
		"pods/web --for ready":                  `--for "ready": it is create, delete`,
		"pods/web --for delete=now":             `--for "delete=now": it is create, delete`,
		"pods/web --for create=now":             `--for "create=now": it is create, delete`,
		"pods/web --for condition":              `--for "condition": it is create, delete`,
		"pods/web --for condition=Ready=":       `--for "condition=Ready=": it is create, delete`,
		"pods/web --for jsonpath=":              `--for "jsonpath=": path "", in RFC 9535 "$": the path is empty`,
		"pods/web --for jsonpath={.a":           "the closing brace is missing",
		"pods/web --for create -l a=b":          "names exclude -l",
		"pods web --for create --all":           "names exclude -l",
		"pods/web --for create -A":              "names exclude -A",
		"pods --all --for create -l a=b":        "--all excludes -l",
		"pods --all --for create -A -n default": "-n and -A exclude each other",
		"pods -l a=(b --for create":             `--selector "a=(b"`,
		"pods --field-selector a --for create":  `--field-selector "a"`,
		"pods/web db --for create":              `"db" is not RESOURCE/NAME like the other arguments`,
		"pods/ --for create":                    `"pods/" is not RESOURCE/NAME`,
		"/web --for create":                     `"/web" is not RESOURCE/NAME`,
		"pods/web/x --for create":               `"pods/web/x" is not RESOURCE/NAME`,
		"pods/web --for create --timeout soon":  "--timeout",
	} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 2, run(t.Context(), append([]string{"wait"}, strings.Fields(args)...), out, errs), args)
		require.Contains(t, errs.String(), says, args)
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs)
	}
}

func TestWaitTellsAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := newOutput()
		p := newWaitProgress(told, "creation")
		pass := func(d time.Duration) string {
			before := len(told.String())
			<-time.After(d)
			synctest.Wait()
			return told.String()[before:]
		}
		pods, nodes := waitTarget{resource: "po"}, waitTarget{resource: "no"}
		pods.found.Plural, nodes.found.Plural = "pods", "nodes"
		web := await.Waiting{Key: api.Key{Name: "web"}}
		p.waiting(pods, []await.Waiting{web})
		require.Empty(t, pass(1900*time.Millisecond), "whoever waits for a moment wants no word")
		require.Equal(t, "leat: waiting for creation: pods: web (does not exist)\n", pass(200*time.Millisecond))
		require.Empty(t, pass(time.Minute), "nothing is new")
		p.failed(nodes, errors.New("no\nanswer"))
		require.Equal(t, "leat: waiting for creation: nodes: no; answer; pods: web (does not exist)\n", pass(2*time.Second))
		p.over(pods)
		p.waiting(nodes, nil)
		require.Equal(t, "leat: waiting for creation: nodes: the first of them\n", pass(2*time.Second))
		p.failed(nodes, errors.New("late"))
		p.stop()
		require.Empty(t, pass(time.Minute))
	})
}
