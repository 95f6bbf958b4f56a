package measure

import (
	"runtime"
	"syscall"
	"time"
)

// Usage is the use of resources from the start of the process to a moment.
type Usage struct {
	At     time.Time
	CPU    time.Duration // user and system time, by rusage
	Kernel time.Duration // the system time in it
	Allocs uint64        // objects
	Bytes  uint64        // of these objects
}

// Now returns the usage. It reads the processor time first, so that the cost of the call is not included.
func Now() Usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic("measure: rusage of the process itself: " + err.Error()) // fails only for an invalid pointer
	}
	u := Usage{At: time.Now(), CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Kernel: time.Duration(r.Stime.Nano())}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Allocs, u.Bytes = m.Mallocs, m.TotalAlloc
	return u
}

// Since returns the usage after before.
func (u Usage) Since(before Usage) Spent {
	return Spent{
		Wall: u.At.Sub(before.At), CPU: u.CPU - before.CPU, Kernel: u.Kernel - before.Kernel,
		Allocs: float64(u.Allocs - before.Allocs), Bytes: float64(u.Bytes - before.Bytes),
	}
}

// Spent is the difference between two usages.
type Spent struct {
	Wall, CPU, Kernel time.Duration
	Allocs, Bytes     float64
}

// InUse collects garbage as LiveHeap does, and returns the bytes of the heap and of the stacks of goroutines.
func InUse() uint64 {
	live := LiveHeap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return live + m.StackInuse
}

// LiveHeap collects garbage until nothing more is freed, and returns the bytes that are left.
func LiveHeap() uint64 {
	var m runtime.MemStats
	for range 3 { // objects that a finalizer or a pool releases need a second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
