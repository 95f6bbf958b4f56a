package report

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/bench/runner"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

func result() *runner.Result {
	return &runner.Result{
		Machine: runner.Machine{CPU: "a processor", Cores: 2, Versions: map[string]string{"k8s.io/client-go": "v0.37.2"}},
		Rows: []runner.RowResult{{
			Name: "events", Title: "Events", Note: "What it is.", Columns: []string{"cpu us/event", "allocs/event"},
			Partial: map[string]bool{"idle": true},
			Entrants: []runner.EntrantResult{
				{Label: "leat, corev1.Pod, JSON", Rounds: map[string][]float64{"cpu us/event": {20, 10, 30}, "live": {8}}},
				{Label: "client-go, corev1.Pod, JSON", Rounds: map[string][]float64{"cpu us/event": {100}, "allocs/event": {1234}}},
				{Label: "leat, listed", Rounds: map[string][]float64{"cpu us/event": {60}, "protobuf": {1}, "lists": {100}}},
				{Label: "broken", Rounds: map[string][]float64{"cpu us/event": {1}}, Failure: "it spoke\nJSON"},
			},
			Seconds: 61.3,
		}},
	}
}

// TestScale computes the memory of five replicas from the row of one fifth.
func TestScale(t *testing.T) {
	r := result()
	require.Contains(t, Scale(r), "The row `shard` is not measured yet.")
	require.NotContains(t, Scale(r), "on five replicas")
	entrant := func(label string, m map[string][]float64) runner.EntrantResult {
		return runner.EntrantResult{Label: label, Rounds: m}
	}
	r.Rows = append(r.Rows,
		runner.RowResult{Name: "cache", Entrants: []runner.EntrantResult{
			entrant("client-go, corev1.Pod", map[string][]float64{"live B/object": {10_000}, "cpu us/object": {60}}),
			entrant("leat, corev1.Pod", map[string][]float64{"live B/object": {3_000}, "cpu us/object": {20}}),
		}},
		runner.RowResult{Name: "shard", Entrants: []runner.EntrantResult{
			entrant("leat, corev1.Pod, whole", map[string][]float64{"live MB": {200}, "list cpu s": {2}, "list MB": {500}}),
			entrant("leat, corev1.Pod, cut by the server", map[string][]float64{"live MB": {50}, "list cpu s": {0.5}, "list MB": {100}}),
		}})
	page := Scale(r)
	require.Contains(t, page, "| leader election, client-go, corev1.Pod | 10.0 | 50.0 | 60.0 | – |")
	require.Contains(t, page, "| leader election, leat, corev1.Pod | 3.00 | 15.0 | 20.0 | 10.0 |")
	require.Contains(t, page, "| shards, leat, corev1.Pod, cut by the server | 0.75 | 3.75 | 5.00 | 2.00 |")
	require.NotContains(t, page, "cut by the client")
}

func bound(v float64) *float64 { return &v }

func TestTargets(t *testing.T) {
	base := Target{Row: "events", Subject: "leat, corev1.Pod, JSON", Metric: "cpu us/event"}
	run := result()
	run.Rows[0].Entrants = append(run.Rows[0].Entrants, runner.EntrantResult{
		Label: "by turns", Rounds: map[string][]float64{"cpu us/event": {10, 10, 60}}, // medians have the ratio 2
	})
	for _, c := range []struct {
		name          string
		change        func(*Target)
		measured, met bool
		value         float64
	}{
		{"ratio", func(t *Target) { t.Peer, t.Most = "client-go, corev1.Pod, JSON", bound(0.2) }, true, true, 0.2},
		{"ratio missed", func(t *Target) { t.Peer, t.Most = "client-go, corev1.Pod, JSON", bound(0.19) }, true, false, 0.2},
		{"at least", func(t *Target) { t.Peer, t.Least = "client-go, corev1.Pod, JSON", bound(0.2) }, true, true, 0.2},
		{"at least missed", func(t *Target) { t.Peer, t.Least = "client-go, corev1.Pod, JSON", bound(0.21) }, true, false, 0.2},
		{"absolute", func(t *Target) { t.Most = bound(20) }, true, true, 20},
		{"of another metric, plus", func(t *Target) { t.Of, t.Most, t.Plus = "live", bound(2), 4 }, true, true, 20},
		{"plus missed", func(t *Target) { t.Of, t.Most, t.Plus = "live", bound(2), 3 }, true, false, 20},
		{"first", func(t *Target) { t.Subject, t.Most = "@first", bound(20) }, true, true, 20},
		{"last of leat's", func(t *Target) { t.Subject, t.Peer, t.Most = "@last", "@first", bound(2.9) }, true, false, 3},
		{"no such entrant", func(t *Target) { t.Subject, t.Most = "nobody", bound(1) }, false, false, 0},
		{"no such metric", func(t *Target) { t.Metric, t.Most = "nothing", bound(1) }, false, false, 0},
		{"failed", func(t *Target) { t.Subject, t.Most = "broken", bound(1) }, false, false, 0},
		{"failed peer", func(t *Target) { t.Peer, t.Most = "broken", bound(1) }, false, false, 0},
		{"no bound", func(*Target) {}, true, false, 0},
		{"paired", func(t *Target) { t.Peer, t.Most, t.Paired = "by turns", bound(1), true }, true, true, 1},
		{"other rounds", func(t *Target) { t.Peer, t.Most, t.Paired = "client-go, corev1.Pod, JSON", bound(1), true }, false, false, 0},
		{"paired with nobody", func(t *Target) { t.Peer, t.Most, t.Paired = "nobody", bound(1), true }, false, false, 0},
	} {
		target := base
		c.change(&target)
		verdicts := Judge([]Target{target}, run)
		require.Len(t, verdicts, 1, c.name)
		require.Equal(t, c.measured, verdicts[0].Measured, c.name)
		require.Equal(t, c.met, verdicts[0].Met, c.name)
		require.InDelta(t, c.value, verdicts[0].Value, 1e-9, c.name)
	}
	elsewhere := base
	elsewhere.Row = "of another run"
	left := base
	left.Metric = "idle"
	require.Empty(t, Judge([]Target{elsewhere, left}, result()))
}

