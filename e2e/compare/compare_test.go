package compare_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/e2e/compare"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	typed "github.com/leatproject/leat/testserver/cluster"
)

var (
	update = flag.Bool("update", false, "rewrite the table of differences and the tally in docs")
	only   = flag.String("only", "", "run only the scenarios whose area/scenario matches this regular expression")
	show   = flag.String("show", "", "print the differences of the steps that match this regular expression, known ones too")
)

const (
	tableFile = "testdata/differences.txt"
	pageFile  = "../../docs/fidelity.md"
)

// areas are the files of testdata in the order in which they run. Discovery runs first, because other areas define
// resources.
var areas = []string{
	"discovery", "verbs", "lists", "watches", "negotiation", "builtins", "patches", "tables", "deletion", "identity", "admission",
	"input", "kubectl", "definitions",
}

// parallel is the number of scenarios of an area that run at once. Most of them wait for a watch.
const parallel = 6

// TestCompare sends the same requests and the same commands of kubectl to the test server and to kube-apiserver, and
// compares the answers.
func TestCompare(t *testing.T) {
	all := must.Get(compare.ReadAreas("testdata", areas))(t)
	text := must.Get(os.ReadFile(tableFile))(t)
	table := must.Get(compare.ParseTable(string(text)))(t)
	// Both servers run alone.
	test := startTestServer(t, typed.Behaviour{
		NoGarbageCollection: true, NoNamespaceDeletion: true, NoServiceAccounts: true, NoDisruptionBudgets: true,
	})
	real := startCluster(t)
	hooks := compare.NewHooks()
	defer hooks.Close()
	test.Hooks, real.Hooks = hooks, hooks

	var tallies []compare.Tally
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			c := comparison{t: t, table: table, tally: compare.Tally{Area: a}}
			c.run(a, test, real)
			t.Log(c.tally)
			tallies = append(tallies, c.tally)
		})
	}
	if *only == "" && len(tallies) == len(all) {
		finish(t, all, tallies, table)
	}
	if *update {
		require.NoError(t, os.WriteFile(tableFile, []byte(table.String()), 0o644))
	}
}

// finish checks what needs the whole run: rows of steps that do not exist, and the page with the tally.
func finish(t *testing.T, all []*compare.Area, tallies []compare.Tally, table *compare.Table) {
	for _, step := range table.Strangers(all) {
		if *update {
			table.Remove(step)
		} else {
			t.Errorf("%s: the table has a row for it, but there is no such step", step)
		}
	}
	before := must.Get(os.ReadFile(pageFile))(t)
	after := must.Get(compare.Page(string(before), tallies, table))(t)
	if *update {
		require.NoError(t, os.WriteFile(pageFile, []byte(after), 0o644))
	} else if string(before) != after {
		t.Errorf("%s is not what this run says; write it with -update", pageFile)
	}
}

// comparison runs the scenarios of one area.
type comparison struct {
	t     *testing.T
	table *compare.Table
	tally compare.Tally
	exact bool // no difference is allowed, also with -update
}

func (c *comparison) run(a *compare.Area, test, real *compare.Target) {
	chosen := regexp.MustCompile(*only)
	type result struct {
		have, want []*compare.Answer
		err        error
	}
	results := make([]result, len(a.Scenarios))
	places := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for i, s := range a.Scenarios {
		if !chosen.MatchString(s.ID) {
			continue
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			r := &results[i]
			var both sync.WaitGroup
			var errs [2]error
			both.Go(func() { r.have, errs[0] = test.Run(c.t.Context(), s) })
			both.Go(func() { r.want, errs[1] = real.Run(c.t.Context(), s) })
			both.Wait()
			r.err = errors.Join(errs[:]...)
		})
	}
	group.Wait()
	for i, s := range a.Scenarios {
		r := results[i]
		if r.err != nil {
			c.t.Error(r.err)
			continue
		}
		for j := range r.want {
			c.check(s.Steps[j], compare.Compare(r.have[j], r.want[j]))
		}
	}
}

var hidden = regexp.MustCompile(`^$`)

// check compares the differences of a step with the table, and counts.
func (c *comparison) check(s *compare.Step, found []compare.Difference) {
	c.tally.All++
	if len(found) == 0 {
		c.tally.Equal++
	}
	shown := hidden
	if *show != "" {
		shown = regexp.MustCompile(*show)
	}
	if shown.MatchString(s.ID) {
		c.t.Logf("%s\n%s", s.ID, compare.Report(found))
	}
	if *update && !c.exact {
		c.table.Update(s.ID, found)
		return
	}
	if err := c.table.Check(s.ID, found); err != nil {
		c.t.Errorf("%s: %v\n%s", s.ID, err, compare.Report(found))
	}
}

func startTestServer(t *testing.T, behaviour typed.Behaviour) *compare.Target {
	server := must.Get(typed.New(typed.Options{
		Server: testserver.Options{HTTP2: true, Compress: true},
		RBAC:   true,
		Tokens: typed.Tokens{
			compare.AdminToken:      {Name: "admin", UID: "admin-uid", Groups: []string{"system:masters"}},
			compare.RestrictedToken: {Name: cluster.RestrictedUser, UID: "restricted-uid"},
		},
		Behaviour: behaviour,
	}))(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	during(t, func(ctx context.Context) error { return server.Serve(ctx, listener) })
	return start(t, &compare.Target{Name: "test server", URL: "https://" + listener.Addr().String(), CA: server.Server.CA()})
}

func startCluster(t *testing.T) *compare.Target {
	c := cluster.New(cluster.Options{Binaries: "../bin"})
	ended := during(t, c.Run)
	select {
	case <-c.Ready():
	case <-ended:
		t.FailNow()
	}
	// The test server has no history before its first version either. Without a restart, the watch cache would reach
	// back to the beginning.
	must.Get(c.Compact(t.Context()))(t)
	require.NoError(t, c.RestartAPIServer(t.Context()))
	return start(t, &compare.Target{Name: "kube-apiserver", URL: c.URL(), CA: c.CA()})
}

// during runs a server until the test ends. The channel closes after the server has ended.
func during(t *testing.T, run func(context.Context) error) <-chan struct{} {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err != nil {
			t.Error(err)
		}
	})
	return ended
}

func start(t *testing.T, target *compare.Target) *compare.Target {
	kubectl := must.Get(filepath.Abs("../bin/kubectl"))(t)
	target.Kubectl, target.Folder = kubectl, t.TempDir()
	require.NoError(t, target.Start())
	t.Cleanup(target.Close)
	return target
}
