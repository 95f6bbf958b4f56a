// Package demo is the demonstration of leat demo, and the Lab of its live page: buttons that change objects, break the
// server, hold work back between stages, and play the walkthrough.
//
// # Promises
//
//  1. Work that the Lab holds back goes on when it is released, when the demonstration ends, or when its part is gone.
//
// # Concurrency
//
// Run blocks, and ends all goroutines that it starts. Actions of the Lab may run on any goroutine.
package demo
