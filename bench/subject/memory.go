package subject

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/bench/measure"
)

// indexLabel is the label of the index in works without a server. It has a thousand values.
const indexLabel = "node"

// object returns an object that only the cache reads.
func object(i, version int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "namespace-" + strconv.Itoa(i%200), Name: fmt.Sprintf("web-6b7f9c5d4-%07d", i),
		UID: types.UID(fmt.Sprintf("7f9c5d4b-0000-4000-8000-%012d", i)), ResourceVersion: strconv.Itoa(1_000_000 + version),
		Labels: map[string]string{indexLabel: nodes[i%len(nodes)]},
	}}
}

var nodes = func() (names [1000]string) {
	for i := range names {
		names[i] = fmt.Sprintf("node-%03d", i)
	}
	return names
}()

func list(n int) []*metav1.PartialObjectMetadata {
	objects := make([]*metav1.PartialObjectMetadata, n)
	for i := range objects {
		objects[i] = object(i, i)
	}
	return objects
}

// update returns the i-th update of a collection.
func update(objects []*metav1.PartialObjectMetadata, i int) *metav1.PartialObjectMetadata {
	changed := *objects[(i*7919)%len(objects)]
	changed.ResourceVersion = strconv.Itoa(1_000_000 + len(objects) + i)
	return &changed
}

// party is a running shared informer with handlers.
type party struct {
	Shared
	objects []*metav1.PartialObjectMetadata
	begin   chan struct{} // the updates
	ended   chan error
	cancel  context.CancelFunc
}

// guest is a handler of a party.
type guest struct {
	updated  func(old, new Versioned)
	coalesce bool
}

// alike returns n equal guests. Each has its own counter, or all wait.
func alike(n int, coalesce bool, updated func() func(old, new Versioned)) []guest {
	guests := make([]guest, n)
	for i := range guests {
		guests[i] = guest{updated: updated(), coalesce: coalesce}
	}
	return guests
}

