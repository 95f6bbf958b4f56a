package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
)

var (
	serviceAccounts = api.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	secrets         = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	selfReviews     = api.Resource{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview", Plural: "selfsubjectreviews"}
)

// whoami returns the user that the server sees for a client.
func whoami(ctx context.Context, client *apiclient.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	review, err := apiclient.NewTyped[*authenticationv1.SelfSubjectReview](client, selfReviews, "").Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// requireUser waits until the server sees a client as a user, because files are not read for each request.
func requireUser(t *testing.T, client *apiclient.Client, name string) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		user, err := whoami(t.Context(), client)
		if err == nil && user.Username != name {
			err = fmt.Errorf("the server sees %q, and not %q", user.Username, name)
		}
		return err
	}))
}

func TestImpersonation(t *testing.T) {
	config := adminConfig()
	config.Impersonate = apiclient.Impersonate{
		UserName: "jane", UID: "jane-uid", Groups: []string{"dev", "ops"},
		Extra: map[string][]string{"example.org/Scopes": {"view", "a b"}},
	}
	client := newClient(t, config)
	user := must.Get(whoami(t.Context(), client))(t)
	require.Equal(t, authenticationv1.UserInfo{
		Username: "jane", UID: "jane-uid", Groups: []string{"dev", "ops", "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{"example.org/scopes": {"view", "a b"}},
	}, user)
	_, err := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, configMaps, "default").Get(t.Context(), api.Key{Name: "x"}, metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "jane"`)

	config.BearerToken = apiclient.NewSecret(cluster.RestrictedToken)
	_, err = whoami(t.Context(), newClient(t, config))
	require.True(t, apierrors.IsForbidden(err), "who may not impersonate does: %v", err)
}

// TestCertificatesRotate replaces the files of a client certificate while the client watches.
func TestCertificatesRotate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	issue := func(user string) {
		cert, key, err := server.ClientCertificate(user, "system:masters")
		require.NoError(t, err)
		replaceFile(t, keyFile, key)
		replaceFile(t, certFile, cert)
	}
	issue("first")
	config := adminConfig()
	config.BearerToken = apiclient.Secret{}
	config.TLS.CertFile, config.TLS.KeyFile = certFile, keyFile
	client := newClient(t, config)
	requireUser(t, client, "first")
	f := followConfigMaps(t, client)

	issue("second")
	requireUser(t, client, "second")
	f.agree(t)
	require.Empty(t, f.tellErrors(1), "the watch broke off")

	require.NoError(t, os.WriteFile(certFile, []byte("half a certif"), 0o600)) // a file that is only half written
	user := must.Get(whoami(t.Context(), client))(t)
	require.Equal(t, "second", user.Username)
	f.agree(t)
}

// TestTokensRotate replaces the file of a service account's token while the client watches, and revokes the old token.
func TestTokensRotate(t *testing.T) {
	admin := newClient(t, adminConfig())
	c := newCollection(t, configMaps, configMapBody)
	account := serviceAccount(t, admin, c.namespace)
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	grantTo(t, user)

	file := filepath.Join(t.TempDir(), "token")
	first := boundToken(t, admin, account, "first")
	replaceFile(t, file, []byte(first))
	config := adminConfig()
	config.BearerToken, config.BearerTokenFile = apiclient.Secret{}, file
	client := newClient(t, config)
	requireUser(t, client, user)
	f := follow(t, "agent", c, apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, c.namespace), informer.Options[*corev1.ConfigMap]{})
	f.awaitSynced(t)
	f.agree(t)

	replaceFile(t, file, []byte(boundToken(t, admin, account, "second")))
	deleteSecret(t, admin, account.Namespace, "first")
	require.NoError(t, eventually(t.Context(), func() error { // the server caches a valid token for some seconds
		status, _, err := server.Do(t.Context(), first, http.MethodGet, "/api", nil)
		if err == nil && status != http.StatusUnauthorized {
			err = fmt.Errorf("the first token is answered with %d", status)
		}
		return err
	}))
	require.NoError(t, must.Err(whoami(t.Context(), client)), "the token that was revoked is sent on")
	f.agree(t)
	require.Empty(t, f.tellErrors(1), "the watch broke off")
	require.NoError(t, server.RestartAPIServer(t.Context())) // this ends all watches and clears the cache of tokens
	f.agree(t)
	requireUser(t, client, user)
	for _, err := range f.tellErrors(100) {
		require.False(t, apierrors.IsUnauthorized(err), "%v", err)
	}
}

func serviceAccount(t *testing.T, admin *apiclient.Client, namespace string) api.Key {
	t.Helper()
	account := api.Key{Namespace: namespace, Name: "agent"}
	_, err := apiclient.NewTyped[*corev1.ServiceAccount](admin, serviceAccounts, "").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return account
}

func deleteSecret(t *testing.T, admin *apiclient.Client, namespace, name string) {
	t.Helper()
	all := apiclient.NewPartial[*metav1.PartialObjectMetadata](admin, secrets, namespace)
	require.NoError(t, all.Delete(t.Context(), api.Key{Name: name}, metav1.DeleteOptions{}))
}

// boundToken creates a secret, and a token that is valid while the secret exists.
func boundToken(t *testing.T, admin *apiclient.Client, account api.Key, secret string) string {
	t.Helper()
	made, err := apiclient.NewTyped[*corev1.Secret](admin, secrets, account.Namespace).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})
	require.NoError(t, err)
	seconds := int64(3600)
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret, UID: made.UID},
		},
	}
	request, err = apiclient.Subresource[*authenticationv1.TokenRequest, *authenticationv1.TokenRequest](admin, serviceAccounts, account, "token").
		Create(t.Context(), request, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, request.Status.Token)
	return request.Status.Token
}

// grantTo grants a user everything until the test ends.
func grantTo(t *testing.T, user string) {
	t.Helper()
	name := "all-" + filepath.Base(t.Name())
	const path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	body := fmt.Appendf(nil, `{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, name, user)
	must.Get(server.Must(t.Context(), http.MethodPost, path, body))(t)
	t.Cleanup(func() {
		must.Get(server.Must(contextWithoutEnd(t), http.MethodDelete, path+"/"+name, nil))(t)
	})
}

// replaceFile replaces a file as programs that rotate credentials do: it writes another file and renames it.
func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", content, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// followConfigMaps watches a new namespace with a client.
func followConfigMaps(t *testing.T, client *apiclient.Client) *follower[*corev1.ConfigMap] {
	t.Helper()
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, 5, noLabels)
	lw := apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, c.namespace)
	f := follow(t, "followed", c, lw, informer.Options[*corev1.ConfigMap]{})
	f.awaitSynced(t)
	f.agree(t)
	return f
}
