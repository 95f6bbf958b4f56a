package reflector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// What a server refuses needs somebody's hand, and stands out in the log. That it does not stream lists, and that watches
// break off, does not.
func TestRefusalsStandOutInTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		script script
		warns  int
	}{
		"a list":           {script{stream(errForbid), failedList(errForbid), list("9"), watch(stay)}, 1},
		"a streaming list": {script{stream(errForbid), list("9"), watch(stay)}, 0},
		"a watch":          {script{stream(initialEnd("9")), watch(errForbid), watch(stay)}, 1},
		"a cut":            {script{stream(initialEnd("9")), watch(errReset), watch(stay)}, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			b := run(t, options{Logger: zap.New(core)}, c.script...)
			b.pass(time.Minute)
			require.Equal(t, c.warns, logs.FilterMessage("request ended with an error").Len())
			b.stop()
		})
	}
}
