package controller

import "context"

// SourceFunc returns a source that is a function: it adds keys to the sink until ctx ends, and then returns. To return nil
// before is to have no more keys, and an error, or a panic, ends the controller. The source is synced as it begins; one
// that has a first list to tell of is better a Source of its own. The function is called anew, at once, for every
// controller that watches the source.
// It corresponds to TypedFunc of controller-runtime's package source, which has to return.
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

// NotSynced knows nothing: the source is synced as it begins.
func (s *funcSource[K]) NotSynced() error { return nil }

// Run calls the function.
func (s *funcSource[K]) Run(ctx context.Context, sink *Sink[K]) error {
	sink.Synced()
	return s.run(ctx, sink)
}
