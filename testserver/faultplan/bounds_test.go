package faultplan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/faultplan"
)

// TestErrorsAreBounded has long wrong texts. An error quotes their beginning.
func TestErrorsAreBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("x", 60_000), strings.Repeat("x ", 30_000), `"` + strings.Repeat(`\"`, 30_000) + `"`, strings.Repeat("y", faultplan.MaxText+1),
		"list " + strings.Repeat("a", 30_000) + " b: reset", "frames=" + strings.Repeat("z", 30_000) + ": reset", "fail 503 " + strings.Repeat("é", 30_000) + "=",
	} {
		_, err := faultplan.Parse(text)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1<<10)
		_, err = faultplan.ParsePlan([]byte("faults:\n- '" + text + "'\n"))
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1<<10)
	}
	_, err := faultplan.ParsePlan([]byte(strings.Repeat("x: y\n", faultplan.MaxPlan/5)))
	require.ErrorContains(t, err, "a plan has the fields seed and faults")
	require.Less(t, len(err.Error()), 1<<10)
	_, err = faultplan.ParsePlan(make([]byte, faultplan.MaxPlan+1))
	require.EqualError(t, err, "the plan has 262145 bytes; a plan has at most 262144")
	f, err := faultplan.Parse(`fail 503 body="` + strings.Repeat("x", 60_000) + `"`)
	require.NoError(t, err, "a long body is a fault")
	require.Len(t, f.String(), 60_016)
}
