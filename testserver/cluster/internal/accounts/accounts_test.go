package accounts_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/accounts"
)

var (
	namespaces = api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	services   = api.Resource{Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Namespaced: true}
	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

func TestEveryNamespace(t *testing.T) {
	testkit.Run(t, testkit.Options{Server: testserver.Options{NamespaceLifecycle: true}}, func(k *testkit.Kit) {
		k.Start(accounts.New(k.Client, accounts.Options{CA: []byte("pem")}).Run)
		account := api.Key{Namespace: "shop", Name: "default"}
		certificate := api.Key{Namespace: "shop", Name: "kube-root-ca.crt"}
		require.Len(t, testkit.List[*corev1.ServiceAccount](k, services, ""), 4)
		require.Len(t, testkit.List[*corev1.ConfigMap](k, configMaps, ""), 4)

		testkit.Create(k, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		require.True(t, testkit.Has(k, services, account))
		m := testkit.Get[*corev1.ConfigMap](k, configMaps, certificate)
		require.Equal(t, map[string]string{"ca.crt": "pem"}, m.Data)
		require.Contains(t, m.Annotations["kubernetes.io/description"], "verify the kube-apiserver")

		testkit.Delete(k, services, account)
		testkit.Delete(k, configMaps, certificate)
		require.True(t, testkit.Has(k, services, account))
		require.True(t, testkit.Has(k, configMaps, certificate))
		testkit.Edit(k, configMaps, certificate, func(m *corev1.ConfigMap) { m.Data["ca.crt"], m.Data["more"] = "other", "x" })
		require.Equal(t, map[string]string{"ca.crt": "pem"}, testkit.Get[*corev1.ConfigMap](k, configMaps, certificate).Data)

		testkit.Delete(k, namespaces, api.Key{Name: "shop"})
		testkit.Delete(k, services, account)
		testkit.Delete(k, configMaps, certificate)
		require.False(t, testkit.Has(k, services, account), "a namespace that is being deleted gets nothing")
		require.False(t, testkit.Has(k, configMaps, certificate))
	})
}
