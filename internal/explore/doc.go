// Package explore visits every state that a small world can reach, and checks each of them. Tests describe a world: the
// code under test, what surrounds it, and every step that can follow. Where a random test finds a fault with luck, an
// exploration finds it if it is within the bounds, and its counterexample is the shortest one.
//
// # Promises
//
//  1. States are visited breadth first, so no shorter way leads to a failure than the reported one. If several
//     failures are equally near, any of them is reported.
//  2. Each state is visited once. Two states with equal keys count as one.
//  3. A failure names each step from the first state, and Report.Choices leads to it again.
//
// # Cost
//
// A visited state takes about 40 bytes: a hash of 64 bits and its place in the tree. So two of ten million states are
// taken for one with a probability of 1 to 400,000. Only the states of two depths are whole in memory.
//
// # Concurrency
//
// Run blocks. It calls the functions of a world from Options.Workers goroutines, so they must not share what they
// change.
package explore
