package measure

import (
	"runtime"
	"syscall"
	"time"
)

// Usage is what the process has used up to a moment.
type Usage struct {
	At     time.Time
	CPU    time.Duration // of user and system, by rusage
	Allocs uint64        // objects
	Bytes  uint64        // that these had
}

// Now reads the usage. The processor time is read first, so that what the reading itself costs is not part of it.
func Now() Usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic("measure: rusage of the process itself: " + err.Error()) // it takes a bad pointer
	}
	u := Usage{At: time.Now(), CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Allocs, u.Bytes = m.Mallocs, m.TotalAlloc
	return u
}

// Since is what was used after before.
func (u Usage) Since(before Usage) Spent {
	return Spent{
		Wall: u.At.Sub(before.At), CPU: u.CPU - before.CPU,
		Allocs: float64(u.Allocs - before.Allocs), Bytes: float64(u.Bytes - before.Bytes),
	}
}

// Spent is the difference between two usages.
type Spent struct {
	Wall, CPU     time.Duration
	Allocs, Bytes float64
}

// LiveHeap collects garbage until nothing more goes, and returns the bytes that are left.
func LiveHeap() uint64 {
	var m runtime.MemStats
	for range 3 { // what a finalizer or a pool lets go of takes a second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
