package controller

import "context"

// SourceFunc returns a source that runs a function. The function adds keys to the sink until ctx ends, and then
// returns. If it returns nil earlier, the source adds no more keys; an error or a panic ends the controller. The source
// is synced as soon as it begins; if it has an initial list, implement Source instead. Each controller that watches the
// source calls the function, possibly at the same time. It corresponds to TypedFunc of controller-runtime's package
// source, which must return at once.
func SourceFunc[K comparable](name string, run func(ctx context.Context, sink *Sink[K]) error) Source[K] {
	if run == nil {
		panic("controller: SourceFunc needs a function")
	}
	return &funcSource[K]{name: name, run: run}
}

type funcSource[K comparable] struct {
	name string
	run  func(context.Context, *Sink[K]) error
}

// String returns the name of the source.
func (s *funcSource[K]) String() string { return s.name }

// NotSynced returns nil, because the source is synced as soon as it begins.
func (s *funcSource[K]) NotSynced() error { return nil }

// Run calls the function.
func (s *funcSource[K]) Run(ctx context.Context, sink *Sink[K]) error {
	sink.Synced()
	return s.run(ctx, sink)
}
