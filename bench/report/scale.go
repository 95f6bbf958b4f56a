package report

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/leatproject/leat/bench/runner"
)

// agentsOfFleet is the number of node agents for which the page computes the cost.
const agentsOfFleet = 5_000

// millions is the number of objects for which the page computes memory.
const millions = 1_000_000

//go:embed scale.md.tmpl
var scaleText string

var scaleTemplate = template.Must(template.New("scale").Parse(scaleText))

// Scale returns the page docs/scale.md. Its figures are those of rows, or computed from them.
func Scale(r *runner.Result) string {
	s := &scale{r: r}
	if err := scaleTemplate.Execute(&s.b, s); err != nil {
		panic("report: " + err.Error()) // the methods have no errors, and a Builder does not fail
	}
	return s.b.String()
}

// scale is a page in progress. The methods that the template calls write to the page, and return nothing more.
type scale struct {
	r *runner.Result
	b strings.Builder
}

func (s *scale) line(format string, a ...any) { fmt.Fprintf(&s.b, format+"\n", a...) }

// figure returns a measured figure.
func (s *scale) figure(row, entrant, metric string) (float64, bool) {
	r, ran := s.r.Row(row)
	if !ran {
		return 0, false
	}
	e, found := r.Entrant(entrant)
	if !found {
		return 0, false
	}
	return e.Median(metric)
}

