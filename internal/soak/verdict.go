package main

import (
	"errors"
	"fmt"
	"slices"
)

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

// quarters are the medians that a verdict is about.
type quarters struct{ warm, end sample }

// compare returns the median of the second quarter of the samples, and that of the last.
func compare(samples []sample) quarters {
	n := len(samples)
	return quarters{warm: median(samples[n/4 : n/2]), end: median(samples[n-n/4:])}
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
		return fmt.Errorf("soak: %d rounds are too few for a verdict, which needs %d: use a longer -time", len(samples), minRounds)
	}
	q := compare(samples)
	var grown []error
	check := func(what string, warm, end, bound int64) {
		if end-warm > bound {
			grown = append(grown, fmt.Errorf("soak: %s grew by %d, from %d after the warm-up to %d at the end; the bound is %d",
				what, end-warm, warm, end, bound))
		}
	}
	check("the live heap (bytes)", q.warm.heap, q.end.heap, maxMoreHeap)
	check("the number of goroutines", int64(q.warm.goroutines), int64(q.end.goroutines), maxMoreGoroutines)
	check("the number of descriptors", int64(q.warm.descriptors), int64(q.end.descriptors), maxMoreDescriptors)
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
