package reflector_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/reflector"
)

// A server may ask for a pause. A hostile or broken server may ask for hours or decades.
func TestRetryAfterIsBounded(t *testing.T) {
	hour, decades := errTooMany(3600), errTooMany(math.MaxInt32)
	for name, c := range map[string]struct {
		bound time.Duration
		first answer // of a request that fails at 0s
		err   error
		asked time.Duration
		want  time.Duration
	}{
		"a list, an hour":              {0, watchList(hour), hour, time.Hour, 2 * time.Minute},
		"a list, decades":              {0, watchList(decades), decades, math.MaxInt32 * time.Second, 2 * time.Minute},
		"an ERROR event, decades":      {0, watchList(added(at("a", "1")), initialEnd("5"), decades), decades, math.MaxInt32 * time.Second, 2 * time.Minute},
		"another bound":                {10 * time.Second, watchList(hour), hour, time.Hour, 10 * time.Second},
		"the largest bound":            {math.MaxInt64, watchList(hour), hour, time.Hour, time.Hour},
		"less than the bound":          {0, watchList(errTooMany(17)), errTooMany(17), 17 * time.Second, 17 * time.Second},
		"a negative pause":             {0, watchList(errTooMany(math.MinInt32)), errTooMany(math.MinInt32), 0, 800 * time.Millisecond},
		"a bound shorter than a pause": {time.Millisecond, watchList(hour), hour, time.Hour, 800 * time.Millisecond},
		"as much as the bound":         {17 * time.Second, watchList(errTooMany(17)), errTooMany(17), 17 * time.Second, 17 * time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			b := run(t, options{Tuning: reflector.Tuning{MaxRetryAfter: c.bound}, Logger: zap.New(core)}, c.first)
			status := b.Status()
			require.Equal(t, reflector.Waiting, status.Phase)
			require.Equal(t, c.want, time.Until(status.NextAttempt))
			require.Equal(t, c.asked, status.RetryAfter, "Status has the pause that the server asked for")
			require.Equal(t, c.err, status.Err)

			cut := logs.FilterMessage("the server asked for a pause longer than MaxRetryAfter").All()
			if c.want >= c.asked {
				require.Empty(t, cut)
			} else {
				require.Len(t, cut, 1)
				require.Equal(t, c.asked, cut[0].ContextMap()["asked"])
				require.Equal(t, c.want, cut[0].ContextMap()["after"])
			}
			b.pass(c.want - 1)
			require.Len(t, b.lw.asked().requests, 1)
			b.pass(1)
			require.Len(t, b.lw.asked().requests, 2)
		})
	}
}

// Status.RetryAfter belongs to the last failure.
func TestRetryAfterIsForgotten(t *testing.T) {
	bubble(t, "with the next success", func(t *testing.T) {
		b := run(t, options{}, watchList(errTooMany(3600)), watchList(initialEnd("5"), stay))
		b.pass(2 * time.Minute)
		require.NoError(t, b.Status().Err)
		require.Zero(t, b.Status().RetryAfter)
	})
	bubble(t, "with the next failure", func(t *testing.T) {
		b := run(t, options{}, watchList(errTooMany(3600)), watchList(errReset))
		b.pass(2 * time.Minute)
		require.Equal(t, errReset, b.Status().Err)
		require.Zero(t, b.Status().RetryAfter)
	})
}
