package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/subject"
)

// Options define what is measured.
type Options struct {
	Quick    bool
	Only     *regexp.Regexp // names of rows; nil means all
	Rounds   int            // 0 means the number of each row
	Folder   string         // of this module
	Binaries string         // a folder for the subjects
	Profiles string         // a folder for profiles of the last round; empty means no profiles
	Real     string         // a folder with etcd and kube-apiserver; measures only the rows that need them
	Progress io.Writer
	// OnRow is called with the results so far after each row, so that an interrupted run keeps them.
	OnRow func(*Result) error
}

// turnLimit is the time limit of one subject.
const turnLimit = 3 * time.Minute

// Run builds the subjects, measures all rows and returns the result. If a subject fails, the result has its name and
// lacks its figure. Run returns an error if it cannot measure at all.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{Options: o, set: load.NewSet(load.Seed, load.Workloads), began: time.Now()}
	result := &Result{Machine: thisMachine(o.Folder), Quick: o.Quick}
	if o.Real != "" {
		return result, r.real(ctx, result)
	}
	if r.wanted("agents") {
		agents, err := r.agents(ctx)
		if err != nil {
			return nil, err
		}
		result.Rows = append(result.Rows, *agents)
	}
	if r.wanted("operators") {
		operators, err := r.operators(ctx)
		if err != nil {
			return nil, err
		}
		result.Rows = append(result.Rows, *operators)
	}
	return result, r.subjects(ctx, r.rows(), result)
}

// subjects builds the subjects of rows and measures them.
func (r *run) subjects(ctx context.Context, rows []Row, result *Result) error {
	if err := r.build(ctx, rows); err != nil {
		return err
	}
	return r.measure(ctx, rows, result, r.turn)
}

// turn runs an entrant once. last is its last round.
type turn func(ctx context.Context, row *Row, e Entrant, last bool) (subject.Metrics, error)

// measure measures rows one after another.
func (r *run) measure(ctx context.Context, rows []Row, result *Result, do turn) error {
	for i := range rows {
		r.total += rows[i].turns()
	}
	for i := range rows {
		row, err := r.row(ctx, &rows[i], do)
		if err != nil {
			return err
		}
		result.Rows = append(result.Rows, *row)
		if r.OnRow != nil {
			if err := r.OnRow(result); err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds the needed subjects.
func (r *run) build(ctx context.Context, rows []Row) error {
	built := map[string]bool{}
	for _, row := range rows {
		for _, e := range row.Entrants {
			if built[e.Program] {
				continue
			}
			built[e.Program] = true
			_, _ = fmt.Fprintf(r.Progress, "building the subject %s (some minutes with a cold cache)\n", e.Program)
			if err := goBuild(ctx, r.Options, e.Program, "./cmd/"+e.Program); err != nil {
				return err
			}
		}
	}
	return nil
}

func goBuild(ctx context.Context, o Options, name, pkg string, flags ...string) error {
	return goBuildIn(ctx, o, o.Folder, name, pkg, flags...)
}

// goBuildIn builds a program of the module in a folder.
func goBuildIn(ctx context.Context, o Options, folder, name, pkg string, flags ...string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-trimpath"}, flags, []string{"-o", filepath.Join(o.Binaries, name), pkg})...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("runner: build %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// run is a run in progress.
type run struct {
	Options
	set   *load.Set
	fresh *load.Set // nil before the first row that needs it
	began time.Time
	done  int // finished turns
	total int

	cluster *fullCluster // nil without real servers
}

func (r *run) wanted(name string) bool { return r.Only == nil || r.Only.MatchString(name) }

func (r *run) rows() []Row {
	sizes := Full
	if r.Quick {
		sizes = Quick
	}
	return r.choose(Rows(sizes))
}

// choose returns the rows that the options select.
func (r *run) choose(all []Row) []Row {
	var rows []Row
	for _, row := range all {
		if r.wanted(row.Name) && (row.Quick || !r.Quick) {
			if r.Rounds > 0 {
				row.Rounds = r.Rounds
			}
			if r.Quick {
				row.Entrants = slices.DeleteFunc(row.Entrants, func(e Entrant) bool { return e.Extra })
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// row measures a row: all entrants in turns.
func (r *run) row(ctx context.Context, row *Row, do turn) (*RowResult, error) {
	result := &RowResult{Name: row.Name, Title: row.Title, Note: row.Note, Columns: row.Columns}
	for _, e := range row.Entrants {
		result.Entrants = append(result.Entrants, EntrantResult{Label: e.Label, Rounds: map[string][]float64{}})
	}
	began := time.Now()
	for round := range row.Rounds {
		for _, at := range turns(len(row.Entrants), round) {
			if round >= row.rounds(at) {
				continue
			}
			r.progress(row, at, round)
			metrics, err := do(ctx, row, row.Entrants[at], round == row.rounds(at)-1)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				result.Entrants[at].Failure = err.Error()
			}
			result.Entrants[at].add(metrics)
		}
	}
	result.Seconds = time.Since(began).Seconds()
	_, _ = fmt.Fprintf(r.Progress, "%s took %.0f s\n", row.Name, result.Seconds)
	return result, nil
}

// turns returns the order of entrants in a round. Each round begins with another one.
func turns(entrants, round int) []int {
	order := make([]int, entrants)
	for i := range order {
		order[i] = (i + round) % entrants
	}
	return order
}

func (r *run) progress(row *Row, at, round int) {
	r.done++
	_, _ = fmt.Fprintf(r.Progress, "[%d/%d] %s: %s, round %d of %d, after %s\n",
		r.done, r.total, row.Name, row.Entrants[at].Label, round+1, row.rounds(at), time.Since(r.began).Round(time.Second))
}

// turn runs one entrant once. If its encoding is wrong, turn returns the figures and an error, and they do not count.
func (r *run) turn(ctx context.Context, row *Row, e Entrant, last bool) (subject.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	if r.Profiles != "" && last {
		name := filepath.Join(r.Profiles, fileName(row.Name+" "+e.Label))
		e.Spec.Profile, e.Spec.Heap = name+".cpu.prof", name+".heap.prof"
	}
	if e.Spec.Form == "" { // without a server
		p, err := launch(ctx, filepath.Join(r.Binaries, e.Program), e.Spec, e.Env)
		if err != nil {
			return nil, err
		}
		report, err := p.wait(nil)
		if err != nil {
			return nil, err
		}
		return report.Metrics, nil
	}
	if e.Spec.Work == subject.Resources {
		return r.turnWithResources(ctx, e)
	}
	if r.cluster != nil {
		return r.turnWithCluster(ctx, e)
	}
	return r.turnWithServer(ctx, row, e)
}

var notForFiles = regexp.MustCompile(`[^a-z0-9]+`)

func fileName(s string) string {
	return strings.Trim(notForFiles.ReplaceAllString(strings.ToLower(s), "-"), "-")
}
