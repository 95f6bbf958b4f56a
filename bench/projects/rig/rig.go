package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/bench/measure"
	"github.com/leatproject/leat/scale/packed"
)

// Project is a program whose caches are measured. Its types are in the scheme of client-go.
type Project struct {
	Name    string                // with the version
	Groups  []schema.GroupVersion // of its own types
	Cluster []string              // the kinds among them that are cluster-scoped
	Objects []client.Object       // of these types; the server has them in every measurement
	Masks   map[client.Object][]string
	Cache   cache.Options
	Context func() context.Context // of reconcilers; nil means the background
	Setup   func(context.Context, ctrl.Manager) error
}

// caches are the caches of the columns, in their order.
var caches = []string{"controller-runtime", "leat", "masked"}

// Main measures a project, or, with the flag -server, runs it once. It prints a row of the table.
func Main(p Project) {
	kind := flag.String("cache", caches[0], "with -server: "+strings.Join(caches, ", "))
	server := flag.String("server", "", "run the controllers against this server, and print the live heap")
	pods := flag.Int("pods", 20_000, "pods of the measurement")
	verbose := flag.Bool("v", false, "print what the controllers log")
	flag.Parse()
	err := error(nil)
	if *server != "" {
		err = p.run(*kind, *server)
	} else {
		err = p.row(*pods, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// row measures each cache with an empty server and with a full one. The difference is what the objects cost.
func (p Project) row(pods int, verbose bool) error {
	hosts := map[int]string{}
	for _, n := range []int{0, pods} {
		host, stop, err := p.serve(n)
		if err != nil {
			return err
		}
		defer stop()
		hosts[n] = host
	}
	row, costs := "| "+p.Name, []float64{}
	for _, kind := range caches {
		empty, _, err := child(kind, hosts[0], verbose)
		if err != nil {
			return err
		}
		full, failed, err := child(kind, hosts[pods], verbose)
		if err != nil {
			return err
		}
		costs = append(costs, float64(full)-float64(empty))
		row += fmt.Sprintf(" | %.1f", costs[len(costs)-1]/1e6)
		fmt.Fprintf(os.Stderr, "%s: %.1f MB empty, %.1f MB full, %d errors logged, %d of them refused writes\n",
			kind, float64(empty)/1e6, float64(full)/1e6, failed[0], failed[1])
	}
	fmt.Printf("%s | 1/%.1f | 1/%.1f |\n", row, costs[0]/costs[1], costs[0]/costs[2])
	return nil
}

// child runs the program once. It returns the live heap, and how many errors and refused writes the program logged.
func child(kind, host string, verbose bool) (live uint64, failed [2]int, err error) {
	var out, logged bytes.Buffer
	cmd := exec.Command(os.Args[0], "-cache="+kind, "-server="+host)
	cmd.Stdout, cmd.Stderr = &out, &logged
	err = cmd.Run()
	if verbose || err != nil {
		_, _ = os.Stderr.Write(logged.Bytes())
	}
	if err == nil {
		lines := bytes.TrimSpace(out.Bytes()) // some programs log there too
		err = json.Unmarshal(lines[bytes.LastIndexByte(lines, '\n')+1:], &live)
	}
	if err != nil {
		return 0, failed, fmt.Errorf("rig: run with the cache %s: %w", kind, err)
	}
	return live, [2]int{
		strings.Count(logged.String(), `"level":"error"`), strings.Count(logged.String(), "comes from a cache that keeps only"),
	}, nil
}

// run runs the controllers until their caches are full and they have nothing to do, and prints the live heap.
func (p Project) run(kind, host string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(zap.New(zap.JSONEncoder()))
	o := ctrl.Options{
		Scheme: scheme.Scheme, Cache: p.Cache, BaseContext: p.Context, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	own := leatcache.Options{Hold: packed.Bytes[client.Object](), DropManagedFields: true}
	switch kind {
	case "controller-runtime":
	case "leat":
		o.NewCache = own.New
	case "masked":
		own.Fields = p.Masks
		o.NewCache, o.NewClient = own.New, leatcache.NewClient
	default:
		return fmt.Errorf("rig: -cache=%s is not one of %v", kind, caches)
	}
	json := rest.ContentConfig{ContentType: "application/json"} // the server decodes no protobuf
	m, err := ctrl.NewManager(&rest.Config{Host: host, QPS: -1, ContentConfig: json}, o)
	if err != nil {
		return err
	}
	if err := p.Setup(ctx, m); err != nil {
		return err
	}
	live := uint64(0)
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer cancel()
		if _, err := m.GetCache().GetInformer(ctx, &corev1.Pod{}); err != nil { // blocks until it has synchronized
			return err
		}
		if err := idle(ctx); err != nil {
			return err
		}
		live = measure.LiveHeap()
		for range 4 { // a reconciler that is at work has garbage to be
			time.Sleep(time.Second)
			live = min(live, measure.LiveHeap())
		}
		return nil
	})); err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Println(live)
	return nil
}

const (
	idleTime  = 5 * time.Second
	idleUse   = 100 * time.Millisecond // timers and watches
	idleLimit = 2 * time.Minute        // some reconcilers never rest
)

// idle waits until the process has used almost no processor time for idleTime, or until idleLimit.
func idle(ctx context.Context) error {
	end := time.Now().Add(idleLimit)
	for before := measure.Now().CPU; time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(idleTime):
		}
		now := measure.Now().CPU
		if now-before < idleUse {
			return nil
		}
		before = now
	}
	fmt.Fprintln(os.Stderr, "rig: the controllers still work")
	return nil
}
