package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/leatproject/leat/bench/runner"
)

// number formats a figure with three significant digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a >= 999_999.5:
		return fmt.Sprintf("%.2f M", v/1e6)
	case a >= 999.5:
		return grouped(int64(math.Round(v)))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.01:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// grouped formats a number below a million with a comma.
func grouped(v int64) string { return fmt.Sprintf("%d,%03d", v/1000, v%1000) }

// outcome reports whether a target is met, with the figure and the bound.
func outcome(v *Verdict) (mark, value, bound string) {
	sign := "≤ "
	if v.Least != nil {
		sign = "≥ "
	}
	switch {
	case !v.Measured:
		return "not measured", "–", "–"
	case v.Most == nil && v.Least == nil:
		return "missed", "–", "–"
	}
	mark = "missed"
	if v.Met {
		mark = "met"
	}
	value, bound = number(v.Value), number(v.Bound)
	if value == bound && v.Value != v.Bound { // then rounding hides the difference
		value = strconv.FormatFloat(v.Value, 'f', 3, 64)
	}
	return mark, value, sign + bound
}

// Verdicts prints the targets and the measured figures.
func Verdicts(w io.Writer, verdicts []Verdict) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range verdicts {
		v := &verdicts[i]
		mark, value, bound := outcome(v)
		everywhere := ""
		if v.Everywhere {
			everywhere = "on any machine"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", v.ID, mark, value, bound, orElse(v.Why, v.What), everywhere)
	}
	return t.Flush()
}

// Missed counts the missed targets: all, or only those that do not depend on the machine.
func Missed(verdicts []Verdict, all bool) (n int) {
	for _, v := range verdicts {
		if !v.Met && (all || v.Everywhere) {
			n++
		}
	}
	return n
}

// Markdown returns the page docs/benchmarks.md.
func Markdown(r *runner.Result, verdicts []Verdict, charts []string) string {
	var b strings.Builder
	b.WriteString(intro)
	writeWorse(&b, r, verdicts)
	for _, c := range charts {
		fmt.Fprintf(&b, "![%s](benchmarks/%s.svg)\n\n", chartTitle(c), c)
	}
	b.WriteString("## Targets\n\n")
	writeTargets(&b, verdicts)
	b.WriteString("The first column says what a target is about:\n\n| | |\n|---|---|\n")
	for _, q := range questions {
		fmt.Fprintf(&b, "| %s | %s |\n", q[0], q[1])
	}
	return b.String()
}

// Rows returns the page docs/benchmarks/rows.md.
func Rows(r *runner.Result) string {
	var b strings.Builder
	b.WriteString(rowsIntro)
	for i := range r.Rows {
		writeRow(&b, &r.Rows[i])
	}
	writeMachine(&b, r)
	return b.String()
}

func writeTargets(b *strings.Builder, verdicts []Verdict) {
	b.WriteString("| | what | measured | target | |\n|---|---|---:|---:|---|\n")
	for i := range verdicts {
		v := &verdicts[i]
		mark, value, bound := outcome(v)
		fmt.Fprintf(b, "| %s | %s%s | %s | %s | %s |\n", v.ID, v.What, against(v), value, bound, mark)
	}
	b.WriteString("\n")
}

func against(v *Verdict) string {
	if v.Peer == "" || strings.HasPrefix(v.Peer, "@") {
		return ""
	}
	return ", against " + v.Peer
}

func writeRow(b *strings.Builder, row *runner.RowResult) {
	fmt.Fprintf(b, "## %s\n\n", row.Title)
	if row.Note != "" {
		fmt.Fprintf(b, "%s\n\n", wrap(row.Note))
	}
	fmt.Fprintf(b, "| | %s |\n|---|%s\n", strings.Join(row.Columns, " | "), strings.Repeat("---:|", len(row.Columns)))
	for i := range row.Entrants {
		e := &row.Entrants[i]
		fmt.Fprintf(b, "| %s%s |", e.Label, chosen(e))
		for _, c := range row.Columns {
			fmt.Fprintf(b, " %s |", cell(e, c))
		}
		b.WriteString("\n")
		if e.Failure != "" {
			fmt.Fprintf(b, "| %s: %s |%s\n", e.Label, strings.ReplaceAll(e.Failure, "\n", " "), strings.Repeat(" |", len(row.Columns)))
		}
	}
	b.WriteString("\n")
}

// wrap breaks a text into lines of at most 120 columns.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > 120:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// chosen returns the choices that an entrant made itself.
func chosen(e *runner.EntrantResult) string {
	var choices []string
	protobuf, measured := e.Median("protobuf")
	if measured && !strings.Contains(e.Label, "JSON") && !strings.Contains(e.Label, "protobuf") {
		choices = append(choices, map[bool]string{true: "protobuf", false: "JSON"}[protobuf > 0])
	}
	if lists, measured := e.Median("lists"); measured && strings.Contains(e.Label, "listed") {
		choices = append(choices, fmt.Sprintf("answers: %.0f", lists))
	}
	if len(choices) == 0 {
		return ""
	}
	return " (" + strings.Join(choices, ", ") + ")"
}

// cell returns the median, and the spread if there is one.
func cell(e *runner.EntrantResult, metric string) string {
	m, measured := e.Median(metric)
	if !measured {
		return "–"
	}
	low, high := e.Spread(metric)
	if len(e.Rounds[metric]) == 1 || number(low) == number(high) {
		return number(m)
	}
	return fmt.Sprintf("%s <sub>%s – %s</sub>", number(m), number(low), number(high))
}

func writeMachine(b *strings.Builder, r *runner.Result) {
	m, seconds := &r.Machine, 0.0
	for i := range r.Rows {
		seconds += r.Rows[i].Seconds
	}
	b.WriteString("## Machine and versions\n\n| | |\n|---|---|\n")
	for _, line := range [][2]string{
		{"processor", fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)},
		{"memory", m.Memory},
		{"load of the minute before", m.Load},
		{"time for all rows", fmt.Sprintf("%.0f s", seconds)},
		{"system", m.Kernel},
		{"Go", m.Go},
		{"leat", m.Commit},
		{"client-go", m.Versions["k8s.io/client-go"]},
		{"controller-runtime", m.Versions["sigs.k8s.io/controller-runtime"]},
		{"apimachinery, for all of them", m.Versions["k8s.io/apimachinery"]},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", line[0], line[1])
	}
}
