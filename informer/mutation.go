package informer

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
)

// checkMutationsAt is the smallest number of observed objects between two checks of all objects.
const checkMutationsAt = 1024

// mutations runs the mutation detector of a cache. A nil value does nothing.
type mutations[T api.Object] struct {
	detector cache.MutationDetector[T]
	report   func(cache.Mutation)
	observed int // objects since the last check
}

func newMutations[T api.Object](report func(cache.Mutation)) *mutations[T] {
	if report == nil {
		return nil
	}
	return &mutations[T]{report: report}
}

// observe is called with every batch before other code can see its objects. It runs without a lock, because it calls
// T's DeepCopy.
func (m *mutations[T]) observe(batch deltafifo.Batch[T]) {
	if m == nil {
		return
	}
	for _, object := range batch.Objects {
		for _, change := range object.Changes {
			m.detector.Observe(change.Object)
			m.observed++
		}
	}
}

// checkIfDue checks all objects when as many objects as the detector holds were observed since the last check. The cost
// for each observed object is therefore constant.
func (m *mutations[T]) checkIfDue() {
	if m != nil && m.observed >= max(checkMutationsAt, m.detector.Len()) {
		m.check()
	}
}

func (m *mutations[T]) check() {
	if m == nil {
		return
	}
	m.observed = 0
	for _, mutation := range m.detector.Check() {
		m.report(mutation)
	}
}
