package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
)

// keeper is an ObjectReconciler with a Deleted method.
type keeper struct {
	got     []*thing
	deleted []api.Key
}

var errKept = errors.New("kept")

func (k *keeper) Reconcile(_ context.Context, object *thing) (controller.Result, error) {
	k.got = append(k.got, object)
	return controller.Result{RequeueAfter: time.Hour}, errKept
}

func (k *keeper) Deleted(_ context.Context, key api.Key) (controller.Result, error) {
	k.deleted = append(k.deleted, key)
	return controller.Result{RequeueAfter: time.Minute}, errKept
}

func TestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(cluster).collection(things)
		object := named("a")
		object.Labels = map[string]string{"color": "red"}
		server.apply(object)
		cache := server.running(t).Cache()
		synctest.Wait()
		stored, found := cache.Get(keyOf("a"))
		require.True(t, found)

		k := &keeper{}
		result, err := controller.Objects(cache, k).Reconcile(t.Context(), keyOf("a"))
		require.ErrorIs(t, err, errKept)
		require.Equal(t, time.Hour, result.RequeueAfter)
		require.Len(t, k.got, 1)
		require.Equal(t, stored, k.got[0])
		k.got[0].Labels["color"] = "blue"
		require.Equal(t, "red", stored.Labels["color"], "the reconciler got a copy")

		require.Empty(t, k.deleted)
		result, err = controller.Objects(cache, k).Reconcile(t.Context(), keyOf("b"))
		require.ErrorIs(t, err, errKept)
		require.Equal(t, time.Minute, result.RequeueAfter)
		require.Equal(t, []api.Key{keyOf("b")}, k.deleted)
		require.Len(t, k.got, 1)

		onlyThere := controller.ObjectFunc[*thing](k.Reconcile)
		result, err = controller.Objects(cache, onlyThere).Reconcile(t.Context(), keyOf("b"))
		require.NoError(t, err)
		require.Zero(t, result)
		_, err = controller.Objects(cache, onlyThere).Reconcile(t.Context(), keyOf("a"))
		require.ErrorIs(t, err, errKept)
		require.Len(t, k.got, 2)
		require.Panics(t, func() { controller.Objects[*thing](nil, k) })
		require.Panics(t, func() { controller.Objects[*thing](cache, nil) })
	})
}
