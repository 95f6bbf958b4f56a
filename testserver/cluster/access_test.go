package cluster_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
)

// TestRBAC tries the roles of kube-apiserver, and a service account that gets one, with client-go.
func TestRBAC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{RBAC: true})
		admin := kubernetes.NewForConfigOrDie(c.Config())
		ann := kubernetes.NewForConfigOrDie(c.ConfigFor(cluster.User{Name: "ann"}))
		_, err := ann.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		require.EqualError(t, err, `pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"`)
		who, err := ann.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"system:authenticated"}, who.Status.UserInfo.Groups)

		account, err := admin.CoreV1().ServiceAccounts("default").Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = admin.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "viewer", Namespace: "default"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		token, err := admin.CoreV1().ServiceAccounts("default").CreateToken(ctx, "viewer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		config := rest.AnonymousClientConfig(c.Config())
		config.BearerToken = token.Status.Token
		viewer := kubernetes.NewForConfigOrDie(config)
		_, err = viewer.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		_, err = viewer.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err))
		review, err := viewer.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: "list", Resource: "pods",
			}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, `RBAC: allowed by RoleBinding "view/default" of ClusterRole "view" to ServiceAccount "viewer/default"`, review.Status.Reason)
		require.NoError(t, admin.CoreV1().ServiceAccounts("default").Delete(ctx, account.Name, metav1.DeleteOptions{}))
		_, err = viewer.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)

		_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "mills", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"leat.example"}, Resources: []string{"mills"}, Verbs: []string{"get"}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		view, err := admin.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"mills"}, view.Rules[0].Resources)
	})
}

func TestTokensOfOptions(t *testing.T) {
	tokens := cluster.Tokens{"a-credential": {Name: "ann", Groups: []string{"mills"}}}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", tokens, cluster.Options{Tokens: tokens}, tokens), "credential")
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{Tokens: tokens, NoAnonymous: true})
		config := rest.AnonymousClientConfig(c.Config())
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		config.BearerToken = "a-credential"
		client := kubernetes.NewForConfigOrDie(config)
		who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"mills", "system:authenticated"}, who.Status.UserInfo.Groups)
	})
}

// TestAnonymousRequests sends requests without credentials to servers with a token, with and without RBAC.
func TestAnonymousRequests(t *testing.T) {
	for _, rbac := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := cluster.Start(t, cluster.Options{RBAC: rbac, Server: testserver.Options{Tokens: map[string]string{"a-token": "ann"}}})
			send := func(token, path string) (int, string) {
				request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, c.Server.URL()+path, nil))(t)
				if token != "" {
					request.Header.Set("Authorization", "Bearer "+token)
				}
				answer := must.Get(c.Server.Client().Do(request))(t)
				defer answer.Body.Close()
				body := must.Get(io.ReadAll(answer.Body))(t)
				return answer.StatusCode, string(body)
			}
			for _, path := range []string{"/healthz", "/livez", "/readyz", "/version"} {
				code, _ := send("", path)
				require.Equal(t, 200, code, path)
			}
			for path, want := range map[string]string{
				"/api": `forbidden: User \"system:anonymous\" cannot get path \"/api\"`,
				"/api/v1/namespaces/default/pods": `pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" ` +
					`in the namespace \"default\"`,
				"/api/v1/namespaces/default//secrets/s": `forbidden: User \"system:anonymous\" cannot get resource \"/s\" in API group \"\" ` +
					`in the namespace \"default\"`,
			} {
				code, body := send("", path)
				require.Equal(t, 403, code, path)
				require.Contains(t, body, want)
			}
			code, _ := send("other", "/healthz")
			require.Equal(t, 401, code)
			if !rbac {
				code, _ = send("a-token", "/api/v1/pods")
				require.Equal(t, 200, code)
			}
		})
	}
}

func TestAdmissionPlugins(t *testing.T) {
	_, err := cluster.New(cluster.Options{DisableAdmissionPlugins: []string{"none"}})
	require.ErrorContains(t, err, `cluster: admission: disable "none"`)
	_, err = cluster.New(cluster.Options{EnableAdmissionPlugins: []string{"none"}})
	require.ErrorContains(t, err, `cluster: admission: enable "none"`)
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{EnableAdmissionPlugins: []string{"ServiceAccount"}})
		client := kubernetes.NewForConfigOrDie(c.Config())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		pod.Spec.ServiceAccountName = "none"
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		require.ErrorContains(t, err, `pods "a" is forbidden: error looking up service account default/none: serviceaccount "none" not found`)
	})
}

// TestTokensInWebSockets sends tokens as scripts of web pages do.
func TestTokensInWebSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{Tokens: cluster.Tokens{"ann-token": {Name: "ann"}}, NoAnonymous: true})
		dialer := &websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Server.Dial(ctx) }}
		for token, code := range map[string]int{"ann-token": 101, "other": 401} {
			bearer := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
			conn, answer, err := dialer.DialContext(t.Context(), "ws://testserver/api/v1/namespaces?watch=1", http.Header{
				"Origin": {"http://x"}, "Sec-Websocket-Protocol": {bearer + ", base64.binary.k8s.io"},
			})
			require.Equal(t, code, answer.StatusCode)
			if err == nil {
				require.Equal(t, "base64.binary.k8s.io", conn.Subprotocol())
				require.NoError(t, conn.Close())
			}
		}
	})
}
