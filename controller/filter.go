package controller

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// filter is a conjunction of clauses over the changes of an informer.
type filter[T api.Object] []clause[T]

// clause is a disjunction of predicates, some of them negated.
type clause[T api.Object] []literal[T]

// literal is a predicate and its required result.
type literal[T api.Object] struct {
	ask  func(api.Change[T]) bool
	want bool
}

// when returns the filter with predicates that must all pass.
func (f filter[T]) when(predicates []func(api.Change[T]) bool) filter[T] {
	for _, p := range predicates {
		f = f.with(clause[T]{{ask: p, want: true}})
	}
	return f
}

// unless returns the filter with predicates that must all fail.
func (f filter[T]) unless(predicates []func(api.Change[T]) bool) filter[T] {
	for _, p := range predicates {
		f = f.with(clause[T]{{ask: p, want: false}})
	}
	return f
}

// whenAny returns the filter with predicates of which at least one must pass.
func (f filter[T]) whenAny(predicates []func(api.Change[T]) bool) filter[T] {
	c := make(clause[T], 0, len(predicates))
	for _, p := range predicates {
		c = append(c, literal[T]{ask: p, want: true})
	}
	return f.with(c)
}

// with returns a copy of the filter with one more clause.
func (f filter[T]) with(c clause[T]) filter[T] {
	if slices.ContainsFunc(c, func(l literal[T]) bool { return l.ask == nil }) {
		panic("controller: a predicate is nil")
	}
	return append(slices.Clip(f), c)
}

// passes reports whether a change passes every clause of the source's filter.
func (d *delivery[T, K]) passes(n api.Change[T]) bool {
	for _, c := range d.source.filter {
		if !slices.ContainsFunc(c, func(l literal[T]) bool { return d.satisfies(l, n) }) {
			return false
		}
	}
	return true
}

// satisfies reports whether a predicate has the required result. A predicate that panics is satisfied. If the source
// was removed, satisfies returns false without calling the predicate.
func (d *delivery[T, K]) satisfies(l literal[T], n api.Change[T]) (ok bool) {
	if d.sink.Removed() {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			d.sink.contained("predicate", describe(n), api.Recovered(p))
			ok = true
		}
	}()
	return l.ask(n) == l.want
}
