// Package predicate has functions that decide which changes of an informer need a reconcile. A controller's source
// calls its predicates for each change and adds keys only if they pass.
//
// A predicate is a function of a change; there is no interface to implement. Pass the predicates without parameters by
// name; Go infers their type from the source. Object, Either and Changed take their type from their function.
// LabelSelector and Funcs need an explicit type. A source combines predicates: When is their conjunction, WhenAny their
// disjunction, and Unless their negation.
//
// # Example
//
//	controller.For(replicaSets).When(predicate.GenerationChanged).Unless(predicate.Object(isPaused))
//
// See Example, ExamplePredicate and ExampleLabelSelector.
//
// # Promises
//
//  1. Predicates that compare two states pass every change that is not an update.
//  2. A predicate that is passed by name fits every source whose type has the required method.
//  3. Funcs calls the function for the kind of event; a nil function passes.
//
// # Concurrency
//
// All functions are pure and may be called on any goroutine. A predicate runs on the goroutine of an informer's
// handler, one change at a time; a slow predicate delays only that handler.
//
// # Differences from client-go
//
// client-go has no predicates. In controller-runtime a predicate is an interface with four methods, in a typed and an
// untyped version; here it is one function, and Funcs has one function for each kind of event. There is no generic
// event, because only the changes of informers pass predicates. Either also checks the old state, so that the
// reconciler learns of an object that leaves a selection. A source recovers a panic in a predicate; the predicate then
// counts as passing.
package predicate
