// Package signal wakes goroutines when something changes, as sync.Cond does, but with a channel that can be used in a
// select.
//
//	mu.Lock()
//	changed := s.Wait() // before the look at the state
//	mu.Unlock()
//	<-changed
//
// # Promises
//
//  1. A channel of Wait closes at the first Fire after the call.
//  2. A Signal without waiters allocates nothing.
//
// # Concurrency
//
// The mutex of its owner guards a Signal.
package signal
