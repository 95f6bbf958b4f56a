package reflector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pendingFor returns a confirmation in whose time a server has answered for d. Its last request ended at noon.
func pendingFor(d time.Duration) confirmation {
	return confirmation{pending: true, exposed: d, at: noon}
}

// A version is unconfirmed for as long as a server answers without confirming it. Time without a connection does not
// count, except that of the request which ends it, and of the pause before the first one.
func TestExposure(t *testing.T) {
	c := confirmation{}
	now := noon
	request := func(o outcome, after, lasted time.Duration) time.Duration {
		if now = now.Add(after + lasted); c.down {
			c.at = now.Add(-lasted) // as perform does
		}
		c.after(&result{outcome: o, lasted: lasted, at: now})
		return c.exposed
	}
	require.Zero(t, request(broken, time.Second, 0))
	require.Equal(t, confirmation{}, c, "after does not begin a doubt")
	c.doubt(now)
	require.Equal(t, time.Second, request(broken, time.Second, 0))
	require.Equal(t, 4*time.Second, request(busy, time.Second, 2*time.Second))
	require.Equal(t, 5*time.Second, request(unreachable, time.Second, time.Second))
	require.Equal(t, 5*time.Second, request(unreachable, time.Hour, time.Second))
	require.Equal(t, 6*time.Second, request(deadline, time.Hour, time.Second))
	require.Equal(t, 8*time.Second, request(done, time.Second, time.Second))
	c.doubt(now.Add(time.Hour))
	require.Equal(t, 8*time.Second, c.exposed, "a second doubt does not restart the clock")
	c.pass(now.Add(time.Second))
	require.Equal(t, 9*time.Second, c.exposed)
}

// probeRow is a row of the table of probes. The probe ended a second after noon.
type probeRow struct {
	name     string
	from     confirmation
	outcomes []outcome
	after    time.Duration // Retry-After
	to       confirmation
	end      outcome
	pause    time.Duration
}

func TestAfterProbe(t *testing.T) {
	l := testLimits()
	failing := []outcome{expired, tooLarge, busy, deadline, backwards, broken}
	tried := func(c confirmation, probes int) confirmation {
		c.exposed, c.probes, c.at = c.exposed+time.Second, probes, noon.Add(time.Second)
		return c
	}
	refused := pendingFor(30 * time.Second)
	refused.refused = true
	for _, r := range []probeRow{
		{"the server has the version: it is confirmed", pendingFor(29 * time.Second), []outcome{done}, 0, confirmation{}, done, l.maxSilence},
		{
			"the server has the version, but may have counted up to it: list", pendingFor(29*time.Second + 1),
			[]outcome{done},
			0, tried(pendingFor(29*time.Second+1), 0), unconfirmed, 0,
		},
		{
			"the server was restored: list", pendingFor(29 * time.Second),
			[]outcome{rolledBack},
			0, tried(pendingFor(29*time.Second), 0), rolledBack, 0,
		},
		{"a failure: again, with backoff", pendingFor(0), append(failing, rejected), 0, tried(pendingFor(0), 1), done, base},
		{
			"the third failure: again, with backoff",
			confirmation{pending: true, at: noon, probes: 2},
			failing, 0, tried(pendingFor(0), 3),
			done, 4 * base,
		},
		{
			"a failure, and the next answer will be too late: again, because a list would fail, too", pendingFor(time.Hour), failing, 0,
			tried(pendingFor(time.Hour), 1), done, base,
		},
		{"the server asks for a pause: again after that", pendingFor(0), failing, 20 * time.Second, tried(pendingFor(0), 1), done, 20 * time.Second},
		{
			"no connection: again, with backoff, while the clock stands", pendingFor(30 * time.Second),
			[]outcome{unreachable},
			0,
			confirmation{pending: true, exposed: 30 * time.Second, at: noon.Add(time.Second), down: true, probes: 1},
			done, base,
		},
		{
			"the server refuses probes for half a minute: in the next silence", pendingFor(30 * time.Second),
			[]outcome{rejected},
			0, tried(refused, 0), done, l.maxSilence,
		},
	} {
		for _, o := range r.outcomes {
			res := &result{outcome: o, at: noon.Add(time.Second), lasted: time.Second, retryAfter: r.after}
			to, end, pause := l.afterProbe(r.from, res)
			require.Equal(t, r.to, to, "%s: %s", r.name, outcomeNames[o])
			require.Equal(t, r.end, end, "%s: %s", r.name, outcomeNames[o])
			require.Equal(t, r.pause, pause, "%s: %s", r.name, outcomeNames[o])
		}
	}
}

// A list reuses no known object, and accepts an older version, if the version may have been reached again since a
// server was restored: whatever the order of the failures, and except for the time without a connection.
func TestListsOfUnconfirmedVersions(t *testing.T) {
	l := testLimits()
	for _, c := range []struct {
		name string
		from state
		res  result
		need consistency
	}{
		{"a list that failed", state{version: "7", confirm: pendingFor(27 * time.Second)}, result{outcome: broken}, acceptRollback},
		{"a list that failed sooner", state{version: "7", confirm: pendingFor(26 * time.Second)}, result{outcome: broken}, notOlder},
		{"a list without a connection", state{version: "7", confirm: pendingFor(29 * time.Second)}, result{outcome: unreachable}, notOlder},
		{
			"an expired version",
			state{do: watch, version: "7", confirm: pendingFor(29 * time.Second)},
			result{outcome: expired, synced: true},
			acceptRollback,
		},
		{
			"the third watch that failed",
			state{do: watch, version: "7", confirm: pendingFor(29 * time.Second), watches: watchState{failures: 2}},
			result{outcome: broken, synced: true},
			acceptRollback,
		},
		{"a watch that failed", state{do: watch, version: "7", confirm: pendingFor(time.Hour)}, result{outcome: broken, synced: true}, notOlder},
		{
			"the next page",
			state{do: page, version: "7", list: listState{token: "t"}, confirm: pendingFor(time.Hour)},
			result{items: 1, token: "u"},
			notOlder,
		},
	} {
		c.res.at, c.res.lasted, c.res.version = noon.Add(1500*time.Millisecond), time.Second, "7"
		to, _ := l.next(c.from, c.res)
		require.Equal(t, c.need, to.list.need, c.name)
	}
	to, _ := l.next(state{do: page, version: "7", confirm: pendingFor(time.Hour)}, result{synced: true, version: "8", at: noon})
	require.Equal(t, confirmation{}, to.confirm, "a list confirms its version")
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
