package front

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSameMachine requires that keys are sent to this machine only.
func TestSameMachine(t *testing.T) {
	for _, tc := range []struct {
		local, remote string
		same          bool
	}{
		{"127.0.0.1:1", "127.0.0.1:2", true},
		{"[::1]:1", "[::1]:2", true},
		{"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:2", true},
		{"192.0.2.2:1", "192.0.2.2:2", true},
		{"192.0.2.2:1", "192.0.2.1:2", false},
		{"[fe80::1%eth0]:1", "[fe80::1%eth1]:2", false},
		{"192.0.2.2:1", "", false},
	} {
		require.Equal(t, tc.same, SameMachine(tc.local, tc.remote), "%s to %s", tc.local, tc.remote)
	}
}
