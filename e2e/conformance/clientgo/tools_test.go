package clientgo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

// TestApplyConfiguration applies typed configurations of two managers, and gives a field up.
func TestApplyConfiguration(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	deployments := client.AppsV1().Deployments(namespace)
	labels := map[string]string{"app": "a"}
	container := applycorev1.Container().WithName("app").WithImage("app:1")
	config := appsv1.Deployment("d", namespace).WithSpec(appsv1.DeploymentSpec().
		WithReplicas(1).WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(applycorev1.PodSpec().WithContainers(container))))
	must.Get(deployments.Apply(t.Context(), config, metav1.ApplyOptions{FieldManager: "one"}))(t)

	sidecar := appsv1.Deployment("d", namespace).WithSpec(appsv1.DeploymentSpec().WithTemplate(applycorev1.PodTemplateSpec().
		WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("sidecar").WithImage("sidecar:1")))))
	both := must.Get(deployments.Apply(t.Context(), sidecar, metav1.ApplyOptions{FieldManager: "two"}))(t)
	require.Len(t, both.Spec.Template.Spec.Containers, 2, "containers are merged by name")

	owned := must.Get(appsv1.ExtractDeployment(both, "two"))(t)
	require.Len(t, owned.Spec.Template.Spec.Containers, 1)
	require.Equal(t, "sidecar", *owned.Spec.Template.Spec.Containers[0].Name)
	require.Nil(t, owned.Spec.Replicas)

	other := appsv1.Deployment("d", namespace).WithSpec(appsv1.DeploymentSpec().WithReplicas(5))
	_, err := deployments.Apply(t.Context(), other, metav1.ApplyOptions{FieldManager: "two"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	forced := must.Get(deployments.Apply(t.Context(), other, metav1.ApplyOptions{FieldManager: "two", Force: true}))(t)
	require.EqualValues(t, 5, *forced.Spec.Replicas)
	require.Len(t, forced.Spec.Template.Spec.Containers, 1, "a container that no manager applies goes")
	status := appsv1.Deployment("d", namespace).WithStatus(appsv1.DeploymentStatus().WithReplicas(5).WithObservedGeneration(2))
	applied := must.Get(deployments.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: "controller"}))(t)
	require.EqualValues(t, 5, applied.Status.Replicas)
}

// TestLeaderElection runs two candidates. The second leads after the first has released the Lease.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	leads := make(chan string, 2)
	candidate := func(name string) (*leaderelection.LeaderElector, context.CancelFunc, chan struct{}) {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "lock", client.CoreV1(), client.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: name})
		require.NoError(t, err)
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.Run(ctx)
		}()
		return e, cancel, done
	}
	first, stopFirst, firstDone := candidate("first")
	require.Equal(t, "first", <-leads)
	_, stopSecond, secondDone := candidate("second")
	require.True(t, first.IsLeader())
	stopFirst()
	<-firstDone
	require.Equal(t, "second", <-leads)
	lease := must.Get(client.CoordinationV1().Leases(namespace).Get(t.Context(), "lock", metav1.GetOptions{}))(t)
	require.Equal(t, "second", *lease.Spec.HolderIdentity)
	require.EqualValues(t, 1, *lease.Spec.LeaseTransitions)
	stopSecond()
	<-secondDone
}

// TestEventRecorders records the same event many times with the recorders of both groups.
func TestEventRecorders(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	m, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	old := record.NewBroadcaster()
	defer old.Shutdown()
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old"})
	for range 3 {
		recorder.Event(m, corev1.EventTypeNormal, "Old", "an event")
	}
	harness.Wait(t, "the Event of the core group", func() error {
		list, err := client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Old"})
		if err == nil && (len(list.Items) != 1 || list.Items[0].DeprecatedCount != 3) {
			return fmt.Errorf("%+v", list.Items)
		}
		return err
	})

	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	newer := broadcaster.NewRecorder(scheme.Scheme, "example.com/new")
	for range 3 {
		newer.Eventf(m, nil, corev1.EventTypeWarning, "New", "Test", "an event")
	}
	harness.Wait(t, "the Event of events.k8s.io", func() error {
		list, err := client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=New,involvedObject.name=m"})
		if err == nil && (len(list.Items) != 1 || list.Items[0].Series == nil || list.Items[0].Series.Count < 2) {
			return fmt.Errorf("%+v", list.Items)
		}
		return err
	})
	list := must.Get(client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=New"}))(t)
	require.Equal(t, "m", list.Items[0].Regarding.Name)
	require.Equal(t, "example.com/new", list.Items[0].ReportingController)
}

// TestMapper finds resources by short names, kinds and partial names.
func TestMapper(t *testing.T) {
	t.Parallel()
	shortcuts := restmapper.NewShortcutExpander(mapper, discovery.NewDiscoveryClientForConfigOrDie(server.Config), nil)
	for name, want := range map[string]schema.GroupVersionKind{
		"po":        corev1.SchemeGroupVersion.WithKind("Pod"),
		"pods":      corev1.SchemeGroupVersion.WithKind("Pod"),
		"pod":       corev1.SchemeGroupVersion.WithKind("Pod"),
		"deploy":    {Group: "apps", Version: "v1", Kind: "Deployment"},
		"sts":       {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		"hpa":       {Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		"cj":        {Group: "batch", Version: "v1", Kind: "CronJob"},
		"netpol":    {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		"ing":       {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		"sc":        {Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
		"crd":       {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		"pdb":       {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		"csr":       {Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
		"endpoints": corev1.SchemeGroupVersion.WithKind("Endpoints"),
	} {
		have, err := shortcuts.KindFor(schema.GroupVersionResource{Resource: name})
		require.NoError(t, err, name)
		require.Equal(t, want, have, name)
	}
	require.Error(t, must.Err(shortcuts.KindFor(schema.GroupVersionResource{Resource: "nothings"})))
}

// TestReviews asks who the user is and what the user may do, and gets a token for a service account.
func TestReviews(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	self := must.Get(client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	require.Contains(t, self.Status.UserInfo.Groups, "system:masters")

	access, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, access.Status.Allowed)

	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	token := must.Get(client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "a", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(t)
	review, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, review.Status.Authenticated, review.Status.Error)
	require.Equal(t, "system:serviceaccount:"+namespace+":a", review.Status.User.Username)
}

// TestDiscovery reads every document of discovery.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	c := discovery.NewDiscoveryClientForConfigOrDie(server.Config)
	version := must.Get(c.ServerVersion())(t)
	require.Equal(t, "1", version.Major)
	_, lists, err := c.ServerGroupsAndResources()
	require.NoError(t, err)
	require.Greater(t, len(lists), 15)
	preferred := must.Get(c.ServerPreferredNamespacedResources())(t)
	require.NotEmpty(t, preferred)
	document := must.Get(c.OpenAPISchema())(t)
	require.NotEmpty(t, document.GetDefinitions().GetAdditionalProperties())
	paths := must.Get(c.OpenAPIV3().Paths())(t)
	require.Contains(t, paths, "apis/apps/v1")
	schemas := must.Get(paths["apis/apps/v1"].Schema("application/json"))(t)
	require.Contains(t, string(schemas), "io.k8s.api.apps.v1.Deployment")
}
