package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/leatproject/leat/bench/runner"
)

// behind is a figure in which leat is worse than a peer with the same setting.
type behind struct {
	row, metric, subject, peer string
	figure, peerIs             float64
	factor                     float64 // how many times worse, above 1
}

// leastBehind is the smallest difference that counts. Medians of two runs differ by as much.
const leastBehind = 1.05

// worse returns these figures of a run, the largest factor first.
func worse(r *runner.Result) (all []behind) {
	for i := range r.Rows {
		row := &r.Rows[i]
		for j := range row.Entrants {
			for k := range row.Entrants {
				if isPeer(&row.Entrants[j], &row.Entrants[k]) {
					all = append(all, compare(row, &row.Entrants[j], &row.Entrants[k])...)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b behind) int { return cmp.Compare(b.factor, a.factor) })
	return all
}

// The labels of entrants whose peer has another setting.
const (
	realServer = "etcd and kube-apiserver"
	leatsCache = "leat's cache" // a setting of controller-runtime, whose peer is controller-runtime
)

// isPeer reports whether an entrant is not leat and has the setting of an entrant of leat: the part of the label behind
// the library. The real API server is the peer of all servers of leat.
func isPeer(own, other *runner.EntrantResult) bool {
	library, setting, _ := strings.Cut(own.Label, ", ")
	peer, has, _ := strings.Cut(other.Label, ", ")
	switch {
	case strings.HasPrefix(peer, "leat") || has == leatsCache || peer == "no library" || own.Failure+other.Failure != "":
		return false
	case setting == leatsCache:
		return library == peer
	}
	return strings.HasPrefix(library, "leat") && (setting == has || peer == realServer)
}

func compare(row *runner.RowResult, own, other *runner.EntrantResult) (all []behind) {
	for _, metric := range row.Columns {
		figure, measured := own.Median(metric)
		peerIs, has := other.Median(metric)
		if !measured || !has || strings.HasSuffix(metric, ", spinning") {
			continue
		}
		factor := figure / peerIs
		if isRate(metric) {
			factor = peerIs / figure
		}
		if factor >= leastBehind { // not if both are zero
			all = append(all, behind{row.Title, metric, own.Label, other.Label, figure, peerIs, factor})
		}
	}
	return all
}

// isRate reports whether more of a metric is better.
func isRate(metric string) bool {
	return metric == "of spinning" || slices.ContainsFunc([]string{"events/", "deliveries/", "writes/", "reads/"}, func(of string) bool {
		return strings.HasPrefix(metric, of)
	})
}

// writeWorse names what leat is worse at.
func writeWorse(b *strings.Builder, r *runner.Result, verdicts []Verdict) {
	b.WriteString("## Where leat is worse\n\n")
	missed := slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool { return v.Met || !v.Measured })
	if len(missed) > 0 {
		b.WriteString("Missed targets:\n\n")
		writeTargets(b, missed)
	}
	all := worse(r)
	if len(all) == 0 {
		b.WriteString("In no figure of this run is a peer with the same setting better by 5 % or more.\n\n")
		return
	}
	fmt.Fprintf(b, "%s\n\n| | figure | leat | peer | times worse |\n|---|---|---:|---:|---:|\n",
		wrap("A peer with the same setting is better by 5 % or more in these figures of this run:"))
	for _, w := range all {
		fmt.Fprintf(b, "| %s | %s | %s: %s | %s: %s | %s |\n", w.row, w.metric, w.subject, number(w.figure), w.peer, number(w.peerIs), number(w.factor))
	}
	b.WriteString("\n")
}
