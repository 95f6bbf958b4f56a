package informer

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
)

// Mutations is the value of Options.Mutations. DetectMutations makes one.
type Mutations interface {
	newDetector() mutationDetector
}

// DetectMutations returns a mutation detector for Options.Mutations. report is called with each cached object that was
// changed by user code. The detector checks the objects from time to time and when Run ends. It costs a copy of every
// object and is meant for tests. The informer handles no batch until report returns. It is an option of its own kind,
// and not a function, so that programs without it do not link the detector.
func DetectMutations(report func(cache.Mutation)) Mutations { return &reporter{report} }

type reporter struct{ report func(cache.Mutation) }

func (r *reporter) newDetector() mutationDetector { return &detector{tell: r.report} }

// mutationDetector is the detector of one informer, which calls it on one goroutine.
type mutationDetector interface {
	Observe(api.Object)
	report(end bool)
}

type detector struct {
	cache.MutationDetector[api.Object]
	tell func(cache.Mutation)
}

// report checks all objects at the end, and before it when a check is due.
func (d *detector) report(end bool) {
	if !end && !d.IsDue() {
		return
	}
	for _, mutation := range d.Check() {
		d.tell(mutation)
	}
}

// observeMutations is called with every batch before other code can see its objects. It runs without a lock, because it
// calls T's DeepCopy.
func (p *pipeline[T]) observeMutations(batch deltafifo.Batch[T]) {
	if p.mutations == nil {
		return
	}
	for _, object := range batch.Objects {
		for _, change := range object.Changes {
			p.mutations.Observe(change.Object)
		}
	}
}
