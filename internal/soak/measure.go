package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"
)

// sample is what the process uses at one moment.
type sample struct {
	heap        int64 // bytes that are reachable
	goroutines  int
	descriptors int // -1 where the system does not tell
}

// measure collects garbage and counts. It collects twice, because what lies in a sync.Pool survives the first time.
func measure() sample {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{heap: int64(m.HeapAlloc), goroutines: runtime.NumGoroutine(), descriptors: countDescriptors()}
}

// countDescriptors returns how many files and sockets are open, or -1 where there is no /proc.
func countDescriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(open) - 1 // without the one that reads the folder
}

const (
	lookAgain = 50 * time.Millisecond
	// stillFor is how often in a row the counts must be the same.
	stillFor = 6
	// settleLimit bounds the wait for that. net/http ends a connection's goroutines some time after the connection.
	settleLimit = 10 * time.Second
)

// measureWhenStill measures once the number of goroutines and descriptors has not changed for 300 ms, or after 10 s.
func measureWhenStill(ctx context.Context) sample {
	var last [2]int
	same := 0
	_ = poll(ctx, settleLimit, func() error { // what is not still is measured as it is
		now := [2]int{runtime.NumGoroutine(), countDescriptors()}
		if now == last {
			same++
		} else {
			same = 0
		}
		if last = now; same < stillFor {
			return errors.New("not still")
		}
		return nil
	})
	return measure()
}

// poll calls done until it returns nil. After the limit, or the end of ctx, it returns done's last error.
func poll(ctx context.Context, limit time.Duration, done func() error) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return err
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// writeHeapProfile writes what is reachable. It does nothing if folder is empty. Two profiles show what grew:
// go tool pprof -base warm.pprof end.pprof.
func writeHeapProfile(folder, name string) error {
	if folder == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		return fmt.Errorf("soak: heap profile: %w", err)
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// writeGoroutines writes the stacks of all goroutines, equal ones as one.
func writeGoroutines(w io.Writer) {
	fmt.Fprintln(w, "\nthe goroutines:")
	_ = pprof.Lookup("goroutine").WriteTo(w, 1) // the verdict counts, not this help
}
