package informer

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
)

// checkMutationsAt is how many objects are observed at least before all of them are looked at again.
const checkMutationsAt = 1024

// mutations watches over the objects of a cache, if somebody wants to know. A nil one does not.
type mutations[T api.Object] struct {
	detector cache.MutationDetector[T]
	report   func(cache.Mutation)
	observed int // since the last check
}

func newMutations[T api.Object](report func(cache.Mutation)) *mutations[T] {
	if report == nil {
		return nil
	}
	return &mutations[T]{report: report}
}

// observe is called with every batch before anybody else can see its objects, and without a lock: it runs T's DeepCopy.
func (m *mutations[T]) observe(batch deltafifo.Batch[T]) {
	if m == nil {
		return
	}
	for _, object := range batch.Objects {
		for _, delta := range object.Deltas {
			m.detector.Observe(delta.Object)
			m.observed++
		}
	}
}

// checkIfDue checks all objects every so often, at a cost that is constant for each one observed.
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
