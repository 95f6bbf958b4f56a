package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leatproject/leat/internal/serve"
	"github.com/leatproject/leat/testserver/cluster"
)

// served runs the command until the test ends, and returns a client of its kubeconfig.
func served(t *testing.T, flags ...string) *kubernetes.Clientset {
	t.Helper()
	config, _ := startServer(t, flags...)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// startServer runs the command until the test ends, and returns its kubeconfig and the URL of its admin endpoint.
func startServer(t *testing.T, flags ...string) (config *rest.Config, admin string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ctx, cancel := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	var errs strings.Builder
	go func() {
		ended <- run(ctx, append(flags, "--listen", "127.0.0.1:0", "--kubeconfig-out", path), printed, &errs)
		printed.Close()
	}()
	t.Cleanup(func() {
		cancel()
		require.Zero(t, <-ended, errs.String())
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "try: ") {
		if url, ok := strings.CutPrefix(lines.Text(), "admin endpoint on "); ok {
			admin = strings.TrimSuffix(url, "/")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	return config, admin
}

func onePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
}

// TestClientGo runs the command, and uses its kubeconfig as client-go does.
func TestClientGo(t *testing.T) {
	client := served(t, "--tls", "--fault", "get secrets: fail 503")
	created, err := client.CoreV1().Pods("default").Create(t.Context(), onePod(), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.DNSClusterFirst, created.Spec.DNSPolicy, "a default")
	require.Equal(t, "default", created.Spec.ServiceAccountName)
	_, err = client.CoreV1().Pods("elsewhere").Create(t.Context(), onePod(), metav1.CreateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = client.CoreV1().Secrets("default").Get(t.Context(), "x", metav1.GetOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
}

func TestWrongCommandLines(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--nope"}, 2, "flag provided but not defined: -nope (see leat-server --help)"},
		{[]string{"x"}, 2, `it takes no argument, and got ["x"]`},
		{[]string{"assets", "-nope"}, 2, "flag provided but not defined: -nope (see leat-server assets --help)"},
		{[]string{"assets", "x", "y"}, 2, `assets takes one folder, and got ["x" "y"]`},
		{[]string{"--fault", "explode"}, 2, `"explode" is not an effect`},
		{[]string{"--listen", "nowhere"}, 2, "--listen: "},
		{[]string{"--rbac", "--tls"}, 2, "--rbac: it needs --token and --tls"},
		{[]string{"--rbac", "--token", "x"}, 2, "--rbac: it needs --token and --tls"},
		{[]string{"--nodes", "-1"}, 2, "--nodes -1: it is a number that is not negative"},
		{[]string{"--disable-admission-plugins", "LimitRanger,Nope"}, 2, `disable "Nope"`},
		{[]string{"--enable-admission-plugins", "Nope"}, 2, `enable "Nope"`},
	} {
		var out, errs strings.Builder
		require.Equal(t, tc.code, run(t.Context(), tc.args, &out, &errs))
		require.Empty(t, out.String())
		require.Contains(t, errs.String(), tc.says)
		require.Equal(t, 1, strings.Count(errs.String(), "\n"))
	}
	var out, errs strings.Builder
	require.Zero(t, run(t.Context(), []string{"--help"}, &out, &errs))
	require.Contains(t, out.String(), "-fault")
	require.Contains(t, out.String(), "-no-garbage-collection")
	require.Empty(t, errs.String())
	out.Reset()
	require.Zero(t, run(t.Context(), []string{"assets", "--help"}, &out, &errs))
	require.Equal(t, assetsHelp+"\n", out.String())
}

// TestFlagsOfTheCluster runs a cluster with nodes and controllers, in which one user may do everything and others
// nothing.
func TestFlagsOfTheCluster(t *testing.T) {
	client := served(t, "--nodes", "2", "--workloads", "--rbac", "--tls", "--token", "a-token", "--no-disruption-budgets")
	ctx := t.Context()
	pods, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	require.NoError(t, err)
	defer pods.Stop()
	labels := map[string]string{"app": "web"}
	_, err = client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for event := range pods.ResultChan() {
		if pod := event.Object.(*corev1.Pod); pod.Status.Phase == corev1.PodRunning {
			require.Contains(t, pod.Spec.NodeName, "node-")
			require.Equal(t, "default", pod.Spec.ServiceAccountName, "the plugin ServiceAccount is on")
			break
		}
	}
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "ann", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.False(t, review.Status.Allowed)
}

// TestEnvtest runs the server that envtest would start: with TLS, a user who may do everything, RBAC, and nothing else.
func TestEnvtest(t *testing.T) {
	client := served(t, "--envtest")
	ctx := t.Context()
	created, err := client.CoreV1().Pods("default").Create(ctx, onePod(), metav1.CreateOptions{})
	require.NoError(t, err, "it waits for no service account")
	require.Empty(t, created.Spec.Volumes)
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, node.Spec.Taints)
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"system:masters", "system:authenticated"}, self.Status.UserInfo.Groups)
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "ann", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.False(t, review.Status.Allowed)
}

// TestFlagsOfEnvtest requires that --envtest sets other flags, except those that are given.
func TestFlagsOfEnvtest(t *testing.T) {
	parse := func(args ...string) (clusterFlags, map[string]string) {
		var o serve.Options
		var c clusterFlags
		f := flag.NewFlagSet("leat-server", flag.ContinueOnError)
		o.Flags(f)
		c.add(f)
		require.NoError(t, f.Parse(args))
		require.NoError(t, c.complete(f))
		values := map[string]string{}
		f.VisitAll(func(one *flag.Flag) { values[one.Name] = one.Value.String() })
		return c, values
	}
	c, values := parse("--envtest")
	require.Equal(t, cluster.Behaviour{
		NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true,
	}, c.behaviour)
	require.True(t, c.rbac)
	require.Equal(t, "true", values["tls"])
	_, again := parse("--envtest")
	require.Len(t, values["token"], 26)
	require.NotEqual(t, values["token"], again["token"])

	c, values = parse("--no-garbage-collection=false", "--envtest", "--token", "mine", "--rbac=false")
	require.False(t, c.behaviour.NoGarbageCollection)
	require.True(t, c.behaviour.NoNamespaceDeletion)
	require.False(t, c.rbac)
	require.Equal(t, "mine", values["token"])

	c, values = parse()
	require.Equal(t, clusterFlags{}, c)
	require.Empty(t, values["token"])
}

// TestWithoutServiceAccounts creates a pod at once, because no account is needed.
func TestWithoutServiceAccounts(t *testing.T) {
	for _, flags := range [][]string{{"--no-service-accounts"}, {"--lenient"}, {"--disable-admission-plugins", "ServiceAccount"}} {
		created, err := served(t, flags...).CoreV1().Pods("default").Create(t.Context(), onePod(), metav1.CreateOptions{})
		require.NoError(t, err)
		require.Empty(t, created.Spec.Volumes)
	}
}
