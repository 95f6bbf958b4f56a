package soak_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
)

// sample is what the process uses at one moment.
type sample struct {
	heap        int64 // bytes that are reachable
	goroutines  int
	descriptors int // -1 where the system does not tell
}

func (s sample) String() string {
	return fmt.Sprintf("heap %.2f MB, %d goroutines, %d descriptors", float64(s.heap)/1e6, s.goroutines, s.descriptors)
}

// measure collects garbage and counts.
func measure() sample {
	return sample{heap: fixture.Heap(), goroutines: runtime.NumGoroutine(), descriptors: countDescriptors()}
}

// countDescriptors returns how many files and sockets are open, or -1 where there is no /proc.
func countDescriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(open) - 1 // without the one that reads the folder
}

// settleLimit bounds the wait for counts. net/http ends a connection's goroutines some time after the connection.
const settleLimit = 30 * time.Second

// measureWhenStill measures once the number of goroutines and descriptors has not changed for 300 ms, or after 10 s.
func measureWhenStill() sample {
	var last [2]int
	same := 0
	_ = poll(settleLimit, func() error { // what is not still is measured as it is
		now := [2]int{runtime.NumGoroutine(), countDescriptors()}
		if same++; now != last {
			same = 0
		}
		if last = now; same < 6 {
			return errors.New("not still")
		}
		return nil
	})
	return measure()
}

// The bounds of growth between the second and the last quarter of the rounds.
const (
	// maxMoreGoroutines and maxMoreDescriptors allow for one connection more: two goroutines and a socket at each end.
	// How many connections there are depends on which request came first after an outage. A leak of one in each round
	// exceeds them, because twelve rounds lie between the medians of 24.
	maxMoreGoroutines  = 4
	maxMoreDescriptors = 2
	// maxMoreHeap allows for what is bounded but not constant: how full tables of strings are, which errors controllers
	// remember, how large the buffers of connections are. Half of it is for the native histograms of the metrics, which
	// get up to 100 buckets each: by a heap profile they grow by 0.6 MB in the first nine minutes. Without a leak the
	// medians differ by up to 850 KB in two minutes.
	maxMoreHeap = 1152 << 10
	// minRounds is how many rounds a verdict needs: three in each quarter. A soak goes on until it has them.
	minRounds = 12
)

// compare returns the median of the second quarter of the samples, which is warm, and that of the last.
func compare(samples []sample) (warm, end sample) {
	n := len(samples)
	return median(samples[n/4 : n/2]), median(samples[n-n/4:])
}

// median is taken of each number by itself.
func median(samples []sample) sample {
	of := func(number func(sample) int64) int64 {
		var all []int64
		for _, s := range samples {
			all = append(all, number(s))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	return sample{
		heap:        of(func(s sample) int64 { return s.heap }),
		goroutines:  int(of(func(s sample) int64 { return int64(s.goroutines) })),
		descriptors: int(of(func(s sample) int64 { return int64(s.descriptors) })),
	}
}

// judge returns an error that names everything that has grown.
func judge(samples []sample) error {
	if len(samples) < minRounds {
		return fmt.Errorf("soak: %d rounds are too few for a verdict, which needs %d: use a longer -soak.time", len(samples), minRounds)
	}
	warm, end := compare(samples)
	var grown []error
	check := func(what string, warm, end, bound int64) {
		if end-warm > bound {
			grown = append(grown, fmt.Errorf("soak: %s grew by %d, from %d after the warm-up to %d at the end; the bound is %d",
				what, end-warm, warm, end, bound))
		}
	}
	check("the live heap (bytes)", warm.heap, end.heap, maxMoreHeap)
	check("the number of goroutines", int64(warm.goroutines), int64(end.goroutines), maxMoreGoroutines)
	check("the number of descriptors", int64(warm.descriptors), int64(end.descriptors), maxMoreDescriptors)
	return errors.Join(grown...)
}

// judgeEnd returns an error if something is left of what was started after before was measured.
func judgeEnd(before, after sample) error {
	var left []error
	if n := after.goroutines - before.goroutines; n > 0 {
		left = append(left, fmt.Errorf("soak: %d goroutines are left after everything has stopped", n))
	}
	if n := after.descriptors - before.descriptors; n > 0 {
		left = append(left, fmt.Errorf("soak: %d descriptors are left after everything has stopped", n))
	}
	return errors.Join(left...)
}

// series is the samples of a soak: each number begins with a value and grows by another one in every round.
func series(rounds int, begin, grow sample) (all []sample) {
	for i := range rounds {
		all = append(all, sample{
			heap:        begin.heap + int64(i)*grow.heap,
			goroutines:  begin.goroutines + i*grow.goroutines,
			descriptors: begin.descriptors + i*grow.descriptors,
		})
	}
	return all
}

var usual = sample{heap: 17_000_000, goroutines: 75, descriptors: 24}

func TestVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds int
		grow   sample
		says   []string
	}{
		"flat":                              {24, sample{}, nil},
		"flat for hours":                    {3000, sample{}, nil},
		"a goroutine in each round":         {24, sample{goroutines: 1}, []string{"the number of goroutines grew by 12"}},
		"a descriptor in each round":        {24, sample{descriptors: 1}, []string{"the number of descriptors grew by 12"}},
		"64 KB in each of few rounds":       {24, sample{heap: 64 << 10}, nil},
		"a page in each of many rounds":     {600, sample{heap: 4 << 10}, []string{"the live heap (bytes) grew by 1228800"}},
		"everything":                        {24, sample{100_000, 1, 1}, []string{"heap", "goroutines", "descriptors"}},
		"too few rounds to compare":         {11, sample{}, []string{"11 rounds are too few"}},
		"what shrinks is not what is meant": {24, sample{-1000, -1, -1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := judge(series(tc.rounds, usual, tc.grow))
			if len(tc.says) == 0 {
				require.NoError(t, err)
			}
			for _, says := range tc.says {
				require.ErrorContains(t, err, says)
			}
		})
	}
}

// TestOutliersDoNotCount has two rounds in the last quarter that were measured at a bad moment.
func TestOutliersDoNotCount(t *testing.T) {
	all := series(24, usual, sample{})
	all[19], all[22] = sample{90_000_000, 900, 90}, sample{90_000_000, 900, 90}
	require.NoError(t, judge(all))
}

// TestWarmUpDoesNotCount has everything grow tenfold in the first quarter.
func TestWarmUpDoesNotCount(t *testing.T) {
	all := append(series(6, sample{1_000_000, 10, 5}, sample{3_000_000, 10, 3}), series(18, usual, sample{})...)
	require.NoError(t, judge(all))
}

func TestVerdictOfTheEnd(t *testing.T) {
	require.NoError(t, judgeEnd(usual, usual))
	require.ErrorContains(t, judgeEnd(usual, sample{goroutines: 76, descriptors: 24}), "1 goroutines are left")
	require.ErrorContains(t, judgeEnd(usual, sample{goroutines: 75, descriptors: 26}), "2 descriptors are left")
}
