package identity_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/builtin"
	"github.com/leatproject/leat/testserver/cluster/internal/identity"
	"github.com/leatproject/leat/testserver/cluster/internal/informers"
	"github.com/leatproject/leat/testserver/cluster/internal/rbac"
	"github.com/leatproject/leat/testserver/internal/extension"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// world is a server with RBAC. Its admin and its user ann have tokens.
type world struct {
	*testing.T
	server *testserver.Server
	who    *identity.Identity
	policy *rbac.Policy
}

const (
	admin = "admin-credential"
	ann   = "ann-credential"
)

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		factory := informers.New()
		policy := rbac.New(factory)
		who := must.Get(identity.New(factory, identity.Options{
			Tokens: identity.Tokens{
				admin: {Name: "root", Groups: []string{"system:masters"}},
				ann:   {Name: "ann", UID: "7", Groups: []string{"mills"}, Extra: map[string][]string{"team": {"a", "b"}}},
			},
			Authorizer: policy, Rules: policy,
		}))(t)
		server := testserver.NewExtended(testserver.Options{TLS: true}, extension.Extension{
			Connect: factory.Connect, Resources: who.Resources(builtin.Resources()),
			Authenticate: who.Authenticate, Authorize: identity.Authorize(policy),
		})
		done := make(chan error, 1)
		go func() { done <- server.Run(t.Context()) }()
		t.Cleanup(func() { require.NoError(t, <-done) })
		test(&world{T: t, server: server, who: who, policy: policy})
	})
}

// send sends a request and returns the status and the answer. A header is "Name: value".
func (w *world) send(method, path, token, body string, headers ...string) (int, map[string]any) {
	w.Helper()
	r := must.Get(http.NewRequestWithContext(w.Context(), method, w.server.URL()+path, bytes.NewReader([]byte(body))))(w)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	client := w.server.Client()
	defer client.CloseIdleConnections()
	response := must.Get(client.Do(r))(w)
	defer func() { require.NoError(w, response.Body.Close()) }()
	answer := must.Get(io.ReadAll(response.Body))(w)
	var tree map[string]any
	require.NoError(w, json.Unmarshal(answer, &tree), "%s", answer)
	for _, t := range []string{admin, ann} {
		require.NotContains(w, string(answer), t)
	}
	return response.StatusCode, tree
}

// bootstrap creates the roles that kube-apiserver has when it starts.
func (w *world) bootstrap() {
	w.Helper()
	for _, o := range rbac.Bootstrap() {
		must.Get(w.server.Create(resourceOf(o), o))(w)
	}
}

// at sends a request with a client certificate and returns the user that the server sees, or the status.
func (w *world) at(cert tls.Certificate) any {
	w.Helper()
	client := w.server.Client()
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
	defer client.CloseIdleConnections()
	response := must.Get(client.Post(w.server.URL()+whoami, "application/json", strings.NewReader("{}")))(w)
	defer func() { require.NoError(w, response.Body.Close()) }()
	var answer map[string]any
	require.NoError(w, json.NewDecoder(response.Body).Decode(&answer))
	if response.StatusCode != http.StatusCreated {
		return response.StatusCode
	}
	user := answer["status"].(map[string]any)["userInfo"].(map[string]any)
	return []any{user["username"], user["groups"]}
}

// make creates an object as the admin.
func (w *world) make(r api.Resource, namespace, body string) *unstructured.Unstructured {
	w.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(w, json.Unmarshal([]byte(body), &u.Object))
	u.SetNamespace(namespace)
	out := must.Get(w.server.Create(r, u))(w)
	return out
}

// grant lets a subject do something in the namespace default. Rules are in JSON.
func (w *world) grant(name, subject, rules string) {
	w.Helper()
	w.make(roles, "default", `{"metadata":{"name":"`+name+`"},"rules":[`+rules+`]}`)
	w.make(bindings, "default", `{"metadata":{"name":"`+name+`"},"subjects":[`+subject+
		`],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"`+name+`"}}`)
}

var (
	roles           = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role", Plural: "roles", Namespaced: true}
	bindings        = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding", Plural: "rolebindings", Namespaced: true}
	clusterRoles    = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Plural: "clusterroles"}
	clusterBindings = api.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding", Plural: "clusterrolebindings"}
	accounts        = api.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	pods            = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

