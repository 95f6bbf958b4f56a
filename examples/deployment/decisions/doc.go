// Package decisions notes what the controller of Deployments decides, and lets it decide again from a recording. A test
// compares both: a difference is a bug of the recording, of the cache or of the controller. It is an example of a test
// against what production sent, for any controller whose decisions depend only on the state of its caches, the time and
// the answers to its requests.
//
// # Example
//
//	var log decisions.Log
//	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return log.Wrap(tape.Wrap(next)) }
//	c := rollout.New(log.Note(rollout.Options{Deployments: deployments, …})) // runs in production
//
//	again, err := decisions.Replay(reader, namespace, log.Decisions()) // in a bubble, for each run of log.Runs
//
// # Promises
//
//  1. Replay gives each reconcile exactly the versions of the three caches that it had in production, at the same time,
//     and the same answers to the same requests.
//  2. A replay of a recording gives the decisions of production, and the same ones each time.
//
// # Concurrency
//
// A Log is safe for concurrent use. Replay starts the informers and ends them before it returns.
package decisions
