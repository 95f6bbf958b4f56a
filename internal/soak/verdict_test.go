package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
