package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
)

var ghosts = api.Resource{Group: "e2e.leat.example", Version: "v1", Kind: "Ghost", Plural: "ghosts", Namespaced: true}

// TestOneReason has managers that fail because the cluster lacks something or forbids it. Each returns one error of one
// line, which names the component, the request and the reason.
func TestOneReason(t *testing.T) {
	restricted := adminConfig()
	restricted.BearerToken = apiclient.NewSecret(cluster.RestrictedToken)
	for _, c := range []struct {
		name     string
		config   apiclient.Config
		resource api.Resource
		is       func(error) bool
		why      string
	}{
		{"a kind that nobody has defined", adminConfig(), ghosts, apierrors.IsNotFound, "list ghosts.e2e.leat.example: the server does not serve this resource"},
		{"a list that is forbidden", restricted, configMaps, apierrors.IsForbidden, `cannot list resource "configmaps"`},
	} {
		t.Run(c.name+", of a cache", func(t *testing.T) {
			m, ctl, cached := watching(t, c.config, c.resource, manager.Options{SyncTimeout: time.Second}, controller.Options{})
			require.NoError(t, m.Add(cached, ctl))
			err := m.Run(t.Context())
			require.ErrorIs(t, err, manager.ErrNotSynced)
			require.True(t, c.is(err), "%v", err)
			requireReason(t, err, "manager: informer of "+c.resource.String()+" in default not synced after 1s: ", c.why)
		})
		t.Run(c.name+", of a controller", func(t *testing.T) {
			m, ctl, cached := watching(t, c.config, c.resource, manager.Options{}, controller.Options{CacheSyncTimeout: time.Second})
			must.Get(m.AddWith(cached, manager.Placement{Group: manager.Others}))(t) // in the last group, so that no other runnable waits for it
			require.NoError(t, m.Add(ctl))
			err := m.Run(t.Context())
			require.True(t, c.is(err), "%v", err)
			requireReason(t, err, "manager: haunted: ", c.resource.Plural, c.why)
		})
	}
}

// watching returns a manager, and a controller with its informer to add to it.
func watching(t *testing.T, config apiclient.Config, r api.Resource, mo manager.Options, co controller.Options) (
	*manager.Manager, *controller.Controller[api.Key], *informer.Informer[*metav1.PartialObjectMetadata],
) {
	t.Helper()
	m := must.Get(manager.New(mo))(t)
	cached := informer.New(apiclient.NewPartial[*metav1.PartialObjectMetadata](newClient(t, config), r, "default"),
		informer.Options[*metav1.PartialObjectMetadata]{})
	ctl := controller.New("haunted", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
		return controller.Result{}, nil
	}), co)
	ctl.Watch(controller.For(cached))
	return m, ctl, cached
}

func requireReason(t *testing.T, err error, prefix string, contains ...string) {
	t.Helper()
	require.Regexp(t, `\A`+prefix+`[^\n]+\z`, err.Error())
	for _, part := range contains {
		require.ErrorContains(t, err, part)
	}
}

// TestLostLeaseSaysWhy takes the lease from leading managers, in two ways.
func TestLostLeaseSaysWhy(t *testing.T) {
	t.Run("somebody else writes that he holds it", func(t *testing.T) {
		namespace, ended := lead(t, adminConfig())
		body := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q}}`, "thief")
		must.Get(server.Must(t.Context(), http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases/"+leaseName, body))(t)
		require.EqualError(t, <-ended, `manager: no longer the leader: leaderelection: the lease is lost: "thief" holds `+namespace+"/"+leaseName)
	})
	t.Run("it is forbidden", func(t *testing.T) {
		const role = "leases"
		require.NoError(t, server.Grant(t.Context(), role, cluster.Rule{
			Verbs: []string{"get", "create", "update"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		}))
		config := adminConfig()
		config.BearerToken = apiclient.NewSecret(cluster.RestrictedToken)
		namespace, ended := lead(t, config)
		require.NoError(t, server.Revoke(t.Context(), role))
		err := <-ended
		require.ErrorIs(t, err, leaderelection.ErrLost)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		requireReason(t, err, "manager: no longer the leader: leaderelection: the lease is lost: "+namespace+"/"+leaseName+
			" could not be renewed for 2s: ", `cannot update resource "leases"`)
	})
}

// lead runs a manager with a short election, and returns when it leads: the namespace of the lease, and a channel for
// its error.
func lead(t *testing.T, config apiclient.Config) (namespace string, ended <-chan error) {
	t.Helper()
	namespace = newCollection(t, configMaps, configMapBody).namespace
	elector := must.Get(leaderelection.New(newClient(t, config), leaderelection.Options{
		Namespace: namespace, Name: leaseName, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
	}))(t)
	m := must.Get(manager.New(manager.Options{Elector: elector}))(t)
	over := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		over <- m.Run(t.Context())
	}()
	t.Cleanup(func() { <-finished }) // the test's context has ended by then
	select {
	case <-m.Elected():
	case <-time.After(patience):
		require.Fail(t, "nobody leads")
	}
	return namespace, over
}
