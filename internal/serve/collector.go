package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// A collection of garbage costs as much as the heap is large, and each write makes garbage. Go's default collects a
// small heap often, and lets a large one double. A server that begins with 20 MB and may hold a million objects wants
// neither: a small state gets room, and a large one grows by half.
const (
	spareBytes = 64 << 20 // room of a small heap
	// leastPercent is the room of a large heap, in percent of it. It costs up to twice the collections of Go's default.
	leastPercent = 50
	mostPercent  = 1600
)

// percentFor returns the room for garbage (see debug.SetGCPercent) beside so many bytes that are in use.
func percentFor(live uint64) int {
	return int(min(max(100*spareBytes/max(live, 1), leastPercent), mostPercent))
}

// tuneCollections sets the room for garbage after each collection, until stop. It does nothing if the environment says
// what the user wants (GOGC or GOMEMLIMIT).
func tuneCollections() (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	var mu sync.Mutex // guards stopped
	stopped := false
	before := debug.SetGCPercent(percentFor(liveBytes()))
	var again func()
	again = func() {
		// The runtime calls the cleanup of an object that nobody uses after each collection.
		runtime.AddCleanup(new(*byte), func(struct{}) {
			mu.Lock()
			defer mu.Unlock()
			if stopped {
				return
			}
			debug.SetGCPercent(percentFor(liveBytes()))
			again()
		}, struct{}{})
	}
	again()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		debug.SetGCPercent(before)
	}
}

// liveBytes returns the bytes that the last collection found in use.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
