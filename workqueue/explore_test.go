//go:build !race

package workqueue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leatproject/leat/internal/explore"
	"github.com/leatproject/leat/workqueue"
)

// exploredKeys are the keys of the world. It has two workers.
const exploredKeys = 2

// exploredQueue is a queue, its model, and workers that do what the exploration tells them.
type exploredQueue struct {
	q       *workqueue.Queue[byte]
	m       *model
	workers [2]exploredWorker
	owed    [exploredKeys]bool // an event since the last hand-out has no reconcile yet
	drain   chan error         // nil without a drain
	wrong   error
	variant queueVariant
}

// exploredWorker is a worker. Its Get has a goroutine only while it waits.
type exploredWorker struct {
	got     chan error
	cancel  context.CancelFunc // nil unless it waits
	work    workqueue.Work[byte]
	busy    bool
	retried bool // it has asked for a retry of its key
	ended   bool // Get returned ErrShutDown
}

// queueVariant is a rule that a test breaks, outside of the queue.
type queueVariant int

const (
	_                queueVariant = iota
	losesEvents                   // an event of a key in work is dropped, as if the reconcile would see it
	endsEarly                     // Done comes before the reconcile
	forgetsFailures               // a reconcile that fails leaves without a retry
	drainsWithoutEnd              // a worker ends at the shutdown, without the keys that are ready
)

func (x *exploredQueue) fail(format string, args ...any) {
	if x.wrong == nil {
		x.wrong = fmt.Errorf(format, args...)
	}
}

func newExploredQueue(v queueVariant) *exploredQueue {
	m := &model{
		ageing: 3, maxCauses: 1, now: time.Now(), fails: map[byte]int{},
		backoff: workqueue.Backoff{Base: time.Second, Max: 2 * time.Second},
	}
	q := workqueue.NewAgeing(m.ageing, workqueue.Options{MaxCauses: m.maxCauses, Metrics: &workqueue.Metrics{}}, workqueue.Exponential[byte](m.backoff))
	return &exploredQueue{q: q, m: m, variant: v}
}

func (x *exploredQueue) close() {
	for i := range x.workers {
		if w := &x.workers[i]; w.cancel != nil {
			w.cancel()
		}
	}
	x.q.ShutDown()
	synctest.Wait()
}

func keyName(key byte) string { return string('a' + rune(key)) }

func (x *exploredQueue) add(key byte, item workqueue.Item) {
	if x.variant == losesEvents && slices.ContainsFunc(x.workers[:], func(w exploredWorker) bool { return w.busy && w.work.Key == key }) {
		x.owed[key] = true
		return
	}
	if !x.m.closed {
		x.owed[key] = x.owed[key] || item.After == 0 || item.RateLimited
	}
	x.m.add(key, item)
	x.q.AddWith(key, item)
	x.deliver()
}

// get lets an idle worker ask for a key.
func (x *exploredQueue) get() {
	w := x.worker(func(w *exploredWorker) bool { return w.idle() })
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.got = cancel, make(chan error, 1)
	if x.q.Len() > 0 {
		work, err := x.q.Get(ctx)
		w.work = work
		w.got <- err
	} else {
		go func() {
			work, err := x.q.Get(ctx)
			w.work = work
			w.got <- err
		}()
	}
	x.deliver()
}

func (w *exploredWorker) idle() bool { return !w.busy && w.cancel == nil && !w.ended }

func (x *exploredQueue) worker(is func(*exploredWorker) bool) *exploredWorker {
	for i := range x.workers {
		if is(&x.workers[i]) {
			return &x.workers[i]
		}
	}
	return nil
}

// deliver waits until nothing moves, and compares what the workers got with the model.
func (x *exploredQueue) deliver() {
	synctest.Wait()
	if x.variant == drainsWithoutEnd && x.m.closed {
		for i := range x.workers {
			x.workers[i].ended = x.workers[i].ended || x.workers[i].idle()
		}
	}
	got, want := []string{}, []string{}
	ended := false
	var received []*exploredWorker
	for i := range x.workers {
		w := &x.workers[i]
		select {
		case err := <-w.got:
			w.cancel()
			w.got, w.cancel = nil, nil
			switch {
			case errors.Is(err, workqueue.ErrShutDown):
				w.ended, ended = true, true
			case err == nil:
				received = append(received, w)
			}
		default:
		}
	}
	// Goroutines that wake together take their keys in any order. A way that is run again must lead to the same state.
	// Workers are equal, so the first one gets the first key.
	if len(received) == 2 && received[0].work.Key > received[1].work.Key {
		received[0].work, received[1].work = received[1].work, received[0].work
	}
	for _, w := range received {
		got = append(got, describeWork(w.work.Key, w.work.Priority, len(w.work.Causes), w.work.CausesOmitted, w.work.Ready))
		x.begin(w)
	}
	for range got {
		if k := x.m.take(); k != nil {
			want = append(want, describeWork(k.key, k.priority, len(k.causes), k.omitted, k.ready))
			if k.turns > k.within {
				x.fail("%s waits for more turns than the bound of ageing", keyName(k.key))
			}
			k.causes, k.omitted = nil, 0
			if x.variant == endsEarly {
				x.m.done(k)
				x.q.Done(k.key)
				synctest.Wait()
			}
		}
	}
	if ended && len(x.m.all("ready"))+len(x.m.all("rerun")) > 0 {
		x.fail("a worker ends although a key will come")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		x.fail("the queue hands out %v, and the model %v", got, want)
	}
	if x.m.closed && len(x.m.all("ready"))+len(x.m.all("rerun")) == 0 && x.worker(func(w *exploredWorker) bool { return w.cancel != nil }) != nil {
		x.fail("a worker waits although no key will come")
	}
	if len(x.m.all("ready")) > 0 && x.worker(func(w *exploredWorker) bool { return w.cancel != nil }) != nil {
		x.fail("a worker waits although a key is ready")
	}
}

