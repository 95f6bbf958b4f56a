package runner

import (
	"slices"

	"github.com/leatproject/leat/bench/subject"
)

// Result is the result of a run. The runner stores it in a file, and package report reads it.
type Result struct {
	Machine Machine
	Quick   bool
	Rows    []RowResult
}

// RowResult is one row.
type RowResult struct {
	Name, Title, Note string
	Columns           []string        // metrics to show, in this order
	Partial           map[string]bool `json:",omitempty"` // metrics that a quick run leaves out
	Entrants          []EntrantResult
	Seconds           float64 `json:",omitempty"` // duration of the row
}

// EntrantResult has the figures of one entrant, a value for each round.
type EntrantResult struct {
	Label   string
	Rounds  map[string][]float64
	Failure string // why figures are missing
}

// Median returns the median of a metric, and whether there is one.
func (e *EntrantResult) Median(metric string) (float64, bool) {
	return median(e.Rounds[metric])
}

// Against returns the median of the ratios of a metric to that of a peer in the same round, and whether both have the
// same number of rounds.
func (e *EntrantResult) Against(peer *EntrantResult, metric string) (float64, bool) {
	own, other := e.Rounds[metric], peer.Rounds[metric]
	if len(own) != len(other) {
		return 0, false
	}
	ratios := make([]float64, len(own))
	for i := range own {
		ratios[i] = own[i] / other[i]
	}
	return median(ratios)
}

// Spread returns the lowest and the highest value of a metric.
func (e *EntrantResult) Spread(metric string) (low, high float64) {
	if len(e.Rounds[metric]) == 0 {
		return 0, 0
	}
	return slices.Min(e.Rounds[metric]), slices.Max(e.Rounds[metric])
}

func (e *EntrantResult) add(m subject.Metrics) {
	for name, value := range m {
		e.Rounds[name] = append(e.Rounds[name], value)
	}
}

// Join replaces rows by those of a later run, and appends new ones.
func (r *Result) Join(later *Result) {
	r.Machine = later.Machine
	for _, row := range later.Rows {
		if old, found := r.Row(row.Name); found {
			*old = row
		} else {
			r.Rows = append(r.Rows, row)
		}
	}
}

// Row returns the row with a name.
func (r *Result) Row(name string) (*RowResult, bool) {
	at := slices.IndexFunc(r.Rows, func(row RowResult) bool { return row.Name == name })
	if at < 0 {
		return nil, false
	}
	return &r.Rows[at], true
}

// Entrant returns the entrant with a label.
func (r *RowResult) Entrant(label string) (*EntrantResult, bool) {
	at := slices.IndexFunc(r.Entrants, func(e EntrantResult) bool { return e.Label == label })
	if at < 0 {
		return nil, false
	}
	return &r.Entrants[at], true
}

func median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle], true
	}
	return (sorted[middle-1] + sorted[middle]) / 2, true
}
