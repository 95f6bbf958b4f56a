package reflector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// probeTable is the part of the table that is about whether the server went back: when a probe is made, and what comes
// after it.
func probeTable() []row {
	watched := []verb{stream, watch}
	silent := state{do: watch, version: "7", emptyWatches: 2}
	probing := state{do: probe, version: "7", emptyWatches: 2}
	return []row{
		{
			"a silent watch of less than a minute: the next one at once", watched, silent,
			[]ending{done},
			outcome{synced: true, version: "7", lasted: 59 * time.Second},
			state{do: watch, version: "7", silence: 59 * time.Second},
			0,
		},
		{
			"a minute of silence: a probe at once", watched, silent.with(func(s *state) { s.silence = 59 * time.Second }),
			[]ending{done},
			outcome{synced: true, version: "7", lasted: time.Second},
			state{do: probe, version: "7"},
			0,
		},
		{
			"a minute of silence, of versions that have no order: the next watch at once", watched,
			state{do: watch, version: "opaque"},
			[]ending{done},
			outcome{synced: true, version: "opaque", lasted: time.Minute},
			state{do: watch, version: "opaque"},
			0,
		},
		{
			"no judgement, and versions that have no order: the same watch again", watched,
			state{do: watch, version: "opaque"},
			[]ending{busy, unreachable},
			outcome{synced: true, version: "opaque"},
			away(state{do: watch, version: "opaque"}), base,
		},

		{
			"the server has the version: watch at once", only(probe), probing.with(func(s *state) { s.busyProbes = 1 }),
			[]ending{done},
			outcome{},
			state{do: watch, version: "7", emptyWatches: 2},
			0,
		},
		{
			"the server went back: list at once, and believe it", only(probe), probing,
			[]ending{rewound},
			outcome{},
			relisted(state{version: "7", consistent: true, rewound: true}), 0,
		},
		{
			"the server went back during an outage: list at once, spread, and believe it", only(probe),
			probing.with(func(s *state) { s.attempt, s.failedAt, s.away = 9, noon, true }),
			[]ending{rewound},
			outcome{},
			state{
				version: "7", consistent: true, rewound: true,
				attempt: 10, failedAt: noon, relisted: true, spread: 5 * time.Second,
			},
			0,
		},
		{
			"no server is there: probe until one is", only(probe), probing.with(func(s *state) { s.busyProbes = 1 }),
			[]ending{unreachable},
			outcome{},
			away(state{do: probe, version: "7", emptyWatches: 2}), base,
		},
		{
			"the server is busy: probe again", only(probe), probing,
			[]ending{busy},
			outcome{},
			away(state{do: probe, version: "7", emptyWatches: 2, busyProbes: 1}), base,
		},
		{
			"the server is busy again: watch", only(probe), probing.with(func(s *state) { s.busyProbes = 1 }),
			[]ending{busy},
			outcome{},
			away(state{do: watch, version: "7", emptyWatches: 2}), base,
		},
		{
			"the server refuses the probe: watch at once", only(probe), probing,
			[]ending{rejected},
			outcome{},
			state{do: watch, version: "7", emptyWatches: 2},
			0,
		},
		{
			"any other failure: watch", only(probe), probing,
			[]ending{expired, tooLarge, deadline, backwards, broken},
			outcome{},
			failed(state{do: watch, version: "7", emptyWatches: 2}), base,
		},
	}
}

// A probe must neither make the server look for an object nor need a permission that the informer has not.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		selector   string
		namespaced bool
		want       string
	}{
		{"", true, "metadata.name=leat-probe,metadata.namespace=default"},
		{"", false, "metadata.name=leat-probe"},
		{"spec.nodeName=a", true, "spec.nodeName=a,metadata.name=leat-probe,metadata.namespace=default"},
		{"spec.nodeName=a", false, "spec.nodeName=a,metadata.name=leat-probe"},
		{"metadata.name!=a", false, "metadata.name!=a,metadata.name=leat-probe"},
		{"metadata.name=a", true, "metadata.name=a"},
		{"metadata.namespace=b,metadata.name==a", true, "metadata.namespace=b,metadata.name==a"},
	} {
		require.Equal(t, c.want, narrow(c.selector, c.namespaced))
	}
}
