// Package predicate has pure filters over what an informer tells.
//
// # Place in the pipeline
//
// Between an informer and the queue of a controller: a source asks its predicates about each notification, and makes
// keys only of those that pass.
//
//	controller.For(replicaSets).When(predicate.GenerationChanged).Unless(predicate.Object(isPaused))
//
// A predicate is a function of a notification, and so is what the functions here return; nothing has to be implemented.
// The ones that need no argument are passed by name, and Go infers their type from the source. Those that are made from
// a function on objects take the type from it; LabelSelector and Funcs have to be told. One for objects of any type, as
// controller.Options.When has them, is made with OfType.
//
// # Guarantees
//
//  1. The predicates that compare two states pass everything that is no update (TestPredicates).
//  2. And of none passes everything, Or of none nothing; both ask no further than they must (TestCombinations).
//  3. What is passed by name fits any source whose type has the method that is asked for (TestInferredFromSource).
//  4. Funcs asks the function of the kind of event, and a nil one passes (TestFuncs).
//  5. OfType asks about objects of its type and passes all others (TestOfType).
//
// # Concurrency
//
// Everything here is a pure function without state and may be called from anywhere. A predicate is called on the
// delivering goroutine of an informer's handler, one notification at a time; a slow one delays that handler alone.
//
// # Differences from client-go
//
// There is nothing of the kind in client-go. In controller-runtime a predicate is an interface of four methods that
// comes in a typed and an untyped edition; here it is one function, and Funcs is there for who wants one for each kind.
// There is no event of a fourth kind: what comes from a channel has predicates of its own type. Either and LabelSelectorEither see the old state as
// well, so that an object that leaves a selection is noticed. A panic in a predicate is contained by the source, and
// counts as passing.
//
// # Example
//
// See Example.
package predicate
