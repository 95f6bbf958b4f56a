package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/leatproject/leat/bench/runner"
)

// Target is the bound of a figure: at most Most·x + Plus, or at least Least·x. x is the figure of a peer, or 1 without
// a peer.
type Target struct {
	ID      string
	What    string
	Row     string
	Subject string // an entrant; "@first" and "@last" are leat's first and last of the row
	Metric  string
	Peer    string   `json:",omitempty"` // another entrant, or the same if only PeerMetric is set
	Of      string   `json:",omitempty"` // the peer's metric; Metric unless it is set
	Most    *float64 `json:",omitempty"`
	Plus    float64  `json:",omitempty"`
	Least   *float64 `json:",omitempty"`
	// Paired makes the ratio the median of those in each round, instead of the ratio of the medians. The subject and
	// the peer of a round run soon after each other, so both meet the same noise. It is for bounds of a few percent.
	Paired bool `json:",omitempty"`
	// Everywhere marks a figure that does not depend on the machine. A quick run fails if it is missed.
	Everywhere bool `json:",omitempty"`
}

// Verdict is the result of a target.
type Verdict struct {
	Target
	Measured bool
	Value    float64 // the ratio to the peer if there is one and nothing is added, else the figure itself
	Bound    float64
	Met      bool
	Figure   float64 // of the subject
	PeerIs   float64 // of the peer; 0 without a peer
	Why      string  // why it was not measured
}

// ReadTargets reads targets.json.
func ReadTargets(name string) ([]Target, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	var targets []Target
	if err := json.Unmarshal(content, &targets); err != nil {
		return nil, fmt.Errorf("report: %s: %w", name, err)
	}
	return targets, nil
}

// Judge compares targets with a result. It skips targets whose rows the run did not include.
func Judge(targets []Target, r *runner.Result) []Verdict {
	var verdicts []Verdict
	for _, t := range targets {
		row, ran := r.Row(t.Row)
		if !ran || row.Partial[t.Metric] {
			continue
		}
		verdicts = append(verdicts, t.judge(row))
	}
	return verdicts
}

func (t Target) judge(row *runner.RowResult) Verdict {
	v := Verdict{Target: t}
	figure, err := figureOf(row, t.Subject, t.Metric)
	peer := 1.0
	if err == nil && (t.Peer != "" || t.Of != "") {
		peer, err = figureOf(row, orElse(t.Peer, t.Subject), orElse(t.Of, t.Metric))
		v.PeerIs = peer
	}
	ratio := figure / peer
	if err == nil && t.Paired {
		ratio, err = pairedRatio(row, t.Subject, t.Peer, t.Metric)
	}
	if err != nil {
		v.Why = err.Error()
		return v
	}
	v.Measured, v.Figure = true, figure
	switch {
	case t.Least != nil:
		v.Bound, v.Value = *t.Least, ratio
		v.Met = v.Value >= v.Bound
	case t.Most != nil && t.Plus != 0:
		v.Bound, v.Value = *t.Most*peer+t.Plus, figure
		v.Met = v.Value <= v.Bound
	case t.Most != nil:
		v.Bound, v.Value = *t.Most, ratio
		v.Met = v.Value <= v.Bound
	}
	v.Met = v.Met && !math.IsNaN(v.Value)
	return v
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// entrantOf returns an entrant that has not failed.
func entrantOf(row *runner.RowResult, label string) (*runner.EntrantResult, error) {
	e, found := row.Entrant(label)
	if label == "@first" || label == "@last" {
		e, found = own(row, label == "@last")
	}
	if !found {
		return nil, fmt.Errorf("%s has no %q", row.Name, label)
	}
	if e.Failure != "" {
		return nil, fmt.Errorf("%s: %s", label, e.Failure)
	}
	return e, nil
}

func figureOf(row *runner.RowResult, label, metric string) (float64, error) {
	e, err := entrantOf(row, label)
	if err != nil {
		return 0, err
	}
	figure, measured := e.Median(metric)
	if !measured {
		return 0, fmt.Errorf("%s has no %s", label, metric)
	}
	return figure, nil
}

// pairedRatio returns the median of a metric's ratios in each round.
func pairedRatio(row *runner.RowResult, subject, peer, metric string) (float64, error) {
	a, err := entrantOf(row, subject)
	if err != nil {
		return 0, err
	}
	b, err := entrantOf(row, peer)
	if err != nil {
		return 0, err
	}
	ratio, paired := a.Against(b, metric)
	if !paired {
		return 0, fmt.Errorf("%s and %s do not have the same rounds", subject, peer)
	}
	return ratio, nil
}

// own returns leat's first or last entrant of a row.
func own(row *runner.RowResult, last bool) (e *runner.EntrantResult, found bool) {
	for i := range row.Entrants {
		if strings.HasPrefix(row.Entrants[i].Label, "leat") && (last || !found) {
			e, found = &row.Entrants[i], true
		}
	}
	return e, found
}
