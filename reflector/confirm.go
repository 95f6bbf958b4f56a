package reflector

import (
	"time"

	"github.com/leatproject/leat/api"
)

// A server that was restored from a backup has an older version than its clients, and then counts up again. Before it
// reaches the version of a client, that client can notice the restore; after that, nothing shows it any more. So a
// version is *unconfirmed* after each event that a restore can hide behind, until the server shows that it has the
// version: with an event, a bookmark or the answer of a probe.

// confirmation says whether the server is known to still have the version reached. The zero value means that it is
// confirmed.
type confirmation struct {
	pending bool // the version is unconfirmed
	// exposed is for how long a server has answered since then without confirming the version. It is the time in which
	// a restored server may have counted up. It does not grow while the client gets no connection, except by the pause
	// before the first request that gets none, and by the time from the next watch to its first answer.
	exposed time.Duration
	at      time.Time // exposed counts up to here: the end of the last request, or the begin of one after an outage
	down    bool      // the last request got no connection
	probes  int       // probes in a row that failed, for the backoff
	refused bool      // the server refuses probes, so any event or bookmark confirms the version
}

// after notes a request that has ended.
func (c *confirmation) after(res *result) {
	switch {
	case !c.pending:
		return
	case res.outcome == unreachable:
		if began := res.at.Add(-res.lasted); !c.down && began.After(c.at) {
			c.pass(began) // the server may have answered others until then
		}
		c.down, c.at = true, res.at
	default:
		c.down = false
		c.pass(res.at)
	}
}

// pass lets the time pass until now.
func (c *confirmation) pass(now time.Time) {
	if c.pending && !c.down {
		c.exposed, c.at = c.exposed+now.Sub(c.at), now
	}
}

// pause notes a time without requests. A server that got no connection before it may have answered since.
func (c *confirmation) pause(began, now time.Time) {
	c.doubt(began)
	if c.down {
		c.at = began
	}
	c.exposed, c.at = c.exposed+now.Sub(c.at), now
}

// doubt makes the version unconfirmed.
func (c *confirmation) doubt(at time.Time) {
	if !c.pending {
		*c = confirmation{pending: true, at: at}
	}
}

// tooLate reports whether an answer after a pause comes too late to confirm the version. Jitter can double the pause.
func (l *limits) tooLate(c *confirmation, pause time.Duration) bool {
	if c.down {
		pause = 0
	}
	return c.pending && c.exposed+2*pause > l.confirmWithin
}

// raisesDoubt reports whether a restore can hide behind the end of a request. A connection that breaks may be the end
// of the server. An answer of 4xx or 5xx, or no answer at all, may come from a server that starts again, and an answer
// that is too old from one that was restored. Only a healthy server ends a watch without an error.
func raisesDoubt(o outcome) bool {
	switch o {
	case tooLarge, unreachable, busy, rejected, deadline, backwards, rolledBack, broken:
		return true
	default:
		return false
	}
}

// hasOrder reports whether a version can be compared with later ones. Only then can a probe confirm it.
func hasOrder(version string) bool {
	_, decimal := api.CompareVersions("1", version)
	return decimal && version != "0"
}

// afterProbe is the policy of probes. From the confirmation and the result of a probe it returns the next confirmation,
// how the watch beside the probe must end, or done if it may continue, and the pause before the next probe, without
// jitter.
//
// An answer that comes too late shows only that the server can answer a list now. A list follows then, and not earlier:
// an overloaded server gets no lists because its clients doubt it, and a watch that works is not given up for a list
// that fails. The price: until then the store may contain events of a server that was restored; Status shows it.
func (l *limits) afterProbe(c confirmation, res *result) (_ confirmation, end outcome, pause time.Duration) {
	c.after(res)
	late := l.tooLate(&c, 0)
	switch {
	case res.outcome == rolledBack:
		return c, rolledBack, 0
	case res.outcome == done && late:
		return c, unconfirmed, 0
	case res.outcome == done:
		return confirmation{}, done, l.maxSilence
	case res.outcome == rejected && late:
		c.refused = true
		return c, done, l.maxSilence
	}
	c.probes++
	return c, done, max(l.backoff(c.probes), res.retryAfter)
}
