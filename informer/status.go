package informer

import (
	"fmt"
	"strings"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// Status is how an informer fares: what its reflector does, what its cache holds, how far its handlers are.
type Status struct {
	Resource api.Resource
	// Reflector tells of requests, errors and versions received.
	Reflector reflector.Status
	// Synced says whether the cache holds the first list, Objects how many it holds, and ResourceVersion what it is a
	// copy of.
	Synced          bool
	Objects         int
	ResourceVersion string
	// Undecodable is how many objects the cache holds in an old state, or not at all, because the newest one could not
	// be decoded or transformed.
	Undecodable int
	// HeardAt is when something came last that the cache shows: an event, a bookmark, the end of a list. What it is ago
	// is how old the cache may be. It is zero before the first list.
	HeardAt  time.Time
	Handlers []HandlerStatus
}

// HandlerStatus is how one handler fares.
type HandlerStatus struct {
	Name    string
	Synced  bool
	Pending int
	Panics  int64
	// StuckSince is when the call in flight began if it takes longer than Options.StuckAfter, and otherwise zero.
	StuckSince time.Time
}

// Status may be called from anywhere, before, during and after Run.
func (i *Informer[T]) Status() Status {
	snapshot := i.indexer.Snapshot()
	s := Status{
		Resource:        i.Resource(),
		Reflector:       i.reflector.Status(),
		Synced:          isClosed(i.synced),
		Objects:         snapshot.Len(),
		ResourceVersion: snapshot.ResourceVersion(),
		Undecodable:     len(i.reflector.Undecodable()),
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.Synced {
		s.HeardAt = i.heard
		if s.Reflector.ResourceVersion == s.ResourceVersion { // nothing that came is still on its way
			s.HeardAt = latest(s.Reflector.CaughtUpAt, i.heard)
		}
	}
	for _, l := range i.listeners {
		s.Handlers = append(s.Handlers, HandlerStatus{
			Name: l.name, Synced: isClosed(l.synced), Pending: l.pending(), Panics: l.panics.Load(),
			StuckSince: l.current.stuckSince(),
		})
	}
	return s
}

// String is one line that answers "why is this not synced".
func (s Status) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", s.Resource)
	if s.Synced {
		fmt.Fprintf(&b, "synced, %s at version %s, %s", objects(s.Objects), s.ResourceVersion, s.Reflector.Phase)
	} else {
		fmt.Fprintf(&b, "not synced, %s, %s received", s.Reflector.Phase, objects(s.Reflector.Objects))
		if s.Reflector.Remaining > 0 {
			fmt.Fprintf(&b, " of %d", int64(s.Reflector.Objects)+s.Reflector.Remaining)
		}
	}
	if s.Undecodable > 0 {
		fmt.Fprintf(&b, ", %d undecodable", s.Undecodable)
	}
	if s.Reflector.Counters.Malformed > 0 {
		fmt.Fprintf(&b, ", %d malformed", s.Reflector.Counters.Malformed)
	}
	if s.Reflector.Unversioned {
		b.WriteString(", objects change without a new version")
	}
	if s.Reflector.Err != nil {
		fmt.Fprintf(&b, ", after %s: %v", failures(s.Reflector.Attempt), s.Reflector.Err)
	}
	if s.Reflector.RetryAfter > 0 {
		fmt.Fprintf(&b, " (the server asked for a pause of %v)", s.Reflector.RetryAfter)
	}
	return b.String()
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func failures(n int) string {
	if n == 1 {
		return "a failure"
	}
	return fmt.Sprintf("%d failures", n)
}
