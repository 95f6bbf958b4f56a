package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

func TestBuildFindsEverythingThatIsWrong(t *testing.T) {
	type spec = controller.Spec[string]
	valid := spec{Name: "test", Reconciler: reconcileFunc(succeed), Sources: []controller.Source[string]{newFeed()}}
	for name, test := range map[string]struct {
		spoil func(*spec)
		want  []string
	}{
		"name":       {func(s *spec) { s.Name = "" }, []string{"controller: without a name: a name is needed"}},
		"reconciler": {func(s *spec) { s.Reconciler = nil }, []string{"controller: test: a reconciler is needed"}},
		"sources":    {func(s *spec) { s.Sources = nil }, []string{"controller: test: there are no sources"}},
		"source":     {func(s *spec) { s.Sources = append(s.Sources, nil) }, []string{"controller: test: source 1 is nil"}},
		"predicate": {func(s *spec) { s.Options.When = []func(informer.Notification[api.Object]) bool{nil} }, []string{
			"controller: test: a predicate in When is nil",
		}},
		"limiter": {func(s *spec) { s.Limiters = []workqueue.RateLimiter[string]{nil} }, []string{"controller: test: a limiter is nil"}},
		"limiters": {func(s *spec) {
			s.Limiters = []workqueue.RateLimiter[string]{workqueue.FastSlow[string](1, 2, 3)}
			s.Options.Backoff.Base = time.Second
		}, []string{"controller: test: workqueue: New was given limiters and a Backoff or Bucket, of which one must go"}},
		"backoff": {func(s *spec) { s.Options.Backoff.Jitter = 2 }, []string{
			"controller: test: workqueue: a Backoff needs times that are not negative and a Jitter from 0 to 1, not {Base:0s Max:0s Jitter:2}",
		}},
		"all numbers": {func(s *spec) {
			s.Options = controller.Options{Workers: -1, DefaultWorkers: -6, KindWorkers: map[schema.GroupKind]int{
				{Kind: "Pod"}: 0, {Kind: "Node"}: 1, {Group: "apps", Kind: "Deployment"}: -7,
			}, MaxRetries: -2, ReconcileTimeout: -3, Ageing: -4, Backoff: workqueue.Backoff{Max: -5}}
		}, []string{
			"controller: test: Workers must not be negative, but is -1",
			"controller: test: DefaultWorkers must not be negative, but is -6",
			"controller: test: MaxRetries must not be negative, but is -2",
			"controller: test: ReconcileTimeout must not be negative, but is -3ns",
			"controller: test: Ageing must not be negative, but is -4",
			"controller: test: KindWorkers must be positive, but is -7 for Deployment.apps",
			"controller: test: KindWorkers must be positive, but is 0 for Pod",
			"controller: test: workqueue: a Backoff needs times that are not negative and a Jitter from 0 to 1, not {Base:0s Max:-5ns Jitter:0}",
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
		ctl, err := controller.Spec[string]{
			Name: "test", Sources: []controller.Source[string]{first, second},
			Reconciler: reconcileFunc(func(context.Context, string) (controller.Result, error) {
				return controller.Result{}, errors.New("no luck")
			}),
			Options:  controller.Options{MaxRetries: 1, OnReconcile: seen.add},
			Limiters: []workqueue.RateLimiter[string]{workqueue.FastSlow[string](time.Hour, time.Hour, 1)},
		}.Build()
		require.NoError(t, err)
		require.Equal(t, "test", ctl.Name())
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
