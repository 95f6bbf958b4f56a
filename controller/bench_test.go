package controller

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

type benchObject struct{ metav1.ObjectMeta }

// BenchmarkEvent sends one notification of an informer through predicates, queue and reconcile, on one goroutine.
func BenchmarkEvent(b *testing.B) {
	yes := true
	matcher := ownerMatcher{kind: schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, namespaced: true, uid: func(api.Key) types.UID { return "uid-rs" }}
	owned := InformerSource[*benchObject, api.Key]{
		name: "pods (owned by replicasets.apps)",
		keys: func(dst []api.Key, n api.Change[*benchObject]) []api.Key {
			return matcher.owners(dst, n.Object, n.FinalStateUnknown)
		},
		left: func(dst []api.Key, n api.Change[*benchObject]) []api.Key { return matcher.left(dst, n.Old, n.Object) },
	}
	direct := InformerSource[*benchObject, api.Key]{name: "pods", keys: objectKey[*benchObject]}
	changed := func(n api.Change[*benchObject]) bool { return n.Old.ResourceVersion != n.Object.ResourceVersion }
	objects := make([]*benchObject, 64)
	for i := range objects {
		objects[i] = &benchObject{metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", i), ResourceVersion: strconv.Itoa(i),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprint("rs-", i), UID: "uid-rs", Controller: &yes,
			}},
		}}
	}
	for _, bench := range []struct {
		name   string
		source InformerSource[*benchObject, api.Key]
		o      Options
	}{
		{"source=for/predicates=0/timeout=off", direct, Options{}},
		{"source=for/predicates=0/timeout=off/history=off", direct, Options{Tuning: Tuning{History: -1}}},
		{"source=for/predicates=3/timeout=off", direct.When(changed, changed, changed), Options{}},
		{"source=for/predicates=0/timeout=on", direct, Options{ReconcileTimeout: time.Minute}},
		{"source=owns/predicates=0/timeout=off", owned, Options{}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			reconciles := 0
			c := New("bench", Func[api.Key](func(context.Context, api.Key) (Result, error) {
				reconciles++
				return Result{}, nil
			}), bench.o)
			ctx, i, place, a := context.Background(), 0, new(atomic.Pointer[attempt[api.Key]]), new(ended[api.Key])
			d := newDelivery(bench.source, &Sink[api.Key]{controller: c, name: bench.source.name})
			b.ReportAllocs()
			for b.Loop() {
				d.handle(api.Change[*benchObject]{
					Type: api.Updated, Old: objects[(i+1)%64], Object: objects[i%64], At: time.Time{}.Add(1),
				})
				for c.queue.Len() > 0 {
					w, err := c.queue.Get(ctx)
					if err != nil {
						b.Fatal(err)
					}
					c.process(ctx, w, place, a)
				}
				i++
			}
			require.NotZero(b, reconciles)
		})
	}
}
