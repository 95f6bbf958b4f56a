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

func (r *reporter) newDetector() mutationDetector { return &detector{report: r.report} }

// mutationDetector is the detector of one informer, which calls it on one goroutine.
type mutationDetector interface {
	observe(api.Object)
	checkIfDue()
	check()
}

// checkMutationsAt is the smallest number of observed objects between two checks of all objects.
const checkMutationsAt = 1024

type detector struct {
	cache.MutationDetector[api.Object]
	report   func(cache.Mutation)
	observed int // objects since the last check
}

func (d *detector) observe(object api.Object) {
	d.Observe(object)
	d.observed++
}

// checkIfDue checks all objects when as many objects as the detector holds were observed since the last check. The cost
// for each observed object is therefore constant.
func (d *detector) checkIfDue() {
	if d.observed >= max(checkMutationsAt, d.Len()) {
		d.check()
	}
}

func (d *detector) check() {
	d.observed = 0
	for _, mutation := range d.Check() {
		d.report(mutation)
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
			p.mutations.observe(change.Object)
		}
	}
}
