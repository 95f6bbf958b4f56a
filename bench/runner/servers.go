package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/leatproject/leat/bench/measure"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/testserver"
)

// The programs with a server of leat.
const (
	untyped    = "leat-untyped" // leat serve
	typed      = "leat-server"
	kubeServer = "kube-apiserver"
)

const (
	serverObjects = 10_000
	serverLists   = 5
	serverWatches = 1_000
	serverChanges = 100
	serverKinds   = 3_000   // objects of each kind in the row about kinds
	serverLargest = 100_000 // objects in the test of the memory
	startsInGo    = 50
)

// ServerRows returns the rows in which API servers are measured: those of leat, and etcd with kube-apiserver.
func ServerRows() []Row {
	own := []Entrant{{Label: "leat serve", Program: untyped}, {Label: "leat-server", Program: typed}}
	tls := []Entrant{{Label: "leat serve, TLS", Program: untyped, TLS: true}, {Label: "leat-server, TLS", Program: typed, TLS: true}}
	all := append(slices.Concat(own, tls), Entrant{Label: "etcd and kube-apiserver", Program: kubeServer})
	return []Row{
		{
			Name: "servers", Title: "API servers for tests", Entrants: all, Rounds: 3,
			Columns: []string{
				"start ms", "start cpu ms", "start in Go cpu ms", "10 k creates cpu s", "5 lists cpu s", "100 k events cpu s", "MB",
			},
			Note: "Each server with its defaults: leat's speak plain HTTP, and kube-apiserver speaks TLS and compresses lists. " +
				"ConfigMaps with 1 KiB of text, in JSON: 10,000 creates by eight writers, five lists of these, and 100 changes " +
				"that 1,000 watches get. All have the same text, which leat's servers keep once; with different texts, five lists " +
				"would take a quarter more processor time (decision 55). Processor time and resident memory are those of the " +
				"server's processes. The client is one other process, the same for every server.",
		},
		{
			Name: "server-kinds", Title: "API servers for tests: creates of three kinds", Entrants: all, Rounds: 3,
			Columns: []string{"configmap cpu us", "pod cpu us", "deployment cpu us"},
			Note: "The same with 3,000 creates of each kind. leat serve stores an object as it was sent. The others decode it into " +
				"Go types, set defaults, run admission and validate it.",
		},
		{
			Name: "server-memory", Title: "API servers for tests: 100,000 objects", Entrants: own, Rounds: 1,
			Columns: []string{"MB", "cpu us/create"},
			Note:    "The same ConfigMaps. Resident memory after the last create. Different texts would take 1 KiB more for each.",
		},
		fleetRow(append(tls[:1:1], all[len(all)-1])),
	}
}

// serverWork is the work of a row.
func serverWork(row string) func(context.Context, *apiServer) (subject.Metrics, error) {
	switch row {
	case "servers":
		return createsListsAndWatches
	case "server-kinds":
		return kinds
	case "fleet":
		return fleetOf(fleetAgents)
	default:
		return memory
	}
}

// servers measures the rows about API servers.
func (r *run) servers(ctx context.Context, result *Result) error {
	rows := r.choose(ServerRows())
	if len(rows) == 0 {
		return nil
	}
	if err := r.buildServers(ctx); err != nil {
		return err
	}
	return r.measure(ctx, rows, result, r.serverTurn)
}

// buildServers builds the servers of leat. The go command keeps what has not changed.
func (r *run) buildServers(ctx context.Context) error {
	root := filepath.Join(r.Folder, "..")
	_, _ = fmt.Fprintln(r.Progress, "building leat's servers (some minutes with a cold cache)")
	if err := goBuildIn(ctx, r.Options, root, untyped, "./cmd/leat"); err != nil {
		return err
	}
	return goBuildIn(ctx, r.Options, filepath.Join(root, "testserver", "cluster"), typed, "./cmd/leat-server")
}

// serverTurn runs one turn with a new server.
func (r *run) serverTurn(ctx context.Context, row *Row, e Entrant, _ bool) (subject.Metrics, error) {
	s, err := r.startServer(ctx, e)
	if err != nil {
		return nil, err
	}
	metrics, err := serverWork(row.Name)(ctx, s)
	s.client.CloseIdleConnections()
	if stopped := s.stop(); err == nil {
		err = stopped
	}
	if e.Program == untyped && metrics != nil && err == nil {
		metrics["start in Go cpu ms"], err = startInGo(ctx)
	}
	return metrics, err
}

func (r *run) startServer(ctx context.Context, e Entrant) (*apiServer, error) {
	switch {
	case e.Program == kubeServer:
		return r.startReal(ctx)
	case e.TLS:
		return r.startOwn(ctx, e.Program, "--tls")
	default:
		return r.startOwn(ctx, e.Program)
	}
}

// createsListsAndWatches measures these and the start.
func createsListsAndWatches(ctx context.Context, s *apiServer) (subject.Metrics, error) {
	used, err := s.cpu()
	if err != nil {
		return nil, err
	}
	m := subject.Metrics{"start ms": s.took.Seconds() * 1e3, "start cpu ms": used.Seconds() * 1e3}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"10 k creates cpu s", func(ctx context.Context) error { return s.create(ctx, configMaps, 0, serverObjects) }},
		{"5 lists cpu s", func(ctx context.Context) error { return s.list(ctx, configMaps, serverLists, serverObjects) }},
	} {
		if m[step.name], err = s.spent(func() error { return step.do(ctx) }); err != nil {
			return nil, fmt.Errorf("runner: %s: %w", step.name, err)
		}
	}
	if m["100 k events cpu s"], err = s.fanOut(ctx, configMaps, serverWatches, serverChanges); err != nil {
		return nil, fmt.Errorf("runner: watches: %w", err)
	}
	m["MB"], err = s.rss()
	return m, err
}

// kinds measures creates of several kinds. The first objects of each are not measured.
func kinds(ctx context.Context, s *apiServer) (subject.Metrics, error) {
	m := subject.Metrics{}
	for _, kind := range []apiKind{configMaps, pods, deployments} {
		if err := s.create(ctx, kind, 0, serverKinds/10); err != nil {
			return nil, err
		}
		seconds, err := s.spent(func() error { return s.create(ctx, kind, serverKinds/10, serverKinds) })
		if err != nil {
			return nil, err
		}
		m[kind.name+" cpu us"] = seconds * 1e6 / serverKinds
	}
	return m, nil
}

// memory measures the memory of many objects.
func memory(ctx context.Context, s *apiServer) (subject.Metrics, error) {
	seconds, err := s.spent(func() error { return s.create(ctx, configMaps, 0, serverLargest) })
	if err != nil {
		return nil, err
	}
	size, err := s.rss()
	return subject.Metrics{"MB": size, "cpu us/create": seconds * 1e6 / serverLargest}, err
}

// spent returns the processor time, in seconds, that the server uses while do runs.
func (s *apiServer) spent(do func() error) (float64, error) {
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := s.cpu()
	return (after - before).Seconds(), err
}

// startInGo returns the median of the processor times, in milliseconds, from New until a server without types has
// answered the first request.
func startInGo(ctx context.Context) (float64, error) {
	var took []float64
	for range startsInGo {
		before := measure.Now()
		s := testserver.New(testserver.Options{})
		_, stop := background(ctx, s.Run)
		res, err := s.Client().Get(s.URL() + configMaps.path)
		if err == nil {
			err = res.Body.Close()
		}
		took = append(took, measure.Now().Since(before).CPU.Seconds()*1e3)
		if err := errors.Join(err, stop()); err != nil {
			return 0, err
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
