package controller

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// filter is a conjunction of clauses over events of one type.
type filter[E any] []clause[E]

// clause is a disjunction of predicates, some of them negated.
type clause[E any] []literal[E]

// literal is a predicate and its required result.
type literal[E any] struct {
	ask  func(E) bool
	want bool
}

// when returns the filter with predicates that must all pass.
func (f filter[E]) when(predicates []func(E) bool) filter[E] {
	for _, p := range predicates {
		f = f.with(clause[E]{{ask: p, want: true}})
	}
	return f
}

// unless returns the filter with predicates that must all fail.
func (f filter[E]) unless(predicates []func(E) bool) filter[E] {
	for _, p := range predicates {
		f = f.with(clause[E]{{ask: p, want: false}})
	}
	return f
}

// whenAny returns the filter with predicates of which at least one must pass.
func (f filter[E]) whenAny(predicates []func(E) bool) filter[E] {
	c := make(clause[E], 0, len(predicates))
	for _, p := range predicates {
		c = append(c, literal[E]{ask: p, want: true})
	}
	return f.with(c)
}

// with returns a copy of the filter with one more clause.
func (f filter[E]) with(c clause[E]) filter[E] {
	if slices.ContainsFunc(c, func(l literal[E]) bool { return l.ask == nil }) {
		panic("controller: a predicate is nil")
	}
	return append(slices.Clip(f), c)
}

// filterRunner evaluates a filter for one sink.
type filterRunner[E any, K comparable] struct {
	filter filter[E]
	sink   *Sink[K]
	// describe returns the key of an event's object, for the log.
	describe func(E) string
}

// passes reports whether every clause holds.
func (x *filterRunner[E, K]) passes(e E) bool {
	for _, c := range x.filter {
		if !x.holds(c, e) {
			return false
		}
	}
	return true
}

func (x *filterRunner[E, K]) holds(c clause[E], e E) bool {
	for _, l := range c {
		if x.satisfies(l, e) {
			return true
		}
	}
	return false
}

// satisfies reports whether a predicate has the required result. A predicate that panics is satisfied. If the source
// was removed, satisfies returns false without calling the predicate.
func (x *filterRunner[E, K]) satisfies(l literal[E], e E) (ok bool) {
	if x.sink.Removed() {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			x.sink.contained("predicate", x.describe(e), api.Recovered(p))
			ok = true
		}
	}()
	return l.ask(e) == l.want
}
