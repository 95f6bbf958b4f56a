package subject

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
)

// Metrics are the figures of a work: names with units, and values.
type Metrics map[string]float64

// Report is the last line that a subject writes.
type Report struct {
	Metrics  Metrics
	Arrivals map[string]int64 // of Latency and Reconcile: when the handler got each version, in nanoseconds of the wall clock
	Error    string
}

// Ready is the line with which a subject tells the runner that it waits for its part and for a line to continue.
const Ready = "ready"

// Main does the work that the first argument describes in JSON, and ends the process.
func Main(l Library) {
	report := &Report{Metrics: Metrics{}}
	if err := run(l, report); err != nil {
		report.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		os.Exit(1) // the reader has gone
	}
}

func run(l Library, report *Report) error {
	if len(os.Args) != 2 {
		return errors.New("subject: the bench starts this program, with one work as its argument")
	}
	var s Spec
	if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	return Do(l, s, report, os.Stdin, os.Stdout)
}

// Do does one work and fills in the report. It writes Ready to out when the runner must do its part, and continues
// after a line from in.
func Do(l Library, s Spec, report *Report, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &worker{library: l, spec: s, report: report, in: bufio.NewReader(in), out: out}
	works := map[Work]func(context.Context) error{
		Sync: w.sync, Events: w.events, Relist: w.relist, Latency: w.latency, Reconcile: w.latency, Resources: w.resources, Warm: w.warm, Shard: w.shard,
		Fanout: w.fanout, Hindered: w.hindered, Backlog: w.backlog, Stuck: w.stuck, Overhead: w.overhead,
		Queue: w.queue, QueueContended: w.queueContended, QueuePriorities: w.queuePriorities,
		QueueDelayed: w.queueDelayed, QueueLimited: w.queueLimited, Readers: w.readers, Finders: w.finders,
	}
	work, known := works[s.Work]
	if !known {
		return fmt.Errorf("subject: unknown work %q", s.Work)
	}
	return work(ctx)
}

// worker does one work.
type worker struct {
	library Library
	spec    Spec
	report  *Report
	in      *bufio.Reader
	out     io.Writer
}

// ready tells the runner that it must do its part, and waits for the line to continue.
func (w *worker) ready() error {
	if _, err := fmt.Fprintln(w.out, Ready); err != nil {
		return err
	}
	_, err := w.in.ReadString('\n')
	return err
}

func (w *worker) set(name string, value float64) { w.report.Metrics[name] = value }

// profile records a processor profile if the spec requests one, until stop is called.
func (w *worker) profile() (stop func(), err error) {
	if w.spec.Profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(w.spec.Profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // an incomplete profile is noticed when it is read
	}, nil
}

// heapProfile writes a profile of the live heap if the spec requests one.
func (w *worker) heapProfile() error {
	if w.spec.Heap == "" {
		return nil
	}
	f, err := os.Create(w.spec.Heap)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.Lookup("heap").WriteTo(f, 0)
}
