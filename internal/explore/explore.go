package explore

import (
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// World describes what is explored. S is a state. It is a value: a step makes a new one and does not change the old
// one.
type World[S any] struct {
	// First are the states to begin with.
	First []S
	// Next calls yield with the state after each possible step, in an order that depends only on the state.
	Next func(s S, yield func(S))
	// Key appends what distinguishes a state from others.
	Key func(s S, to []byte) []byte
	// Check returns why a state must not be reached, or nil.
	Check func(S) error
	// Fair returns the state after the step that follows if nothing fails, and whether s is already a good end. Unless
	// it is nil, every state must reach a good end in at most FairSteps such steps.
	Fair      func(s S) (next S, good bool)
	FairSteps int
	// Describe returns the step that led to a state, as a line.
	Describe func(S) string
}

// Options are the bounds of an exploration.
type Options struct {
	Depth   int // the largest number of steps
	States  int // the exploration ends after about so many states
	Workers int // 0 means 2
	// Around is called on the goroutine of each worker, and must call work. Nil calls work alone.
	Around func(work func())
	// Progress gets a line every two seconds. It may be nil.
	Progress io.Writer
}

// Report describes an exploration.
type Report struct {
	States, Steps int
	Depth         int  // of the last states that were visited
	Whole         bool // every state was visited that Options.Depth allows
	Exhausted     bool // no state is left at any depth
	Failure       error
	// Choices are the numbers of the steps to the failure: first that of a state in World.First, then those of the
	// calls of yield.
	Choices []int
}

// String returns the numbers on one line.
func (r Report) String() string {
	end := "more states exist"
	switch {
	case r.Failure != nil:
		end = "failed"
	case r.Exhausted:
		end = "there are no more"
	case r.Whole:
		end = "all of this depth"
	}
	return fmt.Sprintf("%d states, %d steps, depth %d, %s", r.States, r.Steps, r.Depth, end)
}

// node is the place of a state in the tree of first visits.
type node struct {
	parent uint32
	choice uint16
}

// found is a state that waits for its successors.
type found[S any] struct {
	state S
	id    uint32
}

// explorer is an exploration in progress.
type explorer[S any] struct {
	w       World[S]
	o       Options
	seed    maphash.Seed
	visited table[struct{}]
	settled table[uint8] // the number of fair steps from a state to a good end
	steps   atomic.Int64

	mu      sync.Mutex // guards the fields below
	nodes   []node
	next    []found[S]
	failure error
	failed  uint32 // the node of the failure
}

// Run explores a world until it has found a failure or reached a bound.
func Run[S any](w World[S], o Options) Report {
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.Around == nil {
		o.Around = func(work func()) { work() }
	}
	e := &explorer[S]{w: w, o: o, seed: maphash.MakeSeed()}
	stop := e.report()
	defer stop()
	o.Around(func() {
		var key []byte
		for i, s := range w.First {
			key = e.visit(s, 0, i, key)
		}
	})
	r := Report{}
	for r.Depth < o.Depth && e.failure == nil && len(e.next) > 0 && len(e.nodes) < o.States {
		if e.expand(); len(e.next) > 0 {
			r.Depth++
		}
	}
	r.States, r.Steps, r.Failure = len(e.nodes), int(e.steps.Load()), e.failure
	r.Exhausted = e.failure == nil && len(e.next) == 0
	r.Whole = e.failure == nil && len(e.nodes) < o.States
	if e.failure != nil {
		r.Choices = e.choices(e.failed, r.Depth)
		o.Around(func() { r.Failure = e.explain(r.Choices) })
	}
	return r
}

// Replay returns a line for each step of Report.Choices, and of the fair steps that lead from there to the failure.
func Replay[S any](w World[S], choices []int) (lines []string) {
	s := w.First[choices[0]]
	lines = append(lines, w.Describe(s))
	for _, choice := range choices[1:] {
		n, next := 0, s
		w.Next(s, func(to S) {
			if n == choice {
				next = to
			}
			n++
		})
		s = next
		lines = append(lines, w.Describe(s))
	}
	for n := 0; w.Fair != nil && n <= w.FairSteps && w.Check(s) == nil; n++ {
		next, good := w.Fair(s)
		if good {
			break
		}
		s = next
		lines = append(lines, w.Describe(s))
	}
	return lines
}

// expand visits the successors of all states of the last depth.
func (e *explorer[S]) expand() {
	level := e.next
	e.next = nil
	var taken atomic.Int64
	var workers sync.WaitGroup
	for range e.o.Workers {
		workers.Go(func() {
			e.o.Around(func() {
				var key []byte
				for {
					i := int(taken.Add(1)) - 1
					if i >= len(level) || e.over() {
						return
					}
					n := 0
					e.w.Next(level[i].state, func(s S) {
						key = e.visit(s, level[i].id, n, key)
						n++
					})
					e.steps.Add(int64(n))
				}
			})
		})
	}
	workers.Wait()
}

func (e *explorer[S]) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure != nil || len(e.nodes) >= e.o.States
}

