package controllermanager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	quantity = resource.MustParse

	errStillThere = errors.New("it is still there")
)

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(errStillThere, err)
}

// TestLease checks that the controller manager leads.
func TestLease(t *testing.T) {
	t.Parallel()
	harness.Wait(t, "the Lease", func() error {
		lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
		if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
			return fmt.Errorf("%+v", lease.Spec)
		}
		return err
	})
}

// TestEndpoints checks that a Service gets an EndpointSlice and Endpoints with the addresses of its pods.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	_, err := client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec:       corev1.ServiceSpec{Selector: app, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	replicaSet(t, namespace, 2)
	var want []string
	for _, p := range waitForPods(t, namespace, 2) {
		want = append(want, p.Status.PodIP)
	}
	slices.Sort(want)
	harness.Wait(t, "the EndpointSlice", func() error {
		slicesOf, err := client.DiscoveryV1().EndpointSlices(namespace).List(t.Context(),
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=s"})
		if err != nil {
			return err
		}
		var have []string
		for _, s := range slicesOf.Items {
			for _, e := range s.Endpoints {
				if *e.Conditions.Ready {
					have = append(have, e.Addresses...)
				}
			}
		}
		slices.Sort(have)
		if !slices.Equal(want, have) {
			return fmt.Errorf("%v, want %v", have, want)
		}
		return nil
	})
}

// TestGarbageCollection deletes owners in the three ways.
func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			namespace := server.Namespace(t)
			deployment(t, namespace, 2)
			waitForPods(t, namespace, 2)
			require.NoError(t, client.AppsV1().Deployments(namespace).Delete(t.Context(), "d", metav1.DeleteOptions{PropagationPolicy: &policy}))
			harness.Wait(t, "the Deployment", func() error {
				_, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "d", metav1.GetOptions{})
				return gone(err)
			})
			left := 0
			if policy == metav1.DeletePropagationOrphan {
				left = 1
			}
			harness.Wait(t, "the ReplicaSet", func() error {
				sets, err := client.AppsV1().ReplicaSets(namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					return err
				}
				if len(sets.Items) != left || left == 1 && len(sets.Items[0].OwnerReferences) > 0 {
					return fmt.Errorf("%d ReplicaSets: %+v", len(sets.Items), sets.Items)
				}
				return nil
			})
			waitForPods(t, namespace, 2*left)
		})
	}
}

// TestNamespace deletes a namespace with objects, one of which has a finalizer.
func TestNamespace(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	replicaSet(t, namespace, 2)
	waitForPods(t, namespace, 2)
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))

	harness.Wait(t, "the condition", func() error {
		n, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		if err != nil {
			return err
		}
		remains := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue
		})
		if n.Status.Phase != corev1.NamespaceTerminating || !remains {
			return fmt.Errorf("%+v", n.Status)
		}
		return nil
	})
	must.Get(maps.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
	harness.Wait(t, "the end of the namespace", func() error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return gone(err)
	})
}

// TestServiceAccount checks that each namespace has a service account and the certificates of the server, also after
// somebody has deleted them.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	account := func() (*corev1.ServiceAccount, error) {
		return client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
	}
	harness.Wait(t, "the account", func() error {
		_, err := account()
		return err
	})
	first := must.Get(account())(t)
	require.NoError(t, client.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "default", metav1.DeleteOptions{}))
	harness.Wait(t, "the second account", func() error {
		second, err := account()
		if err == nil && second.UID == first.UID {
			return errStillThere
		}
		return err
	})
	harness.Wait(t, "the certificates", func() error {
		m, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		if err == nil && m.Data["ca.crt"] == "" {
			return fmt.Errorf("%v", m.Data)
		}
		return err
	})
}

// TestResourceQuota checks that a quota counts and refuses.
func TestResourceQuota(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	_, err := client.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceSecrets: quantity("2")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	secrets := client.CoreV1().Secrets(namespace)
	create := func(name string) error {
		_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	used := func(n string) {
		t.Helper()
		harness.Wait(t, "the quota", func() error {
			q, err := client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), "q", metav1.GetOptions{})
			if have := q.Status.Used[corev1.ResourceSecrets]; err == nil && have.String() != n {
				return fmt.Errorf("%s used, want %s", have.String(), n)
			}
			return err
		})
	}
	used("0")
	// The controller may count while its cache lacks the newest Secrets. Then kube-apiserver accepts one too many.
	var names []string
	err = nil
	for err == nil && len(names) < 5 {
		names = append(names, fmt.Sprintf("secret-%d", len(names)))
		err = create(names[len(names)-1])
	}
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "exceeded quota: q, requested: secrets=1, used: secrets=2, limited: secrets=2")
	for _, name := range names[:len(names)-1] {
		require.NoError(t, secrets.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	used("0")
	require.NoError(t, create("again"))
}

// TestDisruptionBudget checks the number of allowed disruptions, and that an eviction beyond it is refused.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	deployment(t, namespace, 2)
	list := waitForPods(t, namespace, 2)
	one := intstr.FromInt32(2)
	_, err := client.PolicyV1().PodDisruptionBudgets(namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: app}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Wait(t, "the budget", func() error {
		b, err := client.PolicyV1().PodDisruptionBudgets(namespace).Get(t.Context(), "b", metav1.GetOptions{})
		if err == nil && (b.Status.CurrentHealthy != 2 || b.Status.DesiredHealthy != 2 || b.Status.ObservedGeneration != b.Generation) {
			return fmt.Errorf("%+v", b.Status)
		}
		return err
	})
	err = client.PolicyV1().Evictions(namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: list[0].Name, Namespace: namespace}})
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
}

// TestAggregatedRole checks that the rules of selected ClusterRoles come together in another one.
func TestAggregatedRole(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"leat.example.com/to": "whole"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	roles := client.RbacV1().ClusterRoles()
	t.Cleanup(func() {
		for _, name := range []string{"whole", "part"} {
			_ = roles.Delete(context.Background(), name, metav1.DeleteOptions{}) // the next run fails if it is still there
		}
	})
	_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "whole"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: labels}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: labels}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	harness.Wait(t, "the rules", func() error {
		whole, err := roles.Get(t.Context(), "whole", metav1.GetOptions{})
		if err == nil && len(whole.Rules) != 1 {
			return fmt.Errorf("%+v", whole.Rules)
		}
		return err
	})
}