func describeWork(key byte, priority, causes, omitted int, ready time.Time) string {
	return fmt.Sprint(keyName(key), priority, causes, omitted, ready.UnixNano())
}

// begin begins the reconcile of a worker.
func (x *exploredQueue) begin(w *exploredWorker) {
	if x.worker(func(o *exploredWorker) bool { return o.busy && o.work.Key == w.work.Key }) != nil {
		x.fail("two workers have %s", keyName(w.work.Key))
	}
	w.busy, w.retried = true, false
	x.owed[w.work.Key] = false
}

// done ends a reconcile.
func (x *exploredQueue) done(w *exploredWorker) {
	key := w.work.Key
	if !w.retried {
		delete(x.m.fails, key)
		x.q.Forget(key)
	}
	w.busy = false
	if x.variant != endsEarly {
		x.m.done(x.m.find(key))
		x.q.Done(key)
	}
	x.deliver()
}

func (x *exploredQueue) shutDown() {
	x.m.shutDown()
	x.owed = [exploredKeys]bool{}
	for _, k := range x.m.keys {
		x.owed[k.key] = k.pending != ""
	}
}

func (x *exploredQueue) check() error {
	if have, want := x.q.Stats(), x.m.stats(); !reflect.DeepEqual(have, want) {
		x.fail("the queue has %+v, and the model %+v", have, want)
	}
	for key := range byte(exploredKeys) {
		due := time.Time{}
		if k := x.m.find(key); k != nil && k.pending == "delayed" {
			due = k.ready
		}
		if !x.q.DueAt(key).Equal(due) || x.q.NumRequeues(key) != x.m.fails[key] {
			x.fail("%s is due at %v after %d failures, and in the model at %v after %d", keyName(key), x.q.DueAt(key), x.q.NumRequeues(key), due, x.m.fails[key])
		}
	}
	if x.drain != nil && len(x.drain) > 0 != (len(x.m.keys) == 0) {
		x.fail("the drain has ended: %v, with %d keys left", len(x.drain) > 0, len(x.m.keys))
	}
	return x.wrong
}

// rest returns why a queue at which nothing moves has not done its work.
func (x *exploredQueue) rest() error {
	for key, owed := range x.owed {
		if owed {
			return fmt.Errorf("an event of %s is lost", keyName(byte(key)))
		}
	}
	if len(x.m.keys) > 0 {
		return fmt.Errorf("the queue still has %d keys", len(x.m.keys))
	}
	return nil
}

func (x *exploredQueue) key(to []byte) []byte {
	to = x.q.Memory(to, func(key byte) byte { return 'a' + key })
	var workers []string
	for i := range x.workers {
		w := &x.workers[i]
		b := []byte{'w', 0, 0, 0}
		if w.busy {
			b[1], b[3] = 'a'+w.work.Key, byte(w.work.Priority) // a failure asks for the same priority
		}
		for i, set := range []bool{w.cancel != nil, w.retried && w.busy, w.ended} {
			if set {
				b[2] |= 1 << i
			}
		}
		workers = append(workers, string(b))
	}
	slices.Sort(workers) // workers are equal
	to = append(to, strings.Join(workers, "")...)
	for key := range byte(exploredKeys) {
		to = append(to, byte(min(x.m.fails[key], 2)))
		if x.owed[key] {
			to = append(to, '!')
		}
	}
	if x.drain != nil {
		to = append(to, 'd')
	}
	return to
}

// parts returns what the queue and the workers have.
func (x *exploredQueue) parts() (lines []string) {
	for key, owed := range x.owed {
		is := "not pending"
		if k := x.m.find(byte(key)); k != nil && k.pending != "" {
			is = k.pending
		}
		lines = append(lines, fmt.Sprintf("key %s: %s, an event has no reconcile: %v", keyName(byte(key)), is, owed))
	}
	for i, w := range x.workers {
		is := map[bool]string{true: "waits for a key"}[w.cancel != nil] + map[bool]string{true: "has ended"}[w.ended]
		if w.busy {
			is = "reconciles " + keyName(w.work.Key)
		}
		lines = append(lines, fmt.Sprintf("worker %d: %s", i, cmp.Or(is, "idle")))
	}
	return lines
}

