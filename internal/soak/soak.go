package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// churnFor is how long the unquiet part of a round takes.
const churnFor = 3 * time.Second

// withHTTP2 is how long a soak must be to speak HTTP/2. For 90 s after an HTTP/2 connection was cut, an idle timer of
// net/http holds up to 70 KB at each end. In a shorter soak that would look like a leak.
const withHTTP2 = 10 * time.Minute

// options of a soak.
type options struct {
	time    time.Duration
	seed    uint64
	profile string
	log     *zap.Logger
	out     io.Writer
}

// soak is one run.
type soak struct {
	options
	rand     *rand.Rand
	kinds    map[string][]faults.Fault
	began    time.Time
	quiet    atomic.Bool
	world    *world
	observer *observer
	replicas []*replica
	round    int
	// generation counts the replicas that were started after the first ones.
	generation int
	samples    []sample
	totals
}

// totals are for the summary.
type totals struct {
	events, reconciles, panics, ended, cuts int64
	faults, visitors                        tally
}

// run runs a soak and returns what is wrong.
func run(ctx context.Context, o options) error {
	if err := primePoller(); err != nil {
		return err
	}
	before := measure()
	s := &soak{options: o, rand: newRand(o.seed), began: time.Now(), totals: totals{faults: tally{}, visitors: tally{}}}
	fmt.Fprintf(o.out, "soak: seed %d, new rounds for %v\n", o.seed, o.time)
	err := s.start()
	if err == nil {
		err = s.rounds(ctx)
	}
	err = errors.Join(err, s.end())
	verdict := judge(s.samples)
	after := s.measureEnd(before)
	err = errors.Join(err, writeHeapProfile(s.profile, "stopped.pprof"))
	left := judgeEnd(before, after)
	s.summary(before, after)
	if left != nil {
		writeGoroutines(o.out)
	}
	if err = errors.Join(err, verdict, left); err != nil {
		return fmt.Errorf("soak: failed with seed %d after %d rounds:\n%w", o.seed, s.round, err)
	}
	fmt.Fprintln(o.out, "soak: passed: flat")
	return nil
}

// primePoller opens the descriptors that a Go process keeps from its first connection on.
func primePoller() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("soak: listen: %w", err)
	}
	return l.Close()
}

// start starts the server, the observer and the replicas.
func (s *soak) start() (err error) {
	if s.kinds, err = kinds(); err != nil {
		return err
	}
	if s.world, err = newWorld(s.seed, s.time >= withHTTP2); err != nil {
		return err
	}
	if s.observer, err = startObserver(s.world, s.log); err != nil {
		return err
	}
	for index := range 2 {
		p, err := newSlot(index)
		if err != nil {
			return err
		}
		r, err := startReplica(s.world, p, 0, &s.quiet, s.log)
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, r)
	}
	return nil
}

// rounds does one round after the other.
func (s *soak) rounds(ctx context.Context) error {
	warm := false
	for ctx.Err() == nil && (time.Since(s.began) < s.time || s.round < minRounds) {
		s.round++
		if err := s.do(ctx); err != nil {
			writeGoroutines(s.out)
			return err
		}
		if !warm && s.round >= minRounds/4 && time.Since(s.began) > s.time/4 {
			warm = true
			if err := writeHeapProfile(s.profile, "warm.pprof"); err != nil {
				return err
			}
		}
	}
	return writeHeapProfile(s.profile, "end.pprof")
}

// do does one round.
func (s *soak) do(ctx context.Context) error {
	s.quiet.Store(false)
	v := newVisitors(s.observer, s.rand)
	replaced := make(chan error, 1)
	go func() { replaced <- s.replaceNext() }()
	lied, injected, err := s.churn(ctx, v, churnFor)
	err = errors.Join(err, <-replaced)
	if err == nil {
		err = s.observer.record(ctx, s.round)
	}
	// A round that is interrupted settles too, so that an interrupted soak still has a verdict.
	err = errors.Join(err, s.settle(context.WithoutCancel(ctx), v, lied))
	if err != nil {
		return err
	}
	for _, r := range s.replicas {
		r.client.CloseIdleConnections()
	}
	s.observer.client.CloseIdleConnections()
	s.report(v, injected, measureWhenStill(context.WithoutCancel(ctx)))
	return nil
}

