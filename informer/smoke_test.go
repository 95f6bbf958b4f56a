package informer_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

type lw struct{}

func (lw) Resource() api.Resource { return api.Resource{Version: "v1", Plural: "things"} }
func (lw) List(ctx context.Context, o api.Options[*metav1.PartialObjectMetadata], each func(*metav1.PartialObjectMetadata) error) (metav1.ListMeta, error) {
	return metav1.ListMeta{}, nil
}
func (lw) Watch(ctx context.Context, o api.Options[*metav1.PartialObjectMetadata]) iter.Seq2[api.Event[*metav1.PartialObjectMetadata], error] {
	return func(yield func(api.Event[*metav1.PartialObjectMetadata], error) bool) {
		send := func(kind, name, version string, end bool) bool {
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: version}}
			return yield(api.Event[*metav1.PartialObjectMetadata]{Type: "ADDED", Object: m, ResourceVersion: version}, nil)
		}
		_ = send("ADDED", "a", "1", false) && yield(api.Event[*metav1.PartialObjectMetadata]{Type: "BOOKMARK", ResourceVersion: "2", InitialEventsEnd: true}, nil) &&
			send("ADDED", "b", "3", false)
		<-ctx.Done()
		yield(api.Event[*metav1.PartialObjectMetadata]{}, ctx.Err())
	}
}

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New(lw{}, informer.Options[*metav1.PartialObjectMetadata]{})
		for _, c := range []bool{false, true} {
			_, err := i.Subscribe(func(n informer.Notification[*metav1.PartialObjectMetadata]) {
				t.Log(c, n.Type, n.Object.Name, n.InitialList)
			}, informer.HandlerOptions{Coalesce: c})
			require.NoError(t, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- i.Run(ctx) }()
		<-i.Synced()
		synctest.Wait()
		t.Log(i.Status())
		cancel()
		require.NoError(t, <-done)
	})
}