// Row writes some columns of a row.
func (s *scale) Row(name string, columns ...string) string {
	row, ran := s.r.Row(name)
	if !ran {
		s.line("The row `%s` is not measured yet.\n", name)
		return ""
	}
	s.line("| | %s |\n|---|%s", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
	for i := range row.Entrants {
		e := &row.Entrants[i]
		var cells []string
		for _, c := range columns {
			cells = append(cells, cell(e, c))
		}
		s.line("| %s | %s |", e.Label, strings.Join(cells, " | "))
	}
	s.line("")
	if failed(row) { // the figures are those of the steps before
		s.line("A later step of this row failed; [Its table](benchmarks/rows.md) has the error.\n")
	}
	if single(row) {
		s.line("This row has one round only, so it shows no spread. Figures of the clock may include other work of the machine.\n")
	}
	return ""
}

// failed reports whether a step of a row failed.
func failed(row *runner.RowResult) bool {
	return slices.ContainsFunc(row.Entrants, func(e runner.EntrantResult) bool { return e.Failure != "" })
}

// single reports whether no figure of a row has a second round.
func single(row *runner.RowResult) bool {
	for i := range row.Entrants {
		for _, rounds := range row.Entrants[i].Rounds {
			if len(rounds) > 1 {
				return false
			}
		}
	}
	return true
}

// Growth writes the first list and single updates of caches of several sizes.
func (s *scale) Growth() string {
	s.line("| objects | first list, s | peak memory, MB | live heap, MB | bytes an object | processor time of an update, us |\n|---:|---:|---:|---:|---:|---:|")
	for _, size := range []string{"10,000", "100,000", "1,000,000"} {
		label := "leat, 8 fields, JSON, " + size
		cells := []string{size}
		for _, c := range [][2]string{
			{"growth", "wall s"}, {"growth", "peak MB"}, {"growth", "live MB"}, {"growth", "live B/object"}, {"changes", "cpu us/event"},
		} {
			if v, measured := s.figure(c[0], label, c[1]); measured {
				cells = append(cells, number(v))
			} else {
				cells = append(cells, "–")
			}
		}
		s.line("| %s |", strings.Join(cells, " | "))
	}
	s.line("")
	return ""
}

// Replicas computes the memory of a million pods.
func (s *scale) Replicas() string {
	s.line("| a million pods, as | GB in each replica | GB in three replicas | s of one core to list them |\n|---|---:|---:|---:|")
	for _, label := range []string{
		"client-go, corev1.Pod", "client-go, corev1.Pod, stripped", "leat, corev1.Pod", "leat, corev1.Pod unshared",
		"leat, corev1.Pod packed", "leat, corev1.Pod compressed", "leat, 8 fields",
	} {
		live, measured := s.figure("cache", label, "live B/object")
		cpu, _ := s.figure("cache", label, "cpu us/object")
		if measured {
			gb := live * millions / 1e9
			s.line("| %s | %s | %s | %s |", label, number(gb), number(3*gb), number(cpu*millions/1e6))
		}
	}
	s.line("")
	return ""
}

// podsOfShard is the number of pods of the row shard, unless the run is quick.
const podsOfShard = 50_000

// Shares computes a million pods on five replicas: under leader election, and divided among them.
func (s *scale) Shares() string {
	if _, ran := s.r.Row("shard"); !ran || s.r.Quick {
		return ""
	}
	s.line("The next table computes a million pods on five replicas. Under leader election, all replicas have started their")
	s.line("caches, as measured by the row `cache`, which does not count bytes. With shards, each replica has a fifth: the row")
	s.line("`cache` times the ratio of a fifth to the whole in the row `shard`.\n")
	s.line("| a million pods on five replicas | GB in each | GB in all | s of one core to list, in each | GB to receive, in each |\n|---|---:|---:|---:|---:|")
	for _, label := range []string{"client-go, corev1.Pod", "client-go, corev1.Pod, stripped", "leat, corev1.Pod", "leat, 8 fields"} {
		s.share("leader election, "+label, label, "")
		s.share("shards, "+label+", cut by the client", label, ", cut by the client")
		s.share("shards, "+label+", cut by the server", label, ", cut by the server")
	}
	s.line("")
	return ""
}

// share writes the row of one of five replicas, if it is measured. Without a cut, the replica holds everything.
func (s *scale) share(title, label, cut string) {
	live, measured := s.figure("cache", label, "live B/object")
	cpu, _ := s.figure("cache", label, "cpu us/object")
	gb, cores, received := live*millions/1e9, cpu*millions/1e6, "–"
	fifth := func(metric string) float64 { v, _ := s.figure("shard", label+cut, metric); return v }
	whole := func(metric string) float64 { v, _ := s.figure("shard", label+", whole", metric); return v }
	if cut != "" {
		measured = measured && fifth("live MB") > 0 && whole("live MB") > 0
		gb, cores = gb*fifth("live MB")/whole("live MB"), cores*fifth("list cpu s")/whole("list cpu s")
		received = number(fifth("list MB") * millions / podsOfShard / 1e3)
	} else if all := whole("list MB"); all > 0 {
		received = number(all * millions / podsOfShard / 1e3)
	}
	if measured {
		s.line("| %s | %s | %s | %s | %s |", title, number(gb), number(5*gb), number(cores), received)
	}
}

// Fleet computes the cost of a fleet from that of an agent.
func (s *scale) Fleet() string {
	const server = realServer
	join, measured := s.figure("fleet", server, "join cpu ms")
	if !measured {
		return ""
	}
	kb, _ := s.figure("fleet", server, "KB/agent")
	answer, _ := s.figure("fleet", server, "answer KB")
	change, _ := s.figure("fleet", server, "change cpu ms")
	cpu := join * agentsOfFleet / 1e3
	if _, restarted := s.figure("fleet", server, "restart s"); !restarted {
		s.line("The measured restart of all agents failed in this run, so the figures below are computed.\n")
	}
	s.line("For 5,000 agents at one kube-apiserver, computed from the cost of a join:\n\n| | |\n|---|---:|")
	s.line("| memory of the watches and connections, MB | %s |", number(kb*agentsOfFleet/1e3))
	s.line("| a restart of all, s of one core of the server | %s |", number(cpu))
	s.line("| the same within five seconds: cores | %s |", number(cpu/5))
	s.line("| the same spread over a minute (`stagger.Options.Jitter`): cores | %s |", number(cpu/60))
	s.line("| the initial states of a restart, MB | %s |", number(answer*agentsOfFleet/1e3))
	s.line("| one change of a pod on each node a minute: cores | %s |", number(change*agentsOfFleet/1e3/60))
	s.line("")
	return ""
}

// SlowWarm names the programs that do not start faster with package warmstart.
func (s *scale) SlowWarm() string {
	row, ran := s.r.Row("warm")
	if !ran {
		return ""
	}
	var slow []string
	for i := range row.Entrants {
		e := &row.Entrants[i]
		list, listed := e.Median("list ms")
		if warm, started := e.Median("warm ms"); listed && started && warm >= list {
			slow = append(slow, "\""+e.Label+"\"")
		}
	}
	if len(slow) > 0 {
		s.line("For %s, `warmstart` saves network and load of the server, and not time.\n", strings.Join(slow, " and "))
	}
	return ""
}
