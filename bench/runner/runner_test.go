package runner

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{8, 2, 4, 6}, 5},
	} {
		e := EntrantResult{Rounds: map[string][]float64{"x": c.values}}
		m, measured := e.Median("x")
		require.True(t, measured)
		require.InDelta(t, c.want, m, 0)
	}
	e := EntrantResult{Rounds: map[string][]float64{}}
	e.add(subject.Metrics{"x": 3})
	e.add(subject.Metrics{"x": 1})
	low, high := e.Spread("x")
	require.Equal(t, []float64{1, 3}, []float64{low, high})
	_, measured := e.Median("y")
	require.False(t, measured)
}

func TestJoin(t *testing.T) {
	r := Result{Rows: []RowResult{{Name: "a", Title: "1"}, {Name: "b", Title: "1"}}}
	r.Join(&Result{Machine: Machine{Cores: 7}, Rows: []RowResult{{Name: "c", Title: "2"}, {Name: "a", Title: "2"}}})
	require.Equal(t, Result{Machine: Machine{Cores: 7}, Rows: []RowResult{
		{Name: "a", Title: "2"}, {Name: "b", Title: "1"}, {Name: "c", Title: "2"},
	}}, r)
}

func TestTurnsRotate(t *testing.T) {
	require.Equal(t, []int{0, 1, 2}, turns(3, 0))
	require.Equal(t, []int{1, 2, 0}, turns(3, 1))
	require.Equal(t, []int{0, 1, 2}, turns(3, 3))
}

func TestRowsAreSound(t *testing.T) {
	for _, sizes := range []Sizes{Full, Quick} {
		names := map[string]bool{}
		for _, row := range append(Rows(sizes), ServerRows()...) {
			require.False(t, names[row.Name], row.Name)
			names[row.Name] = true
			require.NotEmpty(t, row.Columns, row.Name)
			require.NotEmpty(t, row.Title, row.Name)
			require.Positive(t, row.Rounds, row.Name)
			labels := map[string]bool{}
			for _, e := range row.Entrants {
				require.False(t, labels[e.Label], "%s has %s twice", row.Name, e.Label)
				labels[e.Label] = true
			}
		}
	}
}

func TestRowsThatAreWanted(t *testing.T) {
	names := func(o Options) (names []string) {
		r := run{Options: o}
		for _, row := range r.rows() {
			require.True(t, o.Rounds == 0 || row.Rounds == o.Rounds)
			for _, e := range row.Entrants {
				require.False(t, o.Quick && e.Extra, e.Label)
			}
			names = append(names, row.Name)
		}
		return names
	}
	require.Equal(t, []string{"events", "events-tls"}, names(Options{Only: regexp.MustCompile("events"), Rounds: 9}))
	require.Equal(t, []string{"events"}, names(Options{Only: regexp.MustCompile("events"), Quick: true}))
	require.Less(t, len(names(Options{Quick: true})), len(names(Options{})))
}

func TestWrongWireIsAnError(t *testing.T) {
	spec := subject.Spec{Form: subject.Full, Wire: subject.Protobuf}
	right := server.Request{Proto: "HTTP/1.1", Protobuf: true}
	require.NoError(t, checkWire([]server.Request{right, right}, spec, false))
	require.ErrorContains(t, checkWire([]server.Request{right}, spec, true), "should have spoken HTTP/2.0")
	require.ErrorContains(t, checkWire([]server.Request{right, {Proto: "HTTP/1.1"}}, spec, false), "did not ask for protobuf")
	spec.Wire = subject.JSON
	require.ErrorContains(t, checkWire([]server.Request{right}, spec, false), "did not ask for json")
	spec.Wire = ""
	require.NoError(t, checkWire([]server.Request{right}, spec, false))
	spec.Form = subject.Metadata
	require.ErrorContains(t, checkWire([]server.Request{right}, spec, false), "asked for metadata false")
}

func TestWrongCutIsAnError(t *testing.T) {
	probe, cut, whole := server.Request{Limit: 1}, server.Request{Watch: true, Cut: true}, server.Request{Watch: true}
	require.NoError(t, checkCut([]server.Request{probe, cut}, true))
	require.NoError(t, checkCut([]server.Request{probe, whole, {}}, false))
	require.ErrorContains(t, checkCut([]server.Request{probe, whole}, true), "should not have")
	require.ErrorContains(t, checkCut([]server.Request{{Cut: true}}, false), "should not have")
}

// All entrants of the row get the same events, the last of which is of a pod of the shard.
func TestEventsOfAShard(t *testing.T) {
	r := run{set: load.NewSet(load.Seed, 20)}
	row := shards(Sizes{Cached: 500, Events: 30, Rounds: 1})
	var same []int
	for _, e := range row.Entrants {
		pods := r.changes(&e.Spec)
		require.True(t, same == nil || slices.Equal(same, pods), e.Label)
		same = pods
		hashes, held := r.set.Hashes(500), 0
		for _, hash := range hashes {
			if hash < math.MaxUint64/fifths+1 {
				held++
			}
		}
		require.Less(t, hashes[pods[29]], uint64(math.MaxUint64/fifths+1))
		if e.Spec.Shards > 0 {
			require.Equal(t, held, e.Spec.Held)
			require.InDelta(t, 100, held, 30)
		}
	}
}

// script returns a subject that is a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "subject")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o755))
	return name
}

