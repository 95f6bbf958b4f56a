package reflector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A refused list or watch is a warning in the log, because a person must correct its cause. A refused WatchList and a
// broken watch are normal.
func TestRefusalsAreWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		script script
		warns  int
	}{
		"a list":      {script{watchList(errForbid), failedList(errForbid), list("9"), watch(stay)}, 1},
		"a WatchList": {script{watchList(errForbid), list("9"), watch(stay)}, 0},
		"a watch":     {script{watchList(initialEnd("9")), watch(errForbid), watch(stay)}, 1},
		"a cut":       {script{watchList(initialEnd("9")), watch(errReset), watch(stay)}, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			b := run(t, options{Logger: zap.New(core)}, c.script...)
			b.pass(time.Minute)
			require.Equal(t, c.warns, logs.FilterMessage("the request failed").Len())
		})
	}
}
