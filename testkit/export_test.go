package testkit

import "testing"

// CompareMasks returns what GuardMasks reports.
func CompareMasks(t *testing.T, masks Masks, test func(*Kit, Masks)) []string {
	return compareMasks(masks, func(m Masks) (state objects) {
		Run(t, Options{}, func(k *Kit) {
			test(k, m)
			state = stateOf(k)
		})
		return state
	})
}