func TestProcess(t *testing.T) {
	t.Setenv("GOGC", "17")
	t.Setenv("KUBE_FEATURE_WatchListClient", "true")
	binary := script(t, `echo "$1" | grep -q '"Work":"events"' || exit 1
echo ready; read line; [ "$line" = "go on" ] || exit 2
echo '{"Metrics":{"x":'${GOGC:-1}${KUBE_FEATURE_WatchListClient}'}}'`)
	p := must.Get(launch(t.Context(), binary, subject.Spec{Work: subject.Events}, nil))(t)
	turns := 0
	report := must.Get(p.wait(func() error { turns++; return nil }))(t)
	require.Equal(t, 1, turns)
	require.Equal(t, subject.Metrics{"x": 1}, report.Metrics, "the environment must not tune a subject")
}

func TestProcessThatFails(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`echo oh dear >&2; exit 3`, "oh dear"},
		{`echo '{"Error":"cannot"}'`, "cannot"},
		{`echo '{"Metrics":{}}'; exit 4`, "exit status 4"},
		{`echo ready; read line; read line`, "the turn failed"},
	} {
		p := must.Get(launch(t.Context(), script(t, c.script), subject.Spec{}, nil))(t)
		_, err := p.wait(func() error { return os.ErrClosed })
		if c.want == "the turn failed" {
			require.ErrorIs(t, err, os.ErrClosed)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

func TestLatency(t *testing.T) {
	report := &subject.Report{Metrics: subject.Metrics{}, Arrivals: map[string]int64{"1": 3000, "2": 9000, "3": 20_000, "x": 1, "9": 7}}
	latency(report, map[uint64]int64{1: 1000, 2: 2000, 3: 1000, 9: 0})
	require.Equal(t, subject.Metrics{"p50 us": 7, "p90 us": 19, "p99 us": 19, "p99.9 us": 19}, report.Metrics)
}

func TestMachine(t *testing.T) {
	m := thisMachine("..")
	require.Equal(t, "v0.37.2", m.Versions["k8s.io/client-go"])
	require.Equal(t, "v0.25.2", m.Versions["sigs.k8s.io/controller-runtime"])
	require.Positive(t, m.Cores)
	require.NotEmpty(t, m.Load)
}

// TestRow runs a row with scripts as subjects. The result must have their figures, and the name of the one that fails.
func TestRow(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		leat: `echo '{"Metrics":{"ns/op":5}}'`, clientGo: `echo '{"Metrics":{"ns/op":9}}'`, controllerRuntime: `exit 1`,
	} {
		require.NoError(t, os.Rename(script(t, text), filepath.Join(folder, name)))
	}
	var progress strings.Builder
	r := run{Options: Options{Binaries: folder, Progress: &progress, Rounds: 2, Only: regexp.MustCompile("^queue$")}}
	rows := r.rows()
	require.Len(t, rows, 1)
	result := must.Get(r.row(t.Context(), &rows[0], r.turn))(t)
	ours, found := result.Entrant(leat)
	require.True(t, found)
	require.Equal(t, map[string][]float64{"ns/op": {5, 5}}, ours.Rounds)
	broken, found := result.Entrant(controllerRuntime)
	require.True(t, found)
	require.NotEmpty(t, broken.Failure)
	require.Contains(t, progress.String(), "queue: leat, round 2 of 2")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, must.Err(r.row(ctx, &rows[0], r.turn)), context.Canceled)
}

func TestEntrantWithFewerRounds(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Rename(script(t, `echo '{"Metrics":{"x":5}}'`), filepath.Join(folder, leat)))
	var progress strings.Builder
	r := run{Options: Options{Binaries: folder, Progress: &progress}, total: 4}
	row := Row{Name: "row", Rounds: 3, Entrants: []Entrant{{Label: "often", Program: leat}, {Label: "once", Program: leat, Rounds: 1}}}
	require.Equal(t, 4, row.turns())
	result := must.Get(r.row(t.Context(), &row, r.turn))(t)
	require.Len(t, result.Entrants[0].Rounds["x"], 3)
	require.Len(t, result.Entrants[1].Rounds["x"], 1)
	require.Positive(t, result.Seconds)
	require.Contains(t, progress.String(), "[4/4] row: often, round 3 of 3")
	require.Contains(t, progress.String(), "row: once, round 1 of 1")
	row.Rounds, row.Entrants[1].Rounds = 2, 3
	require.Equal(t, 4, row.turns(), "no entrant takes more turns than the row has")
}

// Targets use medians, which need at least three rounds.
func TestRoundsOfTargets(t *testing.T) {
	for _, row := range Rows(Full) {
		for i, e := range row.Entrants {
			require.True(t, e.Extra || !row.Quick || row.rounds(i) >= 3, "%s: %s", row.Name, e.Label)
		}
	}
	row := Row{Entrants: []Entrant{{}, {Extra: true}}}.withExtras(2)
	require.Equal(t, []Entrant{{}, {Extra: true, Rounds: 2}}, row.Entrants)
}

// The versions of shared dependencies must be those of leat's own module.
func TestModuleVersions(t *testing.T) {
	content := must.Get(os.ReadFile("../../go.mod"))(t)
	leats := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)$`).FindAllStringSubmatch(string(content), -1) {
		leats[m[1]] = m[2]
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}", "./cmd/...", "./agent/...")
	cmd.Dir = ".."
	output := must.Get(cmd.Output())(t)
	compared := 0
	for line := range strings.Lines(string(output)) {
		module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if want, required := leats[module]; required {
			require.Equal(t, want, version, module)
			compared++
		}
	}
	require.Positive(t, compared)
}