// visit checks a state, unless it was visited before. key is a buffer, which visit returns.
func (e *explorer[S]) visit(s S, parent uint32, choice int, key []byte) []byte {
	key = e.w.Key(s, key[:0])
	if !e.visited.add(maphash.Bytes(e.seed, key), struct{}{}) {
		return key
	}
	err := e.w.Check(s)
	if err == nil && e.w.Fair != nil {
		err = e.settle(s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id := uint32(len(e.nodes))
	e.nodes = append(e.nodes, node{parent, uint16(choice)})
	e.next = append(e.next, found[S]{s, id})
	if err != nil && e.failure == nil {
		e.failure, e.failed = err, id
	}
	return key
}

// settle follows the fair steps from a state to a good end, or to a state that settles.
func (e *explorer[S]) settle(s S) error {
	var way []uint64
	rest, good := 0, false // rest is the number of fair steps from the last state of way
	for !good {
		var key [256]byte
		hash := maphash.Bytes(e.seed, e.w.Key(s, key[:0]))
		if known, ok := e.settled.get(hash); ok {
			rest = int(known) + 1
			break
		}
		if len(way) > e.w.FairSteps {
			return fmt.Errorf("no good end after %d fair steps", e.w.FairSteps)
		}
		way = append(way, hash)
		if s, good = e.w.Fair(s); !good {
			if err := e.w.Check(s); err != nil {
				return err
			}
		}
	}
	for i := range way {
		steps := rest + i
		if steps > e.w.FairSteps {
			return fmt.Errorf("a good end needs more than %d fair steps", e.w.FairSteps)
		}
		e.settled.add(way[len(way)-1-i], uint8(steps))
	}
	return nil
}

// explain returns the failure with its steps.
func (e *explorer[S]) explain(choices []int) error {
	lines := Replay(e.w, choices)
	if len(lines) > len(choices) {
		lines = slices.Insert(lines, len(choices), "and the fair steps that follow:")
	}
	return fmt.Errorf("%w\n%s", e.failure, strings.Join(lines, "\n"))
}

// choices returns the way to a node of this depth.
func (e *explorer[S]) choices(id uint32, depth int) []int {
	all := make([]int, depth+1)
	for i := depth; i >= 0; i-- {
		all[i] = int(e.nodes[id].choice)
		id = e.nodes[id].parent
	}
	return all
}

// report prints the progress until stop is called.
func (e *explorer[S]) report() (stop func()) {
	if e.o.Progress == nil {
		return func() {}
	}
	ticker, done := time.NewTicker(2*time.Second), make(chan struct{})
	started := time.Now()
	var printing sync.WaitGroup
	printing.Go(func() {
		for {
			select {
			case <-ticker.C:
				e.mu.Lock()
				states, waiting := len(e.nodes), len(e.next)
				e.mu.Unlock()
				took := time.Since(started).Round(time.Second)
				fmt.Fprintf(e.o.Progress, "%8s %10d states %12d steps %10d states for the next depth\n", took, states, e.steps.Load(), waiting)
			case <-done:
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		printing.Wait()
	}
}

// table is a map for several workers.
type table[V any] struct {
	parts [64]struct {
		mu sync.Mutex
		m  map[uint64]V
	}
}

// add adds a hash and reports whether it is new.
func (t *table[V]) add(hash uint64, v V) bool {
	p := &t.parts[hash%64]
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.m[hash]; known {
		return false
	}
	if p.m == nil {
		p.m = map[uint64]V{}
	}
	p.m[hash] = v
	return true
}

func (t *table[V]) get(hash uint64) (v V, ok bool) {
	p := &t.parts[hash%64]
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok = p.m[hash]
	return v, ok
}