// queueMachine returns the world of a queue with two keys and two workers.
func queueMachine(v queueVariant) explore.Machine[*exploredQueue] {
	always := func(*exploredQueue) bool { return true }
	open := func(x *exploredQueue) bool { return !x.m.closed }
	var steps []explore.Step[*exploredQueue]
	for i := range 2 {
		busy := func(x *exploredQueue) bool { return x.workers[i].busy }
		failing := func(x *exploredQueue) bool { return busy(x) && !x.workers[i].retried }
		steps = append(steps,
			explore.Fair(fmt.Sprintf("worker %d succeeds", i), busy, func(x *exploredQueue) { x.done(&x.workers[i]) }),
			explore.Do(fmt.Sprintf("worker %d fails", i), failing, func(x *exploredQueue) {
				w := &x.workers[i]
				w.retried = true
				if x.variant == forgetsFailures {
					x.owed[w.work.Key] = true
				} else {
					x.add(w.work.Key, workqueue.Item{RateLimited: true, Priority: w.work.Priority})
				}
			}))
	}
	steps = append(steps,
		explore.Fair("a worker calls Get", func(x *exploredQueue) bool { return x.worker((*exploredWorker).idle) != nil }, (*exploredQueue).get),
		explore.Fair("a second passes", func(x *exploredQueue) bool { return len(x.m.all("delayed")) > 0 }, func(x *exploredQueue) {
			<-time.After(time.Second)
			x.m.advance(time.Second)
			x.deliver()
		}),
		explore.Do("the context of a waiting Get ends", func(x *exploredQueue) bool {
			return x.worker(func(w *exploredWorker) bool { return w.cancel != nil }) != nil
		}, func(x *exploredQueue) {
			x.worker(func(w *exploredWorker) bool { return w.cancel != nil }).cancel()
			x.deliver()
		}),
		explore.Do("ShutDown", open, func(x *exploredQueue) { x.shutDown(); x.q.ShutDown(); x.deliver() }),
		explore.Do("ShutDownWithDrain", open, func(x *exploredQueue) {
			x.shutDown()
			x.drain = make(chan error, 1)
			go func() { x.drain <- x.q.ShutDownWithDrain(context.Background()) }()
			x.deliver()
		}))
	for key := range byte(exploredKeys) {
		for _, a := range []struct {
			how  string
			item workqueue.Item
		}{
			{"", workqueue.Item{}},
			{" with a priority and a cause", workqueue.Item{Priority: 1, Cause: workqueue.Cause{Event: "update"}}},
			{" after a second", workqueue.Item{After: time.Second}},
			{" after two seconds", workqueue.Item{After: 2 * time.Second}},
		} {
			steps = append(steps, explore.Do("add "+keyName(key)+a.how, always, func(x *exploredQueue) { x.add(key, a.item) }))
		}
	}
	return explore.Machine[*exploredQueue]{
		New: func() *exploredQueue { return newExploredQueue(v) }, Close: (*exploredQueue).close, Steps: steps,
		Key: (*exploredQueue).key, Check: (*exploredQueue).check, Rest: (*exploredQueue).rest, FairSteps: 30,
		Lines: (*exploredQueue).parts,
	}
}

// TestExplore makes every order of adds, hand-outs, ends, failures, pauses and shutdowns.
func TestExplore(t *testing.T) {
	explore.Test(t, queueMachine(0).World(), explore.Options{Depth: 30, States: 5_000, Around: explore.InBubbles(t)})
}

// Each variant breaks a rule that a queue or its caller has broken once. The exploration must find it. They are
// counterexamples of leat explore.
func TestExploreFindsBrokenRules(t *testing.T) {
	for v, c := range [][4]string{
		losesEvents:      {"is lost", "lost_event", "An event of a key that is in work is dropped, as if the reconcile would see it.", "1"},
		endsEarly:        {"two workers have ", "early_done", "A worker calls Done before its reconcile.", "1"},
		forgetsFailures:  {"is lost", "forgotten_failure", "A reconcile that fails asks for no retry.", "1"},
		drainsWithoutEnd: {"is lost", "early_end", "A worker ends at the shutdown, although keys are ready.", "5"},
	} {
		if c[0] != "" {
			o := explore.Options{Depth: 8, States: 50_000, Around: explore.InBubbles(t)}
			queueMachine(queueVariant(v)).Show(t, o, c[0], "../docs/counterexamples/"+c[1]+".txt", c[2], "No event is lost, and two workers never have the same key (package workqueue, "+c[3]+").")
		}
	}
}
