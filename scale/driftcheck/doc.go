// Package driftcheck has a check that finds changes that an API server did not send to an informer. A watch that loses
// an event shows nothing, so without a check the cache of an informer stays wrong until the next list. client-go has no
// such check. Only programs that import the package link it.
//
// # Example
//
//	inf := informer.New(pods, informer.Options[*corev1.Pod]{Check: driftcheck.Every(10 * time.Minute)})
//
// # Promises
//
//  1. A change that the server did not send is found at the next check, and mended by a list.
//  2. A change that is on its way is no difference.
//  3. A difference that a list does not mend leads to one list only.
//  4. An informer of package scopes has a check for each scope. A finding leads to a list of this scope only, and
//     Status and metrics say which scope it was.
//
// # Concurrency
//
// The informer runs the check on a goroutine of its own. An informer of package scopes runs one for each scope. A check
// blocks while it lists and while it waits for the cache.
package driftcheck
