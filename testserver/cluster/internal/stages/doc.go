// Package stages changes pods and nodes after a while, as a file says: containers crash, nodes report pressure or
// disappear, pods are evicted. It stands beside package simulate, which lives the ordinary life of both: a container
// that a stage ends is restarted as its pod says, and a node whose Ready a stage sets to False does nothing. The idea
// comes from kwok's stages. Expressions are CEL, as in the rest of the API.
//
// # Example
//
//	list, err := stages.Parse(file)
//	err = stages.New(client, list, onError).Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. A stage acts on an object that it selects, Delay and up to Jitter after the object began to match. An object that
//     no longer matches then is left alone.
//  2. If several stages match, chance decides for one by their weights, and the choice stays while it matches.
//  3. A stage acts again if the object still matches after the change. A change that changes nothing ends this.
//  4. An action that fails, such as an eviction that a budget refuses, is tried again after ten seconds.
//
// # Concurrency
//
// Run has the goroutines of two controllers and two informers. They end with its context.
package stages
