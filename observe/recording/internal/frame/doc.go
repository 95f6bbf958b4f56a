// Package frame divides the bytes of watches into frames, and finds the kind of objects in the first bytes of an
// answer.
//
// # Example
//
//	d := frame.Divider{Watch: true}
//	first, whole, err := d.Add(piece) // both are whole frames
//
// # Promises
//
//  1. A Divider returns whole frames, in their order, whatever the pieces are.
//  2. A frame of more than MaxSize bytes is an error.
//
// # Concurrency
//
// A Divider belongs to one goroutine.
package frame
