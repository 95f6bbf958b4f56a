package cluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/faults"
)

// TestUsersOfEnvironment adds users, of whom one may do everything.
func TestUsersOfEnvironment(t *testing.T) {
	for name, allowed := range map[string]bool{"RBAC": false, "AlwaysAllow": true} {
		t.Run(name, func(t *testing.T) {
			env := &cluster.Environment{AlwaysAllow: allowed}
			config, err := env.Start()
			require.NoError(t, err)
			defer func() { require.NoError(t, env.Stop()) }()
			list := func(u *cluster.AuthenticatedUser) error {
				_, err := kubernetes.NewForConfigOrDie(u.Config()).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
				return err
			}
			ann, err := env.AddUser(cluster.User{Name: "ann"}, nil)
			require.NoError(t, err)
			if allowed {
				require.NoError(t, list(ann))
			} else {
				require.EqualError(t, list(ann), `pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"`)
			}
			chief, err := env.AddUser(cluster.User{Name: "chief", Groups: []string{"system:masters"}}, nil)
			require.NoError(t, err)
			require.NoError(t, list(chief))
			_, err = env.AddUser(cluster.User{}, nil)
			require.EqualError(t, err, "cluster: add a user: it has no name")

			base := rest.CopyConfig(config) // of the administrator
			base.UserAgent, base.QPS, base.Username, base.Password = "suite", 7, "x", "y"
			bob, err := env.AddUser(cluster.User{Name: "bob", Groups: []string{"mills"}}, base)
			require.NoError(t, err)
			require.Equal(t, config.Host, base.Host)
			require.Equal(t, "suite", bob.Config().UserAgent)
			require.EqualValues(t, 7, bob.Config().QPS)
			require.EqualValues(t, -1, ann.Config().QPS)
			text, err := bob.KubeConfig()
			require.NoError(t, err)
			fromFile, err := clientcmd.RESTConfigFromKubeConfig(text)
			require.NoError(t, err)
			who, err := kubernetes.NewForConfigOrDie(fromFile).AuthenticationV1().SelfSubjectReviews().Create(
				t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Equal(t, "bob", who.Status.UserInfo.Username)
			require.Equal(t, []string{"mills", "system:authenticated"}, who.Status.UserInfo.Groups)
		})
	}
}

// existing is a running cluster, and what it has after another environment used it.
type existing struct {
	*testing.T
	env    *cluster.Environment
	crds   apiextensions.Interface
	client kubernetes.Interface
}

func newExisting(t *testing.T) *existing {
	env := &cluster.Environment{}
	config := must.Get(env.Start())(t)
	t.Cleanup(func() { require.NoError(t, env.Stop()) })
	return &existing{t, env, apiextensions.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)}
}

// requireDefinition checks whether the cluster has the definition of Wheels.
func (e *existing) requireDefinition(exists bool) {
	e.Helper()
	_, err := e.crds.ApiextensionsV1().CustomResourceDefinitions().Get(e.Context(), "wheels.leat.example", metav1.GetOptions{})
	require.Equal(e, exists, err == nil, "%v", err)
	require.True(e, exists || apierrors.IsNotFound(err), "%v", err)
}

// hook returns a webhook configuration whose webhook has a name.
func hook(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none := admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "mills"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b"}},
		}},
	}
}

// using returns an environment that uses the cluster.
func (e *existing) using() *cluster.Environment {
	return &cluster.Environment{
		UseExistingCluster: new(true), Config: e.env.Config,
		CRDs: []*apiextensionsv1.CustomResourceDefinition{wheels("v1", true)},
		WebhookInstallOptions: cluster.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{hook("suite.leat.example")},
		},
	}
}

// TestExistingCluster installs objects in a cluster, with and without one that it has already.
func TestExistingCluster(t *testing.T) {
	e := newExisting(t)
	hooks := e.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	env := e.using()
	env.Options.WebhookService = func(string, string, int32) (string, error) { return "localhost:1", nil } // without effect
	config, err := env.Start()
	require.NoError(t, err)
	require.Same(t, e.env.Config, config)
	require.Nil(t, env.Cluster)
	e.requireDefinition(true)
	installed, err := hooks.Get(t.Context(), "mills", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, *installed.Webhooks[0].ClientConfig.URL, "https://127.0.0.1:")
	_, err = env.AddUser(cluster.User{Name: "ann"}, nil)
	require.EqualError(t, err, "cluster: add the user ann: the cluster existed before (use Impersonate of rest.Config instead)")
	require.NoError(t, env.Stop())
	e.requireDefinition(true)
	_, err = hooks.Get(t.Context(), "mills", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	_, err = hooks.Create(t.Context(), hook("theirs.leat.example"), metav1.CreateOptions{})
	require.NoError(t, err)
	env = e.using()
	_, err = env.Start()
	require.NoError(t, err)
	installed, err = hooks.Get(t.Context(), "mills", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "suite.leat.example", installed.Webhooks[0].Name)
	require.NoError(t, env.Stop())
	installed, err = hooks.Get(t.Context(), "mills", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "theirs.leat.example", installed.Webhooks[0].Name)
}

func TestExistingClusterCleansUp(t *testing.T) {
	e := newExisting(t)
	env := e.using()
	env.CRDInstallOptions.CleanUpAfterUse = true
	must.Get(env.Start())(t)
	e.requireDefinition(true)
	require.NoError(t, env.Stop())
	e.requireDefinition(false)
}

// TestExistingClusterOfVariables finds the cluster by the variables that envtest and kubectl read.
func TestExistingClusterOfVariables(t *testing.T) {
	e := newExisting(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, e.env.KubeConfig, 0o600))
	t.Setenv("KUBECONFIG", path)
	t.Setenv("USE_EXISTING_CLUSTER", "TRUE")
	env := &cluster.Environment{}
	config, err := env.Start()
	require.NoError(t, err)
	require.Equal(t, e.env.Config.Host, config.Host)
	require.EqualValues(t, -1, config.QPS)
	require.NoError(t, env.Stop())

	env = &cluster.Environment{UseExistingCluster: new(false)}
	config, err = env.Start()
	require.NoError(t, err)
	require.NotEqual(t, e.env.Config.Host, config.Host)
	require.NoError(t, env.Stop())

	t.Setenv("KUBECONFIG", path+"-missing")
	_, err = (&cluster.Environment{}).Start()
	require.ErrorContains(t, err, "cluster: find the existing cluster: ")
}

// TestExistingClusterThatFails checks that a failed Start removes what it has installed.
func TestExistingClusterThatFails(t *testing.T) {
	e := newExisting(t)
	refuse := e.env.Cluster.Server.Inject(faults.Fault{
		Match:  faults.Match{Verbs: []string{"create"}, Resource: "validatingwebhookconfigurations.admissionregistration.k8s.io"},
		Effect: faults.Fail{Code: http.StatusForbidden, Message: "not today"},
	})
	env := e.using()
	_, err := env.Start()
	require.EqualError(t, err, "cluster: create the ValidatingWebhookConfiguration mills: not today")
	e.requireDefinition(false)
	refuse.Remove()
	e.env.Cluster.Server.Inject(faults.Fault{ // an error of discovery that passes
		Match:  faults.Match{Func: func(r *http.Request) bool { return r.URL.Path == "/apis/leat.example/v1" }},
		Effect: faults.Fail{Code: http.StatusServiceUnavailable}, Times: 1,
	})
	_, err = env.Start()
	require.NoError(t, err)
	require.NoError(t, env.Stop())
}