const (
	annSubject = `{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ann"}`
	whoami     = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	readPods   = `{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}`
	podsPath   = "/api/v1/namespaces/default/pods"
)

func (w *world) message(method, path, token string, headers ...string) string {
	w.Helper()
	code, answer := w.send(method, path, token, "", headers...)
	require.GreaterOrEqual(w, code, 400)
	require.EqualValues(w, code, answer["code"])
	return answer["message"].(string)
}

func TestClientCertificates(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bootstrap()
		bob := registry.User{Name: "bob", Groups: []string{"mills", "dev"}}
		require.Equal(t, []any{"bob", []any{"dev", "mills", "system:authenticated"}}, w.at(w.who.Certificate(bob)))
		other := must.Get(identity.New(informers.New(), identity.Options{Authorizer: w.policy}))(t)
		require.Equal(t, 401, w.at(other.Certificate(bob)), "signed by another authority")
	})
}

func TestRolesCountAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		require.Equal(t, `pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "default"`,
			w.message("GET", podsPath, ann))
		w.grant("reader", annSubject, readPods)
		code, _ := w.send("GET", podsPath, ann, "")
		require.Equal(t, 200, code)
		require.NoError(t, w.server.Delete(bindings, api.Key{Namespace: "default", Name: "reader"}))
		code, _ = w.send("GET", podsPath, ann, "")
		require.Equal(t, 403, code)
	})
}

func TestImpersonation(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bootstrap()
		code, answer := w.send("POST", whoami, admin, "{}", "Impersonate-User: bob", "Impersonate-Group: x", "Impersonate-Group: y",
			"Impersonate-Uid: 5", "Impersonate-Extra-Team%2fa: z")
		require.Equal(t, 201, code, "%v", answer)
		require.Equal(t, map[string]any{
			"username": "bob", "uid": "5", "groups": []any{"x", "y", "system:authenticated"},
			"extra": map[string]any{"team/a": []any{"z"}},
		}, answer["status"].(map[string]any)["userInfo"])
		_, answer = w.send("POST", whoami, admin, "{}", "Impersonate-User: system:serviceaccount:default:builder")
		require.Equal(t, []any{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"},
			answer["status"].(map[string]any)["userInfo"].(map[string]any)["groups"])
		require.Contains(t, w.message("POST", whoami, ann, "Impersonate-User: bob"),
			`User "ann" cannot impersonate-on:user-info:create resource "selfsubjectreviews" in API group "authentication.k8s.io"`)
		require.Contains(t, w.message("POST", whoami, admin, "Impersonate-Group: x"), "without impersonating a user")
	})
}

func TestServiceAccountTokens(t *testing.T) {
	inWorld(t, func(w *world) {
		sa := w.make(accounts, "default", `{"metadata":{"name":"builder"}}`)
		pod := w.make(pods, "default", `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"builder","containers":[{"name":"c","image":"i"}]}}`)
		const path = "/api/v1/namespaces/default/serviceaccounts/builder/token"
		code, answer := w.send("POST", path, admin, `{"spec":{"expirationSeconds":600}}`)
		require.Equal(t, 201, code)
		token := answer["status"].(map[string]any)["token"].(string)
		require.Equal(t, "2000-01-01T00:10:00Z", answer["status"].(map[string]any)["expirationTimestamp"])
		require.Equal(t, []any{identity.Issuer}, answer["spec"].(map[string]any)["audiences"])

		_, answer = w.send("POST", whoami, token, "{}")
		require.Equal(t, 403, int(answer["code"].(float64)), "an account has no rights of its own")
		w.make(clusterRoles, "", `{"metadata":{"name":"who"},"rules":[{"apiGroups":["*"],"resources":["selfsubjectreviews"],"verbs":["create"]}]}`)
		w.make(clusterBindings, "", `{"metadata":{"name":"who"},"subjects":[{"kind":"ServiceAccount","name":"builder","namespace":"default"}],`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"who"}}`)
		_, answer = w.send("POST", whoami, token, "{}")
		info := answer["status"].(map[string]any)["userInfo"].(map[string]any)
		require.Equal(t, "system:serviceaccount:default:builder", info["username"])
		require.Equal(t, string(sa.GetUID()), info["uid"])
		require.Contains(t, info["groups"], "system:serviceaccounts:default")

		_, answer = w.send("POST", path, admin, `{"spec":{"audiences":["vault"],"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}}`)
		bound := answer["status"].(map[string]any)["token"].(string)
		code, _ = w.send("POST", whoami, bound, "{}")
		require.Equal(t, 401, code, "the server is not in the audience")
		review := func() map[string]any {
			_, answer := w.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", admin,
				`{"spec":{"token":"`+bound+`","audiences":["vault"]}}`)
			return answer["status"].(map[string]any)
		}
		status := review()
		require.Equal(t, true, status["authenticated"])
		require.Equal(t, []any{"vault"}, status["audiences"])
		require.Equal(t, []any{string(pod.GetUID())}, status["user"].(map[string]any)["extra"].(map[string]any)["authentication.kubernetes.io/pod-uid"])
		require.NoError(t, w.server.Delete(pods, api.Key{Namespace: "default", Name: "p"}))
		status = review()
		require.Nil(t, status["authenticated"])
		require.Contains(t, status["error"], "service account token has been invalidated")

		<-time.After(12 * time.Minute) // a minute of leeway
		code, _ = w.send("POST", whoami, token, "{}")
		require.Equal(t, 401, code, "expired")
		_, answer = w.send("POST", path, admin, `{}`)
		token = answer["status"].(map[string]any)["token"].(string)
		code, _ = w.send("POST", whoami, token, "{}")
		require.Equal(t, 201, code)
		require.NoError(t, w.server.Delete(accounts, api.Key{Namespace: "default", Name: "builder"}))
		code, _ = w.send("POST", whoami, token, "{}")
		require.Equal(t, 401, code, "the account is deleted")
	})
}

