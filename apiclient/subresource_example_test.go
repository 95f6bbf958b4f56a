package apiclient_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver"
)

// withWeb runs an API server in memory with a pod, a deployment and a service account with the name web.
func withWeb(show func(ctx context.Context, s *testserver.Server, c *apiclient.Client) error) {
	s := testserver.New(testserver.Options{ImmediateDeletion: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = s.Run(ctx) }()
	c, err := apiclient.New(apiclient.Config{Host: s.URL(), Transport: s.Client().Transport})
	meta, two := metav1.ObjectMeta{Namespace: "default", Name: "web"}, int32(2)
	for r, object := range map[api.Resource]any{
		podResource:     &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}},
		deployments:     &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &two}},
		serviceAccounts: &corev1.ServiceAccount{ObjectMeta: meta},
	} {
		if err == nil {
			_, err = s.Create(r, object)
		}
	}
	if err == nil {
		err = show(ctx, s, c)
	}
	if err != nil {
		fmt.Println(err)
	}
}

// The replicas of any scalable object can be read and set without its type.
func ExampleSubresource() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		scale := apiclient.Subresource[*autoscalingv1.Scale, *autoscalingv1.Scale](c, deployments, web, "scale")
		now, err := scale.Get(ctx, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec.Replicas++
		now, err = scale.Update(ctx, now, metav1.UpdateOptions{}) // a conflict if the object was changed meanwhile
		if err != nil {
			return err
		}
		fmt.Println(now.Spec.Replicas)
		patch, err := apiclient.MergePatch(map[string]any{"spec": map[string]any{"replicas": 7}})
		if err != nil {
			return err
		}
		now, err = scale.Patch(ctx, patch, metav1.PatchOptions{}) // without regard to the current value
		if err != nil {
			return err
		}
		fmt.Println(now.Spec.Replicas)
		return nil
	})
	// Output:
	// 3
	// 7
}

// An eviction deletes a pod if its disruption budgets allow it. Otherwise the server answers 429 with a delay.
func ExampleSubresource_eviction() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		eviction := &policyv1.Eviction{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		}
		status, err := apiclient.Subresource[*policyv1.Eviction, *metav1.Status](c, podResource, web, "eviction").
			Create(ctx, eviction, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		fmt.Println(status.Status)
		return nil
	})
	// Output: Success
}

// A scheduler binds a pod to a node.
func ExampleSubresource_binding() {
	withWeb(func(ctx context.Context, s *testserver.Server, c *apiclient.Client) error {
		binding := &corev1.Binding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		}
		_, err := apiclient.Subresource[*corev1.Binding, *metav1.Status](c, podResource, web, "binding").
			Create(ctx, binding, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod, err := apiclient.NewPartial[*corev1.Pod](c, podResource, "").Get(ctx, web, metav1.GetOptions{})
		if err != nil {
			return err
		}
		fmt.Println(pod.Spec.NodeName)
		return nil
	})
	// Output: node-1
}

// A token of a service account is created for an audience and a duration.
func ExampleSubresource_token() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		seconds := int64(600)
		request := &authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Spec:     authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}, ExpirationSeconds: &seconds},
		}
		token, err := apiclient.Subresource[*authenticationv1.TokenRequest, *authenticationv1.TokenRequest](c, serviceAccounts, web, "token").
			Create(ctx, request, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		fmt.Println(token.Spec.Audiences, token.Status.Token != "")
		return nil
	})
	// Output: [vault] true
}

// The status of an object is a subresource with the object's type.
func ExampleTypedClient_UpdateStatus() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		pods := apiclient.NewTyped[*corev1.Pod](c, podResource, "default")
		pod, err := pods.Get(ctx, web, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		if pod, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
		fmt.Println(pod.Status.Phase)
		return nil
	})
	// Output: Running
}

// A log is a stream. With Follow, it ends with the container, with the context, or at Close.
func ExampleClient_Stream() {
	withWeb(func(ctx context.Context, s *testserver.Server, c *apiclient.Client) error {
		if err := s.AppendLog(web, "app", "the sluice is open", "the wheel turns"); err != nil {
			return err
		}
		lines := int64(1)
		log, err := c.Stream(ctx, podResource, web, "log", &corev1.PodLogOptions{Container: "app", TailLines: &lines})
		if err != nil {
			return err
		}
		defer log.Close()
		text, err := io.ReadAll(log)
		fmt.Println(strings.TrimSpace(string(text)))
		return err
	})
	// Output: the wheel turns
}

// A table has the columns that the server chooses for people.
func ExampleTablesOf() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		table, err := apiclient.TablesOf(c, podResource, "default").List(ctx, metav1.ListOptions{Limit: 100}, metav1.IncludeNone)
		if err != nil {
			return err
		}
		for _, column := range table.ColumnDefinitions {
			fmt.Print(column.Name, " ")
		}
		for _, row := range table.Rows {
			fmt.Print("| ", row.Cells[0], " ")
		}
		fmt.Println()
		return nil
	})
	// Output: Name Age | web
}

// A loop over all objects requests one page after another, and holds none.
func ExampleAll() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		namespaces := apiclient.NewPartial[*metav1.PartialObjectMetadata](c, api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}, "")
		for ns, err := range apiclient.All(ctx, namespaces, apiclient.PageOptions[*metav1.PartialObjectMetadata]{}) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(ns.Name, "kube-") {
				fmt.Println(ns.Name)
				break
			}
		}
		return nil
	})
	// Output: kube-node-lease
}

// A client that reads an object, changes it and writes it back may have to read it again.
func ExampleRetryOnConflict() {
	withWeb(func(ctx context.Context, _ *testserver.Server, c *apiclient.Client) error {
		pods := apiclient.NewTyped[*corev1.Pod](c, podResource, "default")
		return apiclient.RetryOnConflict(ctx, apiclient.ConflictOptions{}, func(ctx context.Context) error {
			pod, err := pods.Get(ctx, web, metav1.GetOptions{})
			if err != nil {
				return err
			}
			pod.Labels = map[string]string{"seen": "yes"}
			pod, err = pods.Update(ctx, pod, metav1.UpdateOptions{})
			if err == nil {
				fmt.Println(pod.Labels["seen"])
			}
			return err
		})
	})
	// Output: yes
}
