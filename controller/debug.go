package controller

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Why returns the last four reconciles of a key, the newest first, as far as they are remembered; see Options.History. Of
// an error there is the text alone, and of a long one its beginning.
// Nothing in controller-runtime corresponds to it.
func (c *Controller[K]) Why(key K) []Report { return c.history.find(c.name, key) }

// DebugHandler tells people in JSON what the controller does. The fields are those of Stats and Report, times without a
// date are in nanoseconds. It answers
//
//   - a path without /why/ in it, such as /debug/controllers/replicaset, with Stats, to which it adds what is being
//     reconciled, the longest first, and the reason why a source is not synced;
//   - a path with /why/ in it, such as /debug/why/default/web-0, with what is known of the key behind it, which is
//     written as it is in logs: what Why returns, the reconcile that it is in, and what waits with it if a Gate holds it
//     back. If nothing is known, the answer is 404.
//
// Of objects it tells nothing but names and versions; the texts of errors are the reconciler's.
// Nothing in controller-runtime corresponds to it.
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
			http.Error(w, "controller: there is nothing to do but to read", http.StatusMethodNotAllowed)
		case !known:
			http.Error(w, "controller: "+c.name+" knows nothing of this key", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			_ = e.Encode(answer) // it fails only if who asked is gone
		}
	})
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
	Gated      *debugReport `json:",omitempty"` // with the causes that wait
	Running    *debugReport `json:",omitempty"`
	Reconciles []debugReport
}

// debugReport is a Report whose error is a text.
type debugReport struct {
	Report
	Err string `json:",omitempty"`
}

// debugSource is a source with the reason why it is not synced.
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

// debugKey returns what is known of the key that is written as text.
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
	for _, report := range c.history.findText(c.name, text) {
		answer.Reconciles = append(answer.Reconciles, debugReport{Report: report, Err: errorText(report.Err)})
	}
	return answer, answer.Gated != nil || answer.Running != nil || len(answer.Reconciles) > 0
}

// debug reports an attempt that has not come to its end.
func (a *attempt[K]) debug() debugReport {
	return debugReport{Report: Report{
		Controller: a.controller.name, Key: formatKey(a.work.Key), ID: a.reconcileID(), Attempt: a.number,
		Priority: a.work.Priority, Causes: a.currentCauses(), CausesOmitted: a.work.CausesOmitted,
		Added: a.work.Added, Ready: a.work.Ready, Started: a.started, Took: time.Since(a.started),
	}}
}

// inWork returns the attempts that have not come to their end, the longest first.
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
