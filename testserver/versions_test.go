package testserver_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

// TestClockVersions reads what a client of an earlier server reads.
func TestClockVersions(t *testing.T) {
	var earlier string
	inBubble(t, testserver.Options{ClockVersions: true}, func(b *bench) {
		require.Equal(b, "946684800000000", b.ResourceVersion(), "the clock of a bubble begins in 2000")
		for range 100 {
			b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"generateName": "x-"}})
		}
		earlier = b.ResourceVersion()
	})
	inBubble(t, testserver.Options{ClockVersions: true, FirstVersion: 946684800000000 + 5_000_000}, func(b *bench) {
		a := b.do(http.MethodGet, mapsPath+"?resourceVersionMatch=Exact&limit=1&resourceVersion="+earlier, nil)
		require.Equal(b, 410, a.code)
		next, err := strconv.ParseInt(b.ResourceVersion(), 10, 64)
		require.NoError(b, err)
		require.Equal(b, int64(946684805000000), next, "FirstVersion, because it is higher")
	})
}
