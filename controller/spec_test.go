package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/workqueue"
)

func TestBuildReturnsAllErrors(t *testing.T) {
	type spec = controller.Spec[string]
	valid := spec{Name: "test", Reconciler: reconcileFunc(succeed), Sources: []controller.Source[string]{newFeed()}}
	for name, test := range map[string]struct {
		spoil func(*spec)
		want  []string
	}{
		"name":       {func(s *spec) { s.Name = "" }, []string{"controller: without a name: Name is empty"}},
		"reconciler": {func(s *spec) { s.Reconciler = nil }, []string{"controller: test: Reconciler is nil"}},
		"sources":    {func(s *spec) { s.Sources = nil }, []string{"controller: test: there is no source: Sources is empty"}},
		"source":     {func(s *spec) { s.Sources = append(s.Sources, nil) }, []string{"controller: test: source 1 is nil"}},
		"limiter":    {func(s *spec) { s.Limiters = []workqueue.RateLimiter[string]{nil} }, []string{"controller: test: a limiter is nil"}},
		"limiters": {func(s *spec) {
			s.Limiters = []workqueue.RateLimiter[string]{workqueue.FastSlow[string](1, 2, 3)}
			s.Options.Queue.Backoff.Base = time.Second
		}, []string{"controller: test: workqueue: New got limiters, which conflict with Options.Backoff and Options.Bucket"}},
		"backoff": {func(s *spec) { s.Options.Queue.Backoff.Jitter = 2 }, []string{
			"controller: test: workqueue: a Backoff needs times of at least 0 and a Jitter from 0 to 1; it got {Base:0s Max:0s Jitter:2}",
		}},
		"all numbers": {func(s *spec) {
			s.Options = controller.Options{Workers: -1, Tuning: controller.Tuning{DefaultWorkers: -6, KindWorkers: map[schema.GroupKind]int{
				{Kind: "Pod"}: 0, {Kind: "Node"}: 1, {Group: "apps", Kind: "Deployment"}: -7,
			}}, MaxRetries: -2, ReconcileTimeout: -3, Queue: workqueue.Options{Backoff: workqueue.Backoff{Max: -5}}}
		}, []string{
			"controller: test: Workers is -1; it must not be negative",
			"controller: test: DefaultWorkers is -6; it must not be negative",
			"controller: test: MaxRetries is -2; it must not be negative",
			"controller: test: ReconcileTimeout is -3ns; it must not be negative",
			"controller: test: KindWorkers is -7 for Deployment.apps; it must be positive",
			"controller: test: KindWorkers is 0 for Pod; it must be positive",
			"controller: test: workqueue: a Backoff needs times of at least 0 and a Jitter from 0 to 1; it got {Base:0s Max:-5ns Jitter:0}",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := valid
			test.spoil(&s)
			c, err := s.Build()
			require.Nil(t, c)
			var found []string
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				found = append(found, e.Error())
			}
			require.Equal(t, test.want, found)
			if s.Sources != nil && s.Sources[len(s.Sources)-1] != nil {
				require.PanicsWithValue(t, err.Error(), func() {
					controller.New(s.Name, s.Reconciler, s.Options, s.Limiters...)
				})
			}
		})
	}
}

func TestBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		first, second := newFeed(), newFeed()
		ctl := must.Get(controller.Spec[string]{
			Name: "test", Sources: []controller.Source[string]{first, second},
			Reconciler: reconcileFunc(func(context.Context, string) (controller.Result, error) {
				return controller.Result{}, errors.New("no luck")
			}),
			Options:  controller.Options{MaxRetries: 1},
			Limiters: []workqueue.RateLimiter[string]{workqueue.FastSlow[string](time.Hour, time.Hour, 1)},
		}.Build())(t)
		require.Equal(t, "test", ctl.Name())
		traced(ctl, seen.add)
		start(t, ctl.Run)
		first.add("a", workqueue.Item{})
		pass(time.Second)
		second.add("b", workqueue.Item{})
		pass(30 * time.Minute)
		require.Equal(t, "a b", seen.keys())
		pass(time.Hour)
		require.Equal(t, "a b", seen.keys())
	})
}
