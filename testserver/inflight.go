package testserver

import (
	"net/http"
	"slices"
	"time"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// InFlight limits the requests in progress as kube-apiserver does. Watches and other streams do not count, and neither
// do requests of the control plane. Members of system:masters are never rejected. The zero value has no limits.
type InFlight struct {
	// Reads and Writes are the numbers of requests at which one more gets 429. Zero means no limit.
	Reads, Writes int
	// Queue makes the sum of both the limit of all requests. One more waits for up to 15 seconds and then gets 429.
	Queue bool
}

// queueTime is how long a request waits in a queue of kube-apiserver with its default flags.
const queueTime = 15 * time.Second

// gates contain an element for each request in progress. A nil gate has no limit.
type gates struct {
	reads, writes chan struct{}
	wait          time.Duration
}

func newGates(o InFlight) (g gates) {
	switch {
	case o.Queue:
		g.reads, g.wait = make(chan struct{}, o.Reads+o.Writes), queueTime
		g.writes = g.reads
		return g
	case o.Reads > 0:
		g.reads = make(chan struct{}, o.Reads)
	}
	if o.Writes > 0 {
		g.writes = make(chan struct{}, o.Writes)
	}
	return g
}

// enter lets a request in, and returns the gate that it passed, or nil. ok is false if there are too many.
func (g gates) enter(r *http.Request, request Request, user registry.User) (passed chan struct{}, ok bool) {
	gate := g.writes
	if request.Verb == "get" || request.Verb == "list" {
		gate = g.reads
	}
	if gate == nil || request.Verb == "watch" || slices.Contains(streams, request.Subresource) {
		return nil, true
	}
	select {
	case gate <- struct{}{}:
		return gate, true
	default:
	}
	if slices.Contains(user.Groups, "system:masters") {
		return nil, true
	}
	select {
	case gate <- struct{}{}:
		return gate, true
	case <-time.After(g.wait):
	case <-r.Context().Done():
	}
	return nil, false
}
