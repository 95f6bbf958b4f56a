package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/bench/report"
	"github.com/leatproject/leat/bench/runner"
	"github.com/leatproject/leat/internal/fixture/must"
)

func row(name, title string) runner.RowResult {
	entrant := func(label string, v float64) runner.EntrantResult {
		return runner.EntrantResult{Label: label, Rounds: map[string][]float64{"cpu us/event": {v}}}
	}
	return runner.RowResult{Name: name, Title: title, Columns: []string{"cpu us/event"}, Entrants: []runner.EntrantResult{
		entrant("leat, corev1.Pod, JSON", 1), entrant("client-go, corev1.Pod, JSON", 4),
	}}
}

// A complete run replaces all earlier figures. A run of some rows replaces only these rows.
func TestPagesAndFigures(t *testing.T) {
	docs := t.TempDir()
	o := options{docs: docs, results: filepath.Join(docs, "benchmarks", "results.json")}
	o.Binaries = t.TempDir()
	first := &runner.Result{Rows: []runner.RowResult{row("events", "first events"), row("queue", "first queue")}}
	require.Same(t, first, o.joined(first))
	require.NoError(t, o.save(first))
	require.FileExists(t, o.part())
	require.NoError(t, o.write(first, nil))
	require.NoFileExists(t, o.part())
	require.FileExists(t, filepath.Join(docs, "benchmarks", "events.svg"))

	o.Only = regexp.MustCompile("events")
	both := o.joined(&runner.Result{Rows: []runner.RowResult{row("events", "second events")}})
	require.NoError(t, o.write(both, report.Judge(nil, both)))
	require.FileExists(t, filepath.Join(docs, "benchmarks.md"))
	page := must.Get(os.ReadFile(filepath.Join(docs, "benchmarks", "rows.md")))(t)
	require.Contains(t, string(page), "second events")
	require.NotContains(t, string(page), "first events")
	require.Contains(t, string(page), "first queue")

	o.again = true
	again := must.Get(o.result(t.Context()))(t)
	require.Equal(t, both, again)
	o.results = filepath.Join(docs, "nothing")
	require.ErrorIs(t, must.Err(o.result(t.Context())), os.ErrNotExist)
}
