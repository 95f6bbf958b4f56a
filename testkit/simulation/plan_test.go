package simulation

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEqualSeedsGiveEqualPlans(t *testing.T) {
	o := Options{Changes: map[string]Change{"a": nil, "b": nil, "c": nil}}.withDefaults()
	require.Equal(t, o.plan(7), o.plan(7))
	require.NotEqual(t, o.plan(7), o.plan(8))
	kinds := map[stepKind]bool{}
	for _, s := range o.plan(7) {
		kinds[s.kind] = true
	}
	require.Len(t, kinds, 5, "a plan has steps of every kind")
}

func TestShrink(t *testing.T) {
	steps := make([]step, 60)
	for i := range steps {
		steps[i].seed = uint64(i)
	}
	has := func(steps []step, seed uint64) bool {
		return slices.ContainsFunc(steps, func(s step) bool { return s.seed == seed })
	}
	runs := 0
	fails := func(steps []step) bool {
		runs++
		return has(steps, 3) && has(steps, 41)
	}
	require.Equal(t, []step{{seed: 3}, {seed: 41}}, shrink(steps, 1000, fails))
	runs = 0
	require.NotEmpty(t, shrink(steps, 10, fails))
	require.Equal(t, 10, runs)
	require.Empty(t, shrink(steps, 1000, func([]step) bool { return true }))
}
