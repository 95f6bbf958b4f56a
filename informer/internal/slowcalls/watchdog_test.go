package slowcalls

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFindLong has a call that was recorded some time ago, and one earlier check or none. The process may have been
// suspended since, so a long time without a check says nothing about the call.
func TestFindLong(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded, checked time.Duration // time since then; 0 means no check
		long              bool
	}{
		"long":                          {time.Minute, time.Second, true},
		"almost long":                   {time.Minute - 1, time.Second, false},
		"recorded before the check":     {time.Hour, time.Hour - 1, true},
		"recorded together with it":     {time.Hour, time.Hour, false},
		"recorded after the check":      {time.Hour, time.Hour + 1, false},
		"no check since it was started": {time.Hour, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c Call
				w := New(time.Minute, func() []*Call { return []*Call{&c} })
				<-time.After(2 * time.Hour)
				now := time.Now()
				c.startedAt.Store(w.offset(now.Add(-tc.recorded)))
				if tc.checked > 0 {
					w.lastCheck = w.offset(now.Add(-tc.checked))
				}
				require.Equal(t, tc.long, len(w.findLong()) == 1)
				require.Equal(t, !tc.long, w.armed.Load(), "the timer must run until the call is reported, and no longer")
				w.Stop()
			})
		})
	}
}