func TestMissed(t *testing.T) {
	verdicts := []Verdict{{Met: true, Target: Target{Everywhere: true}}, {Target: Target{Everywhere: true}}, {}}
	require.Equal(t, 1, Missed(verdicts, false))
	require.Equal(t, 2, Missed(verdicts, true))
}

func TestTargetsNameWhatIsMeasured(t *testing.T) {
	targets := must.Get(ReadTargets("../targets.json"))(t)
	seen, explained := map[string]bool{}, map[string]bool{}
	for _, q := range questions {
		explained[q[0]] = true
	}
	for _, target := range targets {
		seen[target.ID] = true
		require.True(t, explained[target.ID], "what %s stands for", target.ID)
		require.True(t, (target.Most == nil) != (target.Least == nil), target.What)
		require.True(t, target.Least == nil || target.Plus == 0, target.What)
		if target.Row == "agents" || target.Row == "operators" {
			continue // its entrants are programs
		}
		at := -1
		rows := append(append(runner.Rows(runner.Full), runner.ServerRows()...), runner.RealRows()...)
		for i := range rows {
			if rows[i].Name == target.Row {
				at = i
			}
		}
		require.GreaterOrEqual(t, at, 0, target.What)
		require.Contains(t, rows[at].Columns, target.Metric, target.What)
		if target.Of != "" {
			require.Contains(t, rows[at].Columns, target.Of, target.What)
		}
		var labels []string
		for _, e := range rows[at].Entrants {
			if !e.Extra {
				labels = append(labels, e.Label)
			}
		}
		for _, label := range []string{target.Subject, target.Peer} {
			if label != "" && !strings.HasPrefix(label, "@") {
				require.Contains(t, labels, label, target.What)
			}
		}
	}
	for _, id := range strings.Fields("P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13 P14 P15 P16 P17 P18 P20 tap") {
		require.True(t, seen[id], id)
	}
}

func TestCharts(t *testing.T) {
	charts := Charts(result())
	require.Equal(t, []string{"events"}, ChartNames(charts))
	svg := charts["events"]
	d := xml.NewDecoder(strings.NewReader(svg))
	bars := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, is := token.(xml.StartElement); is && e.Name.Local == "rect" {
			bars++
		}
	}
	require.Equal(t, 2, bars)
	require.Contains(t, svg, "prefers-color-scheme: dark")
	require.Contains(t, svg, `class="own" x="250" y="44" width="78.0"`)
	require.Contains(t, svg, `class="peer" x="250" y="74" width="390.0"`)
	require.NotContains(t, draw("a < b", nil), "a < b")
}

