package scopes

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/scopes/internal/merge"
)

type gear struct{ metav1.ObjectMeta }

func gearAt(uid, version string) *gear {
	return &gear{metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: types.UID(uid), ResourceVersion: version}}
}

// TestSeveralListsInTheFirstBatch lets two scopes with a common object list before the consumer takes a batch. What a
// handler gets last is what the cache has.
func TestSeveralListsInTheFirstBatch(t *testing.T) {
	for _, tc := range []struct {
		name string
		fill func(a, b *merge.Stream[*gear])
		want []string
	}{
		{"the object moves", func(a, b *merge.Stream[*gear]) {
			a.Replace([]*gear{gearAt("u", "1")}, "1")
			a.Delete(gearAt("u", "2"), "2")
			b.Replace([]*gear{gearAt("u", "2")}, "2")
		}, []string{"Added u@1", "Deleted u@2", "Added u@2"}},
		{"the object is created again", func(a, b *merge.Stream[*gear]) {
			a.Replace([]*gear{gearAt("u", "1")}, "1")
			b.Replace([]*gear{gearAt("v", "3")}, "3")
		}, []string{"Added u@1", "Deleted u@1", "Added v@3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(api.Resource{Version: "v1", Plural: "gears", Namespaced: true}, Options[*gear]{})
				var got []string
				must.Get(s.Subscribe(func(c api.Change[*gear]) {
					got = append(got, fmt.Sprintf("%s %s@%s", c.Type, c.Object.UID, c.Object.ResourceVersion))
				}, informer.HandlerOptions{}))(t)
				tc.fill(s.queue.Add("", api.Selector{Labels: "in=a"}), s.queue.Add("", api.Selector{Labels: "in=b"}))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); _ = s.Run(ctx) }()
				synctest.Wait()
				require.Equal(t, tc.want, got)
				require.Equal(t, 1, s.Cache().Len())
				cancel()
				<-ended
			})
		})
	}
}

// TestAWriteToTheCacheKeepsTheVersions has a handler that writes to the cache between a batch and its traces.
func TestAWriteToTheCacheKeepsTheVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(api.Resource{Version: "v1", Plural: "gears", Namespaced: true}, Options[*gear]{})
		must.Get(s.Subscribe(func(api.Change[*gear]) {
			txn := s.Indexer().Begin()
			txn.Set(&gear{metav1.ObjectMeta{Namespace: "ns", Name: "own"}})
			txn.Commit(s.ResourceVersion())
		}, informer.HandlerOptions{NonBlocking: true}))(t)
		stream := s.queue.Add("", api.Selector{})
		stream.Replace([]*gear{gearAt("u", "1")}, "1")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = s.Run(ctx) }()
		<-stream.Listed()
		require.Equal(t, "1", VersionIn(s.Snapshot(), "ns"))
		cancel()
		<-ended
	})
}
