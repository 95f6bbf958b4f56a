package shard_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
)

// TestADeletionDuringItsReconcile deletes an object while its reconcile runs. The deletion gets its own reconcile.
func TestADeletionDuringItsReconcile(t *testing.T) {
	for _, field := range []hashrange.Field{hashrange.UID, hashrange.Namespace} {
		t.Run(string(field), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fixture.Fixture) {
				f.Create(maps, &corev1.ConfigMap{ObjectMeta: meta("default", "mill")})
				a := join(f, shard.Options{Identity: "a", Field: field}, nil)
				cached := informer.New(apiclient.NewTyped[*corev1.ConfigMap](f.Client, maps, ""), informer.Options[*corev1.ConfigMap]{})
				kind := shard.For(a.Member, cached)
				var reconciles []string
				stop := mill(f, kind, 0, func(_ context.Context, key api.Key) (controller.Result, error) {
					_, found := cached.Snapshot().Get(key)
					reconciles = append(reconciles, fmt.Sprint(key, " ", found))
					<-time.After(10 * time.Second)
					return controller.Result{}, nil
				}, cached.Run)
				<-time.After(5 * time.Second)
				f.Delete(maps, api.Key{Namespace: "default", Name: "mill"})
				<-time.After(30 * time.Second)
				stop()
				require.Equal(t, []string{"default/mill true", "default/mill false"}, reconciles)
			})
		})
	}
}

// TestTheReconcileOfADeletionComesAgain has a reconciler that wants to see a deleted object once more.
func TestTheReconcileOfADeletionComesAgain(t *testing.T) {
	for _, field := range []hashrange.Field{hashrange.UID, hashrange.Namespace} {
		t.Run(string(field), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fixture.Fixture) {
				f.Create(maps, &corev1.ConfigMap{ObjectMeta: meta("default", "mill")})
				a := join(f, shard.Options{Identity: "a", Field: field}, nil)
				cached := informer.New(apiclient.NewTyped[*corev1.ConfigMap](f.Client, maps, ""), informer.Options[*corev1.ConfigMap]{})
				kind := shard.For(a.Member, cached)
				reconciles := 0 // without an object
				stop := mill(f, kind, 0, func(_ context.Context, key api.Key) (r controller.Result, err error) {
					if _, found := cached.Snapshot().Get(key); !found {
						if reconciles++; reconciles == 1 {
							r.RequeueAfter = 10 * time.Second
						}
					}
					return r, nil
				}, cached.Run)
				<-time.After(5 * time.Second)
				f.Delete(maps, api.Key{Namespace: "default", Name: "mill"})
				<-time.After(time.Minute)
				stop()
				require.Equal(t, 2, reconciles)
			})
		})
	}
}

// TestADeletionBeforeAnObjectOfTheSameName has objects that were deleted and created again before a reconcile.
// They are reconciled again and again. When another replica takes some of them, they leave the cache, and are not taken
// for deleted.
func TestADeletionBeforeAnObjectOfTheSameName(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		name := func(n int) string { return fmt.Sprint("mill-", n) }
		const objects = 20
		create := func(n int) {
			f.Create(maps, &corev1.ConfigMap{ObjectMeta: meta("default", name(n))})
		}
		for n := range objects {
			create(n)
		}
		a := join(f, shard.Options{Identity: "a"}, nil)
		set := scopes.New(maps, scopes.Options[*corev1.ConfigMap]{})
		ranges := shardedsource.NewScopes(set, apiclient.NewTyped[*corev1.ConfigMap](f.Client, maps, ""), hashrange.UID, shardedsource.Options{})
		a.Follow(ranges)
		kind := shard.For(a.Member, set).After(ranges.Then)
		var found, missing atomic.Int32
		stop := mill(f, kind, objects, func(_ context.Context, key api.Key) (controller.Result, error) {
			if _, ok := set.Cache().Get(key); ok {
				found.Add(1)
			} else {
				missing.Add(1)
			}
			<-time.After(10 * time.Second)
			return controller.Result{RequeueAfter: 10 * time.Second}, nil
		}, set.Run, ranges.Run)
		<-time.After(5 * time.Second)
		require.EqualValues(t, objects, found.Load())
		for n := range objects {
			f.Delete(maps, api.Key{Namespace: "default", Name: name(n)})
			create(n)
		}
		<-time.After(time.Minute)
		require.Greater(t, int(found.Load()), 3*objects)
		join(f, shard.Options{Identity: "b"}, nil)
		<-time.After(5 * time.Minute)
		require.Less(t, set.Cache().Len(), objects)
		require.Zero(t, missing.Load())
		stop()
	})
}

// TestAKindHasOneController uses a Kind for two controllers. One would take the deletions from the other.
func TestAKindHasOneController(t *testing.T) {
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://localhost"}))(t)
	m := must.Get(shard.New(client, shard.Options{Namespace: "default", Group: "mill"}))(t)
	cached := informer.New(apiclient.NewTyped[*corev1.ConfigMap](client, maps, ""), informer.Options[*corev1.ConfigMap]{})
	kind := shard.For(m, cached)
	kind.Source()
	require.PanicsWithValue(t, "shard: Kind.Source was called before; make a Kind for each controller", func() { kind.Source() })
	kind.Reconciler(nil)
	require.PanicsWithValue(t, "shard: Kind.Reconciler was called before; make a Kind for each controller",
		func() { kind.Reconciler(nil) })
	shard.For(m, cached).Reconciler(nil)
}

// TestAfterWaitsForAnotherFollower has a follower that gets its ranges later than the member. No reconcile begins
// before, and then every object gets one.
func TestAfterWaitsForAnotherFollower(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		for _, name := range []string{"mill", "farm"} {
			f.Create(maps, &corev1.ConfigMap{ObjectMeta: meta("default", name)})
		}
		a := join(f, shard.Options{Identity: "a"}, nil)
		cached := informer.New(apiclient.NewTyped[*corev1.ConfigMap](f.Client, maps, ""), informer.Options[*corev1.ConfigMap]{})
		var children hashrange.Follower
		removed := false
		kind := shard.For(a.Member, cached).After(func(f hashrange.Follower) func() {
			children = f
			return func() { removed = true }
		})
		var reconciles []string
		stop := mill(f, kind, 1, func(_ context.Context, key api.Key) (controller.Result, error) {
			reconciles = append(reconciles, key.Name)
			return controller.Result{}, nil
		}, cached.Run)
		<-time.After(time.Minute)
		require.Empty(t, reconciles)
		children.Follow(hashrange.All())
		<-time.After(time.Minute)
		require.ElementsMatch(t, []string{"mill", "farm"}, reconciles)
		children.Follow(nil)
		f.Edit(maps, api.Key{Namespace: "default", Name: "mill"}, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
		<-time.After(time.Minute)
		require.Len(t, reconciles, 2)
		children.Follow(hashrange.All())
		<-time.After(time.Minute)
		require.ElementsMatch(t, []string{"mill", "farm", "mill", "farm"}, reconciles)
		stop()
		require.True(t, removed)
	})
}
