package reflector_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/reflector"
)

// steady is a large collection without changes. Its server answers 410 on request. It uses api.Options.Known, so it
// allocates no known object.
type steady struct {
	names   [][]byte
	version int
	again   chan struct{}
	listed  chan struct{}
}

func newSteady(n int) *steady {
	s := &steady{version: 1, again: make(chan struct{}), listed: make(chan struct{})}
	for i := range n {
		s.names = append(s.names, fmt.Appendf(nil, "object-%06d", i))
	}
	return s
}

func (s *steady) Collection() api.Collection { return api.Collection{Resource: things} }

func (s *steady) object(o api.Options[*thing], name []byte) *thing {
	if o.Known != nil {
		if t, ok := o.Known(nil, name); ok {
			return t
		}
	}
	return at(string(name), "1")
}

func (s *steady) List(_ context.Context, o api.Options[*thing], each func(*thing) error) (metav1.ListMeta, error) {
	for _, name := range s.names {
		if err := each(s.object(o, name)); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	s.version++
	return metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}, nil
}

func (s *steady) Watch(ctx context.Context, o api.Options[*thing]) iter.Seq2[api.Event[*thing], error] {
	return func(yield func(api.Event[*thing], error) bool) {
		if o.SendInitialEvents != nil {
			for _, name := range s.names {
				t := s.object(o, name)
				if !yield(api.Event[*thing]{Type: apiwatch.Added, Object: t, ResourceVersion: t.version}, nil) {
					return
				}
			}
			s.version++
			if !yield(api.Event[*thing]{Type: apiwatch.Bookmark, ResourceVersion: strconv.Itoa(s.version), InitialEventsEnd: true}, nil) {
				return
			}
		}
		select {
		case s.listed <- struct{}{}:
		case <-ctx.Done():
		}
		select {
		case <-s.again:
			yield(api.Event[*thing]{}, errExpired)
		case <-ctx.Done():
			yield(api.Event[*thing]{}, ctx.Err())
		}
	}
}

// relist ends the watch with a 410 and waits for the next list.
func (s *steady) relist() {
	s.again <- struct{}{}
	<-s.listed
}

// startSteady runs a reflector of n objects until its first list is complete.
func startSteady(t testing.TB, n int, paged bool) (s *steady, fifo *deltafifo.DeltaFIFO[*thing], stop func()) {
	s = newSteady(n)
	fifo = deltafifo.New[*thing]()
	r := reflector.New[*thing](s, fifo, options{Tuning: reflector.Tuning{NoWatchList: paged, BackoffBase: 1, BackoffMax: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	<-s.listed
	require.NoError(t, fifo.Pop(ctx, func(b deltafifo.Batch[*thing]) { require.Len(t, b.Objects, n) }))
	return s, fifo, func() {
		cancel()
		all.Wait()
	}
}

// A relist without a change allocates one pointer per object, for the list, and notifies no consumer.
func TestRelistOfUnchangedObjects(t *testing.T) {
	const n = 20_000
	for _, paged := range []bool{false, true} {
		t.Run(fmt.Sprintf("paged=%t", paged), func(t *testing.T) {
			s, fifo, stop := startSteady(t, n, paged)
			defer stop()
			pop := func() {
				require.NoError(t, fifo.Pop(t.Context(), func(b deltafifo.Batch[*thing]) { require.Empty(t, b.Objects) }))
			}
			s.relist()
			pop()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.relist()
			runtime.ReadMemStats(&after)
			pop()
			require.Less(t, float64(after.TotalAlloc-before.TotalAlloc)/n, 12.0, "bytes per object")
			require.Less(t, float64(after.Mallocs-before.Mallocs)/n, 0.02, "allocations per object")
		})
	}
}

func BenchmarkRelist(b *testing.B) {
	const n = 50_000
	for _, paged := range []bool{false, true} {
		b.Run(fmt.Sprintf("paged=%t", paged), func(b *testing.B) {
			s, fifo, stop := startSteady(b, n, paged)
			defer stop()
			b.ReportAllocs()
			for b.Loop() {
				s.relist()
				_ = fifo.Pop(b.Context(), func(deltafifo.Batch[*thing]) {})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
		})
	}
}