// share starts an informer over objects in memory, and waits until every handler has received all of them. If kept is
// true, the updates are made before, so that making them is not measured.
func (w *worker) share(ctx context.Context, kept bool, guests []guest) (*party, error) {
	if w.library.Shared == nil {
		return nil, ErrUnsupported
	}
	objects := list(w.spec.Objects)
	next := func(i int) *metav1.PartialObjectMetadata { return update(objects, i) }
	if kept {
		made := make([]*metav1.PartialObjectMetadata, w.spec.Events)
		for i := range made {
			made[i] = next(i)
		}
		next = func(i int) *metav1.PartialObjectMetadata { return made[i] }
	}
	p := &party{objects: objects, begin: make(chan struct{}), ended: make(chan error, 1)}
	p.Shared = w.library.Shared(Source{Objects: objects, Next: next, Updates: w.spec.Events, Go: p.begin})
	var synced sync.WaitGroup
	for _, g := range guests {
		synced.Add(1)
		added := 0
		err := p.Handle(Hooks{Added: func() {
			if added++; added == len(objects) {
				synced.Done()
			}
		}, Updated: g.updated}, g.coalesce)
		if err != nil {
			return nil, err
		}
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() { p.ended <- p.Run(ctx) }()
	synced.Wait()
	return p, nil
}

func (p *party) stop() error {
	p.cancel()
	return <-p.ended
}

// fanout measures how fast updates reach handlers that only count.
func (w *worker) fanout(ctx context.Context) error {
	var done sync.WaitGroup
	p, err := w.share(ctx, true, w.counting(&done))
	if err != nil {
		return err
	}
	if err := w.deliver(p, &done); err != nil {
		return err
	}
	return p.stop()
}

// counting returns handlers that count. They are done when each has counted every update.
func (w *worker) counting(done *sync.WaitGroup) []guest {
	return alike(w.spec.Handlers, false, func() func(old, new Versioned) {
		seen := 0
		done.Add(1)
		return func(Versioned, Versioned) {
			if seen++; seen == w.spec.Events {
				done.Done()
			}
		}
	})
}

// deliver measures from before the first update until all are counted.
func (w *worker) deliver(p *party, done *sync.WaitGroup) error {
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	before := measure.Now()
	close(p.begin)
	done.Wait()
	spent := measure.Now().Since(before)
	stopProfile()
	deliveries := float64(w.spec.Events * w.spec.Handlers)
	w.set("deliveries/s", deliveries/spent.Wall.Seconds())
	w.set("cpu ns/delivery", float64(spent.CPU)/deliveries)
	w.set("B/delivery", spent.Bytes/deliveries)
	return nil
}

// hindered measures fanout with an additional handler, which is slow or never returns from its first update. It also
// measures the memory of that handler's backlog when the others are done.
func (w *worker) hindered(ctx context.Context) error {
	release := make(chan struct{})
	slow := guest{coalesce: w.spec.Coalesce, updated: func(Versioned, Versioned) {
		var pause <-chan time.Time
		if w.spec.Pause > 0 {
			pause = time.After(w.spec.Pause)
		}
		select {
		case <-release:
		case <-pause:
		}
	}}
	var done sync.WaitGroup
	p, err := w.share(ctx, true, append(w.counting(&done), slow))
	if err != nil {
		return err
	}
	before := measure.LiveHeap()
	if err := w.deliver(p, &done); err != nil {
		return err
	}
	w.set("kept MB", (float64(measure.LiveHeap())-float64(before))/1e6)
	close(release)
	return p.stop()
}

// backlog measures the memory of backlogs of handlers that never return from their first update. The bench holds all
// objects itself, so that only the bookkeeping grows.
func (w *worker) backlog(ctx context.Context) error {
	return w.blocked(ctx, true, w.spec.Handlers)
}

// stuck measures the memory of one handler that never returns, including old states that only its backlog holds.
func (w *worker) stuck(ctx context.Context) error { return w.blocked(ctx, false, 1) }

func (w *worker) blocked(ctx context.Context, kept bool, handlers int) error {
	release := make(chan struct{})
	p, err := w.share(ctx, kept, alike(handlers, w.spec.Coalesce, func() func(old, new Versioned) {
		return func(Versioned, Versioned) { <-release }
	}))
	if err != nil {
		return err
	}
	last := strconv.Itoa(1_000_000 + w.spec.Objects + w.spec.Events - 1)
	before := measure.LiveHeap()
	close(p.begin)
	p.await(last)
	grown := float64(measure.LiveHeap()) - float64(before)
	w.set("B/update", grown/float64(w.spec.Events))
	w.set("B/delivery", grown/float64(w.spec.Events*handlers))
	w.set("grown MB", grown/1e6)
	if err := w.heapProfile(); err != nil {
		return err
	}
	close(release)
	return p.stop()
}

// await waits until the cache has an update of a version.
func (p *party) await(version string) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for p.Version() != version {
		<-ticker.C
	}
}

// overhead measures the memory of an informer with one index, without the objects.
func (w *worker) overhead(ctx context.Context) error {
	if w.library.Shared == nil {
		return ErrUnsupported
	}
	objects := list(w.spec.Objects)
	before := measure.LiveHeap()
	p := w.library.Shared(Source{Objects: objects})
	if err := p.Index(indexLabel); err != nil {
		return err
	}
	synced, added := make(chan struct{}), 0
	err := p.Handle(Hooks{Added: func() {
		if added++; added == len(objects) {
			close(synced)
		}
	}, Updated: func(Versioned, Versioned) {}}, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	<-synced
	w.set("B/object", (float64(measure.LiveHeap())-float64(before))/float64(len(objects)))
	if err := w.heapProfile(); err != nil {
		return err
	}
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	w.set("objects", float64(len(objects)))
	return nil
}