// replaceNext restarts one replica, the other one in the next round. Every other pair of rounds cuts it off instead.
func (s *soak) replaceNext() error {
	i := s.round % len(s.replicas)
	if s.round/len(s.replicas)%2 == 0 {
		s.cuts++
		return s.replace(i, s.replicas[i].cutOff)
	}
	return s.replace(i, s.replicas[i].restart)
}

// replace ends a replica and starts its next generation.
func (s *soak) replace(i int, end func() error) error {
	old := s.replicas[i]
	if err := end(); err != nil {
		return fmt.Errorf("soak: %s: %w", old.name, err)
	}
	s.count(old)
	s.generation++
	fresh, err := startReplica(s.world, old.slot, s.generation, &s.quiet, s.log)
	if err != nil {
		return err
	}
	s.replicas[i] = fresh
	return nil
}

// count adds what a replica did that has ended.
func (s *soak) count(r *replica) {
	stats := r.controller.Stats()
	s.reconciles += stats.Reconciles
	s.panics += stats.Panics
	s.ended++
}

// report counts a round and prints its line.
func (s *soak) report(v *visitors, injected map[string][]*testserver.Injection, m sample) {
	met := tally{}
	for name, all := range injected {
		for _, i := range all {
			met[name] += i.Seen()
		}
	}
	s.faults.add(met)
	s.visitors.add(v.came)
	s.samples = append(s.samples, m)
	fmt.Fprintf(s.out, "%8v  round %-4d %9d notifications  heap %s  %d goroutines  %d descriptors  %d faults (%v)\n",
		time.Since(s.began).Round(time.Second), s.round, s.observer.told.Load(), megabytes(m.heap), m.goroutines, m.descriptors,
		met.total(), met)
}

// end stops everything, in the order in which a program would.
func (s *soak) end() error {
	var failed error
	for _, r := range s.replicas {
		failed = errors.Join(failed, r.restart())
		s.count(r)
	}
	if s.observer != nil {
		s.events = s.observer.told.Load()
		failed = errors.Join(failed, s.observer.end())
	}
	if s.world != nil {
		failed = errors.Join(failed, s.world.end())
	}
	return failed
}

// measureEnd waits until nothing is left, or gives up, and lets go of everything.
func (s *soak) measureEnd(before sample) sample {
	s.world, s.observer, s.replicas = nil, nil, nil
	_ = poll(context.Background(), settleLimit, func() error { return judgeEnd(before, measure()) }) // the verdict is the caller's
	return measure()
}

// summary is one screen of what was done and measured.
func (s *soak) summary(before, after sample) {
	p := func(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
	p("\nsoak: seed %d, %d rounds in %v", s.seed, s.round, time.Since(s.began).Round(time.Second))
	p("  done        %d notifications, %d reconciles (%d panicked), %d replicas ended (%d cut off)", s.events, s.reconciles,
		s.panics, s.ended, s.cuts)
	p("  visitors    %d: %v", s.visitors.total(), s.visitors)
	p("  faults met  %d: %v", s.faults.total(), s.faults)
	p("  %-12s%12s%12s%14s", "", "heap", "goroutines", "descriptors")
	row := func(name string, m sample) {
		p("  %-12s%12s%12d%14d", name, megabytes(m.heap), m.goroutines, m.descriptors)
	}
	row("before", before)
	if len(s.samples) >= minRounds {
		q := compare(s.samples)
		row("warm", q.warm)
		row("end", q.end)
		p("  %-12s%12s%12d%14d", "may grow by", megabytes(maxMoreHeap), maxMoreGoroutines, maxMoreDescriptors)
	}
	row("stopped", after)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.2f MB", float64(bytes)/1e6) }

// newLogger writes every line of the log to w.
func newLogger(w io.Writer) *zap.Logger {
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(c), zapcore.Lock(zapcore.AddSync(w)), zapcore.DebugLevel))
}
