// Package measure reads what a process has used: processor time, memory, allocations.
//
// # Place in the pipeline
//
// Beside it: every subject reads its own figures with this package, so that none is measured by another yardstick.
//
// # Guarantees
//
//  1. Processor time is that of the whole process, garbage collection included (TestProcessorTimeCounts).
//  2. Allocations are counted exactly, the small ones that share a block too (TestAllocationsAreCounted).
//  3. The live heap is what a full collection leaves (TestLiveHeap), and the heap in use is looked at every ten
//     milliseconds (TestHeapWatch).
//
// # Concurrency
//
// Everything may be called from any goroutine. Now and LiveHeap stop the world for a moment. HeapWatch.Run blocks.
//
// # Differences from client-go
//
// client-go has nothing like it.
package measure
