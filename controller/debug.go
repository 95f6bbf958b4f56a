package controller

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leatproject/leat/controller/internal/history"
	"github.com/leatproject/leat/workqueue"
)

// Why returns up to four reconciles of a key, newest first, if the controller remembers them; see Options.History. An
// error is kept as text only, and a long text is cut. controller-runtime has nothing like it.
func (c *Controller[K]) Why(key K) []Report { return c.reports(key, c.history.Find(key)) }

// remember adds an attempt to the history.
func (c *Controller[K]) remember(a *ended[K]) {
	if c.history == nil {
		return
	}
	w := &a.work
	e := history.Entry{
		ID: a.id, Attempt: a.number, Started: a.started, Took: a.took, RequeueAfter: a.requeueAfter(), Next: a.next,
		Outcome: string(a.outcome), TimedOut: a.timedOut, Failed: a.err != nil,
		Work: workqueue.Work[struct{}]{Causes: w.Causes, CausesOmitted: w.CausesOmitted, Priority: w.Priority, Added: w.Added, Ready: w.Ready},
	}
	if e.Failed {
		e.Err = history.ErrorText(a.err)
	}
	c.history.Note(w.Key, &e)
}

// reports returns what the history has of a key.
func (c *Controller[K]) reports(key K, entries []history.Entry) (all []Report) {
	for _, e := range entries {
		r := Report{
			Controller: c.name, Key: formatKey(key), ID: formatID(e.ID), Attempt: e.Attempt, Priority: e.Work.Priority,
			Causes: e.Work.Causes, CausesOmitted: e.Work.CausesOmitted,
			Added: e.Work.Added, Ready: e.Work.Ready, Started: e.Started, Took: e.Took,
			Outcome: Outcome(e.Outcome), RequeueAfter: e.RequeueAfter, Next: e.Next, TimedOut: e.TimedOut,
		}
		if e.Failed {
			r.Err = errors.New(e.Err)
		}
		all = append(all, r)
	}
	return all
}

// DebugHandler returns a handler that describes the controller in JSON, for people. The fields are those of Stats and
// Report; durations are in nanoseconds. It answers
//
//   - a path without /why/, such as /debug/controllers/replicaset, with Stats, the running reconciles (longest first),
//     and the reason why a source is not synced;
//   - a path with /why/, such as /debug/why/default/web-0, with the state of the key that follows it, in the format of
//     the logs: the result of Why, the running reconcile, and the causes that wait if a Gate holds the key back. If the
//     controller has no such key, the answer is 404.
//
// The answers contain only names and versions of objects; the texts of errors come from the reconciler.
// controller-runtime has nothing like it.
func (c *Controller[K]) DebugHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, key, about := strings.Cut(r.URL.Path, "/why/")
		known, answer := true, any(nil)
		if about {
			answer, known = c.debugKey(key)
		} else {
			answer = c.debugState()
		}
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "controller: only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		case !known:
			http.Error(w, "controller: "+c.name+" does not know this key", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			_ = e.Encode(answer) // it fails only if the client is gone
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return history.ErrorText(err)
}

// debugState is the answer about a controller.
type debugState struct {
	Stats
	Running []debugReport
	Sources []debugSource
}

// debugKey is the answer about a key.
type debugKey struct {
	Controller string
	Key        string
	Gated      *debugReport `json:",omitempty"` // with the waiting causes
	Running    *debugReport `json:",omitempty"`
	Reconciles []debugReport
}

// debugReport is a Report with the error as text.
type debugReport struct {
	Report
	Err string `json:",omitempty"`
}

// debugSource is a source, with the reason why it is not synced.
type debugSource struct {
	SourceStats
	NotSynced string `json:",omitempty"`
}

func (c *Controller[K]) debugState() debugState {
	state := debugState{Stats: c.Stats(), Running: []debugReport{}, Sources: []debugSource{}}
	for _, a := range c.inWork() {
		state.Running = append(state.Running, a.debug())
	}
	for _, sink := range c.watched() {
		source := debugSource{SourceStats: sink.stats()}
		source.NotSynced = errorText(sink.notSynced())
		state.Sources = append(state.Sources, source)
	}
	return state
}

// debugKey returns the state of the key that has the given text, and reports whether there is any.
func (c *Controller[K]) debugKey(text string) (answer debugKey, known bool) {
	answer = debugKey{Controller: c.name, Key: text, Reconciles: []debugReport{}}
	for _, a := range c.inWork() {
		if formatKey(a.work.Key) == text {
			report := a.debug()
			answer.Running = &report
		}
	}
	if w, held := c.gates.find(text); held {
		answer.Gated = &debugReport{Report: Report{
			Controller: c.name, Key: text, Priority: w.Priority,
			Causes: w.Causes, CausesOmitted: w.CausesOmitted, Added: w.Added, Ready: w.Ready,
		}}
	}
	key, past := c.history.Match(func(key K) bool { return formatKey(key) == text })
	for _, report := range c.reports(key, past) {
		answer.Reconciles = append(answer.Reconciles, debugReport{Report: report, Err: errorText(report.Err)})
	}
	return answer, answer.Gated != nil || answer.Running != nil || len(answer.Reconciles) > 0
}

// debug returns the report of a running attempt.
func (a *attempt[K]) debug() debugReport {
	return debugReport{Report: Report{
		Controller: a.controller.name, Key: formatKey(a.work.Key), ID: a.reconcileID(), Attempt: a.number,
		Priority: a.work.Priority, Causes: a.currentCauses(), CausesOmitted: a.work.CausesOmitted,
		Added: a.work.Added, Ready: a.work.Ready, Started: a.started, Took: time.Since(a.started),
	}}
}

// inWork returns the running attempts, the longest first.
func (c *Controller[K]) inWork() []*attempt[K] {
	var all []*attempt[K]
	places := c.places()
	for i := range places {
		if a := places[i].Load(); a != nil {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *attempt[K]) int { return a.started.Compare(b.started) })
	return all
}
