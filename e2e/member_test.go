package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/workqueue"
)

// memberVariable makes the test binary run as a member of a group of package shard. Its value is a replicaConfig in
// JSON.
const memberVariable = "LEAT_E2E_MEMBER"

const (
	memberWorkers = 4
	workLabel     = "shard-work"
	workTime      = 100 * time.Millisecond
)

// runMember is the main function of a member. It returns the exit code.
func runMember(encoded string) int { return runProcess(encoded, replicaConfig.runMember) }

// runMember works on the config maps of the ranges of this process, until ctx ends. It reads only these.
func (c replicaConfig) runMember(ctx context.Context) error {
	client, err := apiclient.New(apiclient.Config{
		Host: c.Host, BearerToken: apiclient.NewSecret(c.Token), TLS: apiclient.TLS{CAData: c.CA},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return shard.Fence(next) },
	})
	if err != nil {
		return err
	}
	member, err := shard.New(client, shard.Options{
		Namespace: c.Namespace, Group: leaseName, Identity: c.Identity,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	})
	if err != nil {
		return err
	}
	maps := apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, c.Namespace)
	set := scopes.New(configMaps, scopes.Options[*corev1.ConfigMap]{})
	streams := shardedsource.NewScopes(set, maps, hashrange.UID, shardedsource.Options{})
	defer member.Follow(streams)()
	kind := shard.For(member, set.Informer)
	ctl := controller.New("worker", kind.Reconciler(&worker{c.Identity, maps, set, atomic.Int64{}}), controller.Options{Workers: memberWorkers})
	ctl.Watch(kind.Source())
	m, err := manager.New(manager.Options{})
	if err != nil {
		return err
	}
	if err := m.Add(set, ctl, streams, member); err != nil {
		return err
	}
	return m.Run(ctx)
}

// worker reconciles a config map: it says that it begins, works for a while, and says that it is done. Its patches have
// no resource version, so the server accepts all of them. It does not look at its context.
type worker struct {
	identity string
	maps     *apiclient.TypedClient[*corev1.ConfigMap]
	set      *scopes.Set[*corev1.ConfigMap]
	number   atomic.Int64
}

// Reconcile implements controller.Reconciler.
func (w *worker) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	m, found := w.set.Snapshot().Get(key)
	acquired := slices.ContainsFunc(controller.Causes(ctx), func(c workqueue.Cause) bool { return c.Event == "acquired" })
	if !found || m.Labels[workLabel] == "" || m.Data["done"] == m.Data["want"] && !acquired {
		return controller.Result{}, nil
	}
	work := fmt.Sprintf("%s %d", w.identity, w.number.Add(1))
	if err := w.say(ctx, key, fmt.Sprintf(`{"data":{"work":%q,"phase":"begin"}}`, work)); err != nil {
		return controller.Result{}, err
	}
	<-time.After(workTime)
	return controller.Result{}, w.say(ctx, key, fmt.Sprintf(`{"data":{"work":%q,"phase":"end","done":%q}}`, work, m.Data["want"]))
}

func (w *worker) say(ctx context.Context, key api.Key, patch string) error {
	_, err := w.maps.Patch(ctx, key, apiclient.Patch{Type: types.MergePatchType, Data: []byte(patch)}, apiclient.PatchOptions{})
	return err
}
