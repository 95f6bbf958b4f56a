package shard

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/leatproject/leat/api/hashrange"
)

// DebugHandler returns a handler that describes the member in JSON, for people. The fields are those of Status. A
// manager with AdminOptions.Debug serves it at /debug/controllers/shard-GROUP. It answers 404 to /debug/why/KEY.
func (m *Member) DebugHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/controllers/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(m.Status().debug()) // it fails only if the client is gone
	})
	return mux
}

// debugState is a Status with texts instead of ranges and errors.
type debugState struct {
	Summary                      string
	Identity, Group, Lease       string
	Renewed, Deadline            time.Time
	Cut                          string
	Held, Target, Releasing      debugRanges
	Waiting                      []debugWait
	WaitingSince, ReleasingSince time.Time
	Work                         int
	Acquired, Released, Lost     int64
	Members                      []debugMember
	Err                          string
}

type debugRanges struct {
	Ranges string
	Share  float64 // of all hashes
}

type debugWait struct {
	debugRanges

	Because string
}

type debugMember struct {
	Identity string
	Claims   debugRanges
	Leaving  bool
}

func (s Status) debug() debugState {
	d := debugState{
		Summary: s.String(), Identity: s.Identity, Group: s.Group, Lease: s.Lease, Renewed: s.Renewed, Deadline: s.Deadline,
		Cut: s.Cut, Held: debugSet(s.Held), Target: debugSet(s.Target), Releasing: debugSet(s.Releasing), Waiting: []debugWait{},
		WaitingSince: s.WaitingSince, ReleasingSince: s.ReleasingSince, Work: s.Work,
		Acquired: s.Acquired, Released: s.Released, Lost: s.Lost, Members: []debugMember{},
	}
	for _, w := range s.Waiting {
		d.Waiting = append(d.Waiting, debugWait{debugSet(w.Ranges), w.Because})
	}
	for _, m := range s.Members {
		d.Members = append(d.Members, debugMember{m.Identity, debugSet(m.Claims), m.Leaving})
	}
	if s.Err != nil {
		d.Err = s.Err.Error()
	}
	return d
}

func debugSet(s hashrange.Set) debugRanges { return debugRanges{s.String(), s.Share()} }
