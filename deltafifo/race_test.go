package deltafifo_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// TestConcurrentUse runs a producer, a consumer and other users at once, for the race detector and to find lost
// wake-ups.
func TestConcurrentUse(t *testing.T) {
	for seed := range uint64(8) {
		q := deltafifo.New[*thing]()
		want := map[api.Key]*thing{}
		var all sync.WaitGroup
		all.Go(func() {
			produce(q, want, rand.New(rand.NewPCG(seed, 0)))
		})
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			for ctx.Err() == nil {
				q.Resync()
			}
		})
		c := &consumer{t: t, objects: map[api.Key]*thing{}}
		versions := []string{}
		for !slices.Contains(versions, "2000") {
			require.NoError(t, q.Pop(t.Context(), func(b batch) {
				c.apply(b)
				versions = append(versions, b.ResourceVersion)
			}))
		}
		cancel()
		all.Wait()
		require.Equal(t, want, c.objects)
		require.Equal(t, 1, c.initial)
	}
}

func produce(q *queue, want map[api.Key]*thing, r *rand.Rand) {
	q.Replace(nil, "1")
	for i := 2; i <= 2000; i++ {
		version := strconv.Itoa(i)
		o := incarnation(string(rune('a'+r.IntN(20))), strconv.Itoa(r.IntN(2)+1), version)
		switch r.IntN(10) {
		case 0, 1, 2:
			q.Delete(o, version)
			delete(want, api.KeyOf(o))
		case 3:
			var list []*thing
			for key, old := range want {
				if r.IntN(3) > 0 {
					list = append(list, old)
				} else {
					delete(want, key)
				}
			}
			q.Replace(list, version)
		default:
			q.Put(o, version)
			want[api.KeyOf(o)] = o
		}
	}
}
