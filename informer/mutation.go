package informer

import (
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// checkMutationsAt is how many objects are observed at least between two looks at all of them.
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

// observe is called with every object before anybody else can see it. Every so often it checks all of them, at a cost
// that is constant for each object.
func (m *mutations[T]) observe(object T) {
	if m == nil {
		return
	}
	m.detector.Observe(object)
	if m.observed++; m.observed >= max(checkMutationsAt, m.detector.Len()) {
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
