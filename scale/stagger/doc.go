// Package stagger is for programs of which thousands start together, such as node agents after an upgrade. It spreads
// their first lists over time, bounds the lists of one program, and lets the watch cache of the API server answer, so
// that a restart of all does not overload the server. docs/scale.md has what 5,000 agents cost.
//
// Read stagger.go for Start and Spread, and node.go for the preset of a node agent.
//
// # Example
//
//	client, err := apiclient.New(stagger.Config(config))
//	start := stagger.NewStart(stagger.Options{Jitter: time.Minute})
//	pods := apiclient.NewPartial[*Pod](client, podResource, "") // a struct with the fields that the agent reads
//	inf := informer.New(stagger.ForNode(start, nodeName, pods, informer.Options[*Pod]{}))
//
// Set GOMEMLIMIT in the manifest of the agent, below its limit of memory.
//
// # Promises
//
//  1. The lists of a program begin at a random time within Options.Jitter, once. Later lists do not wait for it.
//  2. A program has at most Options.MaxLists lists in progress. A list that fails, or whose informer ends, frees its
//     place.
//  3. The first WatchList may be answered from a watch cache of any age. Later lists are never older than what the
//     informer has.
//  4. With GOMEMLIMIT, a list of too many objects, or an object of too many bytes, is an error before it fills the
//     memory.
//
// # Concurrency
//
// A Start may be used by several informers at once. Waiting informers block only their own goroutine, until their
// context ends. The package starts no goroutine.
package stagger
