package subject

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/bench/measure"
)

const (
	readers = 10
	phases  = 4 // beside readers, and as many beside spinning goroutines
)

// readers measures the writes of one goroutine, each published by itself, while ten goroutines list everything.
func (w *worker) readers(ctx context.Context) error {
	return w.write(ctx, "", func(c Cache, _ int) int { return c.List() })
}

// finders measures the same while ten goroutines query an index. One write in ten moves an object to another value.
func (w *worker) finders(ctx context.Context) error {
	return w.write(ctx, indexLabel, func(c Cache, i int) int { return c.Find(nodes[i*7%len(nodes)]) })
}

// spin uses processor time and no memory.
func spin(Cache, int) (n int) {
	for i := range 10_000 {
		n += i & 1
	}
	return n
}

// write measures a writer beside readers and, in turns, beside as many spinning goroutines. It counts writes per second
// of the process's processor time, so that other load on the machine does not matter.
func (w *worker) write(ctx context.Context, indexed string, read func(c Cache, i int) int) error {
	if w.library.Cache == nil {
		return ErrUnsupported
	}
	p := &pen{cache: w.library.Cache(indexed), states: states(w.spec.Objects)}
	for _, o := range p.states[0] {
		p.cache.Set(o)
	}
	var beside, spinning phase
	for range phases {
		beside.add(p.write(ctx, w.spec.Lasts, read))
		spinning.add(p.write(ctx, w.spec.Lasts, spin))
	}
	w.set("of spinning", beside.share()/spinning.share())
	w.set("writes/cpu s", beside.share())
	w.set("writes/cpu s, spinning", spinning.share())
	w.set("writes/s", float64(beside.writes)/beside.spent.Wall.Seconds())
	w.set("reads/s", float64(beside.reads)/beside.spent.Wall.Seconds())
	w.set("seen/read", float64(beside.seen)/float64(max(beside.reads, 1)))
	return ctx.Err()
}

// states returns two states of each object. In the second one, a tenth of the objects have another node.
func states(n int) (s [2][]*metav1.PartialObjectMetadata) {
	s[0] = list(n)
	for i, o := range s[0] {
		changed := *o
		changed.ResourceVersion = fmt.Sprint(1_000_000 + n + i)
		if i%10 == 0 {
			changed.Labels = map[string]string{indexLabel: nodes[(i+1)%len(nodes)]}
		}
		s[1] = append(s[1], &changed)
	}
	return s
}

// pen is a cache with the state of its writer.
type pen struct {
	cache  Cache
	states [2][]*metav1.PartialObjectMetadata
	next   int
}

// phase is the result of one phase.
type phase struct {
	writes, reads, seen int
	spent               measure.Spent // by all of them
}

func (p *phase) add(other phase) {
	p.writes, p.reads, p.seen = p.writes+other.writes, p.reads+other.reads, p.seen+other.seen
	p.spent.Wall, p.spent.CPU = p.spent.Wall+other.spent.Wall, p.spent.CPU+other.spent.CPU
}

// share returns the writes in a second of processor time, which the writer shares with the others.
func (p *phase) share() float64 { return float64(p.writes) / p.spent.CPU.Seconds() }

// write writes during one phase, after all others have started.
func (p *pen) write(ctx context.Context, lasts time.Duration, read func(c Cache, i int) int) (did phase) {
	measure.LiveHeap() // collect the garbage of the earlier phase before this one is measured
	var over atomic.Bool
	var there, gone sync.WaitGroup
	var reads, seen atomic.Int64
	there.Add(readers)
	for r := range readers {
		gone.Go(func() {
			there.Done()
			i, saw := 0, 0
			for ; !over.Load(); i++ {
				saw += read(p.cache, i*readers+r)
			}
			reads.Add(int64(i))
			seen.Add(int64(saw))
		})
	}
	there.Wait()
	before := measure.Now()
	for end := before.At.Add(lasts); ctx.Err() == nil && time.Now().Before(end); did.writes++ {
		objects := p.states[(p.next/len(p.states[0])+1)%2]
		p.cache.Set(objects[p.next%len(objects)])
		p.next++
	}
	did.spent = measure.Now().Since(before)
	over.Store(true)
	gone.Wait()
	did.reads, did.seen = int(reads.Load()), int(seen.Load())
	return did
}
