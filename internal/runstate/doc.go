// Package runstate is the state of something that runs once: an informer, a controller, a manager.
//
// # Promises
//
//  1. States are ordered by time: each is greater than those before it.
//
// # Concurrency
//
// A State has no lock. Its owner guards it.
package runstate