func TestAccessReviews(t *testing.T) {
	inWorld(t, func(w *world) {
		w.grant("reader", annSubject, readPods)
		attributes := `"resourceAttributes":{"namespace":"default","verb":"list","resource":"pods"}`
		ask := func(token, path, spec string) map[string]any {
			code, answer := w.send("POST", path, token, `{"spec":{`+spec+`}}`)
			require.Equal(t, 201, code, "%v", answer)
			return answer["status"].(map[string]any)
		}
		allowed := map[string]any{
			"allowed": true, "reason": `RBAC: allowed by RoleBinding "reader/default" of Role "reader" to User "ann"`,
		}
		require.Equal(t, allowed, ask(admin, "/apis/authorization.k8s.io/v1/subjectaccessreviews", `"user":"ann",`+attributes))
		require.Equal(t, allowed, ask(admin, "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", `"user":"ann",`+attributes))
		require.Equal(t, map[string]any{"allowed": false}, ask(admin, "/apis/authorization.k8s.io/v1/subjectaccessreviews", `"user":"bob",`+attributes))
		require.Equal(t, map[string]any{"allowed": true}, ask(admin, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", attributes))
		w.make(clusterRoles, "", `{"metadata":{"name":"ask"},"rules":[{"apiGroups":["*"],"resources":["selfsubjectrulesreviews"],"verbs":["create"]}]}`)
		w.make(clusterBindings, "", `{"metadata":{"name":"ask"},"subjects":[`+annSubject+
			`],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"ask"}}`)
		rules := ask(ann, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `"namespace":"default"`)
		require.Equal(t, []any{
			map[string]any{"verbs": []any{"create"}, "apiGroups": []any{"*"}, "resources": []any{"selfsubjectrulesreviews"}},
			map[string]any{"verbs": []any{"get", "list"}, "apiGroups": []any{""}, "resources": []any{"pods"}},
		}, rules["resourceRules"])
		code, answer := w.send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", admin, `{}`)
		require.Equal(t, 422, code)
		require.Contains(t, answer["message"], "exactly one of nonResourceAttributes or resourceAttributes must be specified")
		code, _ = w.send("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", admin, "")
		require.Equal(t, 405, code)
	})
}

func resourceOf(o runtime.Object) api.Resource {
	switch o.(type) {
	case *rbacv1.Role:
		return roles
	case *rbacv1.RoleBinding:
		return bindings
	case *rbacv1.ClusterRole:
		return clusterRoles
	}
	return clusterBindings
}

func TestTokensAreNotPrinted(t *testing.T) {
	tokens := identity.Tokens{"secret": {Name: "ann"}}
	require.Equal(t, "1 tokens", fmt.Sprintf("%v", tokens))
	require.NotContains(t, fmt.Sprintf("%+v %#v", identity.Options{Tokens: tokens}, identity.Options{Tokens: tokens}), "secret")
}
