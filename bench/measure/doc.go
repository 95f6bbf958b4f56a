// Package measure reads the processor time, the memory and the allocations of a process. All subjects use it, so that
// all are measured in the same way.
//
// Processor time includes garbage collection. Allocations are exact, including small ones that share a block. The live
// heap is the heap after full collections. HeapWatch samples the heap every ten milliseconds.
//
// # Concurrency
//
// Everything may be called on any goroutine. Now and LiveHeap stop the world for a moment. HeapWatch.Run blocks.
package measure