func TestWhereLeatIsWorse(t *testing.T) {
	entrant := func(label string, figures map[string][]float64) runner.EntrantResult {
		return runner.EntrantResult{Label: label, Rounds: figures}
	}
	r := &runner.Result{Rows: []runner.RowResult{{
		Name: "row", Title: "Row", Columns: []string{"p99 us", "events/s", "B/event", "writes/s, spinning"},
		Entrants: []runner.EntrantResult{
			entrant("leat, A", map[string][]float64{"p99 us": {30}, "events/s": {100}, "B/event": {104}, "writes/s, spinning": {1}}),
			entrant("leat, B", map[string][]float64{"p99 us": {900}}),
			entrant("client-go, A", map[string][]float64{"p99 us": {20}, "events/s": {400}, "B/event": {100}, "writes/s, spinning": {9}}),
			entrant("no library, A", map[string][]float64{"p99 us": {1}}),
		},
	}}}
	r.Rows[0].Entrants = append(r.Rows[0].Entrants, runner.EntrantResult{
		Label: "controller-runtime, A", Failure: "it failed", Rounds: map[string][]float64{"p99 us": {1}},
	})
	require.Equal(t, []behind{
		{"Row", "events/s", "leat, A", "client-go, A", 100, 400, 4},
		{"Row", "p99 us", "leat, A", "client-go, A", 30, 20, 1.5},
	}, worse(r))
	r.Rows = []runner.RowResult{
		{Title: "Fleet", Columns: []string{"KB/agent"}, Entrants: []runner.EntrantResult{
			entrant("leat serve, TLS", map[string][]float64{"KB/agent": {6}}),
			entrant("etcd and kube-apiserver", map[string][]float64{"KB/agent": {4}}),
		}},
		{Title: "Operators", Columns: []string{"binary MB"}, Entrants: []runner.EntrantResult{
			entrant("controller-runtime", map[string][]float64{"binary MB": {32}}),
			entrant("controller-runtime, leat's cache", map[string][]float64{"binary MB": {36}}),
			entrant("leat", map[string][]float64{"binary MB": {39}}),
		}},
	}
	require.Equal(t, []behind{
		{"Fleet", "KB/agent", "leat serve, TLS", "etcd and kube-apiserver", 6, 4, 1.5},
		{"Operators", "binary MB", "leat", "controller-runtime", 39, 32, 39.0 / 32},
		{"Operators", "binary MB", "controller-runtime, leat's cache", "controller-runtime", 36, 32, 1.125},
	}, worse(r))
	var b strings.Builder
	writeWorse(&b, &runner.Result{}, nil)
	require.Contains(t, b.String(), "In no figure of this run")
}

var rewrite = flag.Bool("rewrite", false, "write testdata/page.md and docs/fields.svg again")

func TestPage(t *testing.T) {
	verdicts := Judge([]Target{
		{ID: "P1", What: "time", Row: "events", Subject: "leat, corev1.Pod, JSON", Metric: "cpu us/event", Peer: "client-go, corev1.Pod, JSON", Most: bound(0.25)},
		{ID: "P2", What: "more", Row: "events", Subject: "nobody", Metric: "cpu us/event", Most: bound(0.25)},
		{ID: "P3", What: "less", Row: "events", Subject: "@last", Peer: "@first", Metric: "cpu us/event", Most: bound(1.5)},
	}, result())
	page := Markdown(result(), verdicts, []string{"events"}) + Rows(result())
	if *rewrite {
		require.NoError(t, os.WriteFile("testdata/page.md", []byte(page), 0o644))
	}
	want := must.Get(os.ReadFile("testdata/page.md"))(t)
	require.Equal(t, string(want), page, "go test ./report -rewrite writes it again")
	var text strings.Builder
	require.NoError(t, Verdicts(&text, verdicts))
	require.Contains(t, text.String(), `events has no "nobody"`)
}

// TestFields compares the picture of docs/fields.md with what masks keep, and the masks with those of the projects.
func TestFields(t *testing.T) {
	for project, r := range map[string]reader{"cronjob": readers[0], "lws": readers[2]} {
		text := string(must.Get(os.ReadFile("../projects/" + project + "/fields_generated.go"))(t))
		_, text, _ = strings.Cut(text, "var PodFields = []string{\n")
		text, _, _ = strings.Cut(text, "}\n")
		var paths []string
		for line := range strings.Lines(text) {
			paths = append(paths, must.Get(strconv.Unquote(strings.Trim(line, "\t,\n")))(t))
		}
		require.Equal(t, must.Get(codec.NewMask[*corev1.Pod](paths...))(t).String(), must.Get(codec.NewMask[*corev1.Pod](r.fields...))(t).String())
	}
	const file = "../../docs/fields.svg"
	picture := must.Get(Fields())(t)
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(picture), 0o644))
	}
	require.Equal(t, string(must.Get(os.ReadFile(file))(t)), picture, "go test ./report -rewrite writes it again")
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0001: "0.0001", 0.25: "0.25", 12.34: "12.3", 123.4: "123", 1234.5: "1,235", 99_999.6: "100,000", 999.6: "1,000", 999_999.6: "1.00 M", 2_500_000: "2.50 M",
	} {
		require.Equal(t, want, number(v))
	}
}

// TestScaleHasNoErrors requires sentences instead of the errors of steps that failed, and of a slow start.
func TestScaleHasNoErrors(t *testing.T) {
	page := Scale(&runner.Result{Rows: []runner.RowResult{
		{Name: "fleet", Entrants: []runner.EntrantResult{{
			Label: "etcd and kube-apiserver", Failure: "Get \"https://127.0.0.1:1/\": EOF", Rounds: map[string][]float64{"join cpu ms": {2}},
		}}},
		{Name: "warm", Entrants: []runner.EntrantResult{
			{Label: "slow", Rounds: map[string][]float64{"list ms": {3}, "warm ms": {4}}},
			{Label: "quick", Rounds: map[string][]float64{"list ms": {3}, "warm ms": {1}}},
		}},
	}})
	require.NotContains(t, page, "EOF")
	require.Contains(t, page, "The measured restart of all agents failed in this run, so the figures below are computed.")
	require.Contains(t, page, "For \"slow\", `warmstart` saves network")
}
