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
	"github.com/leatproject/leat/workqueue"
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

// BenchmarkHistory records one reconcile with one cause. The history has the key already, or does not.
func BenchmarkHistory(b *testing.B) {
	for _, bench := range []struct {
		name  string
		limit int
		keys  int
	}{
		{"keys=known", defaultHistory, defaultHistory},
		{"keys=new", defaultHistory, 4 * defaultHistory},
		{"keys=none", -1, defaultHistory},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := New("bench", Func[api.Key](func(context.Context, api.Key) (Result, error) { return Result{}, nil }), Options{Tuning: Tuning{History: bench.limit}})
			attempts := make([]*ended[api.Key], bench.keys)
			for i := range attempts {
				key := api.Key{Namespace: "default", Name: fmt.Sprint("web-", i)}
				attempts[i] = &ended[api.Key]{outcome: Succeeded, attempt: c.newAttempt(workqueue.Work[api.Key]{
					Key: key, Causes: []workqueue.Cause{{Source: "pods", Event: eventUpdate, Object: api.FormatKey(key), Version: "4711"}},
				})}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.remember(attempts[i%len(attempts)])
				i++
			}
		})
	}
}
