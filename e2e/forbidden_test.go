package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
)

// TestForbidden follows a collection that the user may not list until the permission is granted. After the permission
// is revoked, the cached objects stay.
func TestForbidden(t *testing.T) {
	p, config := startProxy(t)
	config.BearerToken = apiclient.NewSecret(cluster.RestrictedToken)
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, 20, noLabels)
	lw := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, config), configMaps, c.namespace)
	f := follow(t, "restricted", c, lw, informer.Options[*corev1.ConfigMap]{})
	requireForbidden(t, f)
	require.False(t, f.Status().Synced)

	rule := cluster.Rule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
	require.NoError(t, server.Grant(t.Context(), "config-maps", rule))
	f.awaitSynced(t)
	f.agree(t)

	require.NoError(t, server.Revoke(t.Context(), "config-maps"))
	cached := f.Cache().Len()
	require.NoError(t, eventually(t.Context(), func() error {
		p.Cut() // RBAC is checked only when a watch begins
		return forbidden(f)
	}))
	require.Equal(t, cached, f.Cache().Len())

	require.NoError(t, server.Grant(t.Context(), "config-maps", rule))
	f.agree(t)
	require.NoError(t, server.Revoke(t.Context(), "config-maps"))
}

func requireForbidden(t *testing.T, f *follower[*corev1.ConfigMap]) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error { return forbidden(f) }))
}

func forbidden(f *follower[*corev1.ConfigMap]) error {
	status := f.Status()
	if !apierrors.IsForbidden(status.Reflector.Err) {
		return fmt.Errorf("not forbidden: %v", status)
	}
	return nil
}
