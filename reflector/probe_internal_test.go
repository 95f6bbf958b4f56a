package reflector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// probeTable is the part of the table about probes: when the reflector sends one, and what follows.
func probeTable() []row {
	watched := []verb{watchList, watch}
	silent := state{do: watch, version: "7", watches: watchState{failures: 2}}
	probing := state{do: probe, version: "7", watches: watchState{failures: 2}}
	return []row{
		{
			"a silent watch of less than a minute: the next one at once", watched, silent,
			[]outcome{done},
			result{synced: true, version: "7", lasted: 59 * time.Second},
			state{do: watch, version: "7", watches: watchState{silence: 59 * time.Second}},
			0,
		},
		{
			"a minute of silence: a probe at once", watched, silent.with(func(s *state) { s.watches.silence = 59 * time.Second }),
			[]outcome{done},
			result{synced: true, version: "7", lasted: time.Second},
			state{do: probe, version: "7"},
			0,
		},
		{
			"a minute of silence, with versions without an order: the next watch at once", watched,
			state{do: watch, version: "opaque"},
			[]outcome{done},
			result{synced: true, version: "opaque", lasted: time.Minute},
			state{do: watch, version: "opaque"},
			0,
		},
		{
			"an outage, with versions without an order: the same watch again", watched,
			state{do: watch, version: "opaque"},
			[]outcome{busy, unreachable},
			result{synced: true, version: "opaque"},
			inOutage(state{do: watch, version: "opaque"}), base,
		},

		{
			"the server has reached the version: watch at once", only(probe), probing.with(func(s *state) { s.watches.busyProbes = 1 }),
			[]outcome{done},
			result{},
			state{do: watch, version: "7", watches: watchState{failures: 2}},
			0,
		},
		{
			"the server was restored: a list at once, which is accepted", only(probe), probing,
			[]outcome{rolledBack},
			result{},
			relisted(state{version: "7", list: listState{need: acceptRollback}}), 0,
		},
		{
			"the server was restored in an outage: a list within five seconds, which is accepted", only(probe),
			probing.with(func(s *state) { s.failures.count, s.failures.at, s.failures.outage = 9, noon, true }),
			[]outcome{rolledBack},
			result{},
			state{version: "7", spread: 5 * time.Second, list: listState{need: acceptRollback}, failures: failureState{count: 10, at: noon, relisted: true}},
			0,
		},
		{
			"no connection: probe again", only(probe), probing.with(func(s *state) { s.watches.busyProbes = 1 }),
			[]outcome{unreachable},
			result{},
			inOutage(state{do: probe, version: "7", watches: watchState{failures: 2}}), base,
		},
		{
			"the server is busy: probe again", only(probe), probing,
			[]outcome{busy},
			result{},
			inOutage(state{do: probe, version: "7", watches: watchState{failures: 2, busyProbes: 1}}), base,
		},
		{
			"the server is busy again: watch", only(probe), probing.with(func(s *state) { s.watches.busyProbes = 1 }),
			[]outcome{busy},
			result{},
			inOutage(state{do: watch, version: "7", watches: watchState{failures: 2}}), base,
		},
		{
			"the server refuses the probe: watch at once", only(probe), probing,
			[]outcome{rejected},
			result{},
			state{do: watch, version: "7", watches: watchState{failures: 2}},
			0,
		},
		{
			"any other failure: watch", only(probe), probing,
			[]outcome{expired, tooLarge, deadline, backwards, broken},
			result{},
			failed(state{do: watch, version: "7", watches: watchState{failures: 2}}), base,
		},
	}
}

// A probe must not make the server read the whole collection, and must not need a permission that lists do not need.
func TestSelectOneName(t *testing.T) {
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
		require.Equal(t, c.want, selectOneName(c.selector, c.namespaced))
	}
}
