//go:build !race

// The explored pipeline has no goroutines, so the race detector finds nothing here, and it takes eight times as long.

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/explore"
	"github.com/leatproject/leat/internal/runstate"
)

// mostHandlers are the handlers of a run, at most.
const mostHandlers = 2

// run is a pipeline without goroutines. Its steps are calls, and its handlers are coroutines, so that a call of a
// handler can last while other steps happen.
type run struct {
	p        *pipeline[*simulated]
	written  int                   // versions so far
	known    map[string]*simulated // as the queue must know it
	pending  []api.Change[*simulated]
	dirty    bool
	listed   bool
	initial  bool                  // the first list is in the queue, so another list belongs to the initial list too
	cached   map[string]*simulated // as the cache must show it
	version  string                // of cached
	shows    *cache.Snapshot[*simulated]
	handlers []*exploredHandler
	joined   int
	wrong    string
	script   []string                                 // the commands of a transcript that lead to the same changes, since the last batch
	lists    bool                                     // one of script makes the informer list
	lines    []string                                 // of the handlers
	begun    int                                      // the number of lines when the last step began
	breaks   func(*run, *api.Change[*simulated]) bool // a rule that a variant breaks: it drops or alters a change
}

// exploredHandler is a handler, and what it must get.
type exploredHandler struct {
	*simulatedHandler
	r        *run
	name     string
	l        *processListener[*simulated]
	expected map[string][]api.Change[*simulated] // by object; nil for a coalescing handler
	taken    []api.Change[*simulated]            // from the backlog and not delivered yet
	yield    func() bool                         // nil unless the coroutine runs
	next     func() (struct{}, bool)
	stop     func()
}

// silent is a Feed that the test replaces.
type silent struct{ Feed }

func (silent) Logger() *zap.Logger { return zap.NewNop() }

func newRun(breaks func(*run, *api.Change[*simulated]) bool) *run {
	r := &run{known: map[string]*simulated{}, cached: map[string]*simulated{}, breaks: breaks}
	o := Options[*simulated]{Handling: Handling{StuckAfter: -1, CrashOnPanic: true, ResyncPeriod: time.Hour}}
	r.p = newPipeline(o, func(*pipeline[*simulated]) Feed { return silent{} })
	r.p.life = runstate.Running
	r.p.handlers.start = func(l *processListener[*simulated], now time.Time) {
		l.resync.start(now)
		l.start(context.Background(), func(l *processListener[*simulated]) []*group[*simulated] {
			groups := r.p.takeBacklog(l)
			for _, h := range r.handlers {
				if h.l == l {
					for _, g := range groups {
						h.taken = slices.AppendSeq(h.taken, g.all())
					}
				}
			}
			return groups
		})
	}
	cache.AddIndex(r.p.indexer, func(*simulated) []int {
		if s := r.p.indexer.Snapshot(); r.shows != nil && s != r.shows {
			r.fail("a reader sees a part of a batch")
		}
		return nil
	})
	return r
}

func (r *run) fail(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = fmt.Sprintf(format, args...)
	}
}

func (r *run) object(name string, uid types.UID) *simulated {
	o := &simulated{}
	o.Name, o.ResourceVersion, o.UID, o.Spec.Value = name, fmt.Sprint(r.written), uid, r.written
	if uid == "" {
		o.UID = types.UID(name + o.ResourceVersion)
	}
	return o
}

func (r *run) command(format string, args ...any) {
	r.script = append(r.script, fmt.Sprintf(format, args...))
}

// expect notes a change that the queue must make.
func (r *run) expect(c api.Change[*simulated]) { r.pending = append(r.pending, c) }

// becomes notes a new state of an object.
func (r *run) becomes(o *simulated, initial bool) {
	old := r.known[o.Name]
	if old != nil && old.UID != o.UID {
		r.gone(old, true)
		old = nil
	}
	c, verb := api.Change[*simulated]{Type: api.Added, Object: o, InitialList: initial}, "create"
	if old != nil {
		verb = "update"
		c = api.Change[*simulated]{Type: api.Updated, Object: o, Old: old}
	}
	r.known[o.Name] = o
	r.command("%s %s %d", verb, o.Name, o.Spec.Value)
	r.expect(c)
}

func (r *run) gone(last *simulated, unknown bool) {
	delete(r.known, last.Name)
	r.command("delete %s", last.Name)
	r.expect(api.Change[*simulated]{Type: api.Deleted, Object: last, FinalStateUnknown: unknown})
}

// put, remove and list are what a reflector does.
func (r *run) put(name string, recreate bool) {
	uid := types.UID("")
	if old := r.known[name]; old != nil && !recreate {
		uid = old.UID
	}
	o := r.object(name, uid)
	r.becomes(o, false)
	r.p.fifo.Put(o, o.ResourceVersion)
}

func (r *run) remove(name string, another bool) {
	old := r.known[name]
	last := r.object(name, old.UID)
	last.Spec = old.Spec
	if another { // the watch missed a deletion and a creation
		last.UID = "another"
		r.gone(old, true)
	} else {
		r.gone(last, false)
	}
	r.p.fifo.Delete(last, last.ResourceVersion)
}

func (r *run) list(change func(name string, o *simulated) *simulated) {
	first := !r.listed
	r.listed, r.lists, r.initial = true, true, r.initial || first
	if !first {
		r.command("fault outage")
	}
	var list []*simulated
	for _, name := range []string{"a", "b"} {
		if o := change(name, r.known[name]); o != nil {
			list = append(list, o)
		} else if old := r.known[name]; old != nil {
			r.gone(old, true)
		}
	}
	for _, o := range list {
		if r.known[o.Name] != o {
			r.becomes(o, r.initial)
		}
	}
	if first {
		r.command("run")
	} else {
		r.script = append(r.script, "fault compact", "heal", "pass 30s")
	}
	r.p.fifo.Replace(list, fmt.Sprint(r.written))
}

// pop lets the informer process all changes.
func (r *run) pop() {
	r.shows = r.p.indexer.Snapshot()
	for _, h := range r.handlers {
		for _, c := range r.pending {
			if h.expected != nil {
				h.expected[c.Object.Name] = append(h.expected[c.Object.Name], c)
			}
		}
	}
	r.cached, r.version, r.pending, r.dirty, r.initial = maps.Clone(r.known), fmt.Sprint(r.written), nil, false, false
	if err := r.p.fifo.Pop(context.Background(), r.p.process); err != nil {
		r.fail("Pop: %v", err)
	}
	r.shows = nil
}

func (r *run) join(kind string) {
	h := &exploredHandler{simulatedHandler: &simulatedHandler{state: map[api.Key]*simulated{}}, r: r, name: fmt.Sprint("h", r.joined)}
	r.joined++
	r.command("%s", strings.TrimSpace("handler "+h.name+" "+kind))
	if kind != "coalesce" {
		h.expected = map[string][]api.Change[*simulated]{}
		if !r.p.heardAt.IsZero() {
			for name, o := range r.cached {
				h.expected[name] = []api.Change[*simulated]{{Type: api.Added, Object: o, InitialList: true}}
			}
		}
	}
	r.handlers = append(r.handlers, h)
	_, err := r.p.subscribe(h.handle, HandlerOptions{Name: h.name, Coalesce: kind == "coalesce", NonBlocking: kind == "non-blocking"})
	if err != nil {
		r.fail("subscribe: %v", err)
	}
	h.l = r.p.handlers.all[len(r.p.handlers.all)-1]
}

func (r *run) leave(h *exploredHandler) {
	r.command("remove %s", h.name)
	r.p.removeListener(h.l)
	h.end()
	r.handlers = slices.DeleteFunc(r.handlers, func(other *exploredHandler) bool { return other == h })
}

// end lets a call in flight return.
func (h *exploredHandler) end() {
	if h.stop != nil {
		h.stop()
	}
}

// handle is called by the listener. A call lasts until the next step of this handler.
func (h *exploredHandler) handle(n api.Change[*simulated]) {
	if h.l.removed.Load() {
		h.r.fail("%s was called after it was removed", h.name)
	}
	if len(h.taken) > 0 {
		h.taken = h.taken[1:]
	}
	r := h.r
	if r.breaks != nil && !r.breaks(r, &n) {
		return
	}
	r.lines = append(r.lines, fmt.Sprintf("handler    %-12s %s", h.name, textOf(n)))
	if s := r.p.indexer.Snapshot(); r.shows != nil && s == r.shows {
		r.fail("%s is called before the cache shows the change", h.name)
	}
	key := api.KeyOf(n.Object)
	if wrong := illegal(n, h.state[key]); wrong != "" {
		r.fail("%s: %s of %s: %s", h.name, n.Type, n.Object.Name, wrong)
	}
	if h.state[key] = n.Object; n.Type == api.Deleted {
		delete(h.state, key)
	}
	if n.InitialList && runstate.IsClosed(h.l.synced) {
		r.fail("%s gets %s of its initial list after the list has ended", h.name, n.Object.Name)
	}
	if h.expected != nil && !n.Resync {
		h.compare(n)
	}
	if h.yield != nil && !h.yield() {
		h.yield = nil
	}
}

// textOf returns what a handler gets, as a transcript shows it.
func textOf(n api.Change[*simulated]) string {
	value := fmt.Sprint(n.Object.Spec.Value)
	if n.Type == api.Updated {
		value = fmt.Sprintf("%d→%s", n.Old.Spec.Value, value)
	}
	for _, flag := range []struct {
		text string
		set  bool
	}{{" initial", n.InitialList}, {" resync", n.Resync}, {" unknown", n.FinalStateUnknown}} {
		if flag.set {
			value += flag.text
		}
	}
	return fmt.Sprintf("%s %s %s", n.Type, n.Object.Name, value)
}

func (h *exploredHandler) compare(n api.Change[*simulated]) {
	name := n.Object.Name
	expected := append(h.expected[name], api.Change[*simulated]{Object: &simulated{}}) // the last one never comes
	if n.At = (time.Time{}); expected[0] != n {
		h.r.fail("%s gets %s instead of %s", h.name, textOf(n), textOf(expected[0]))
		return
	}
	h.expected[name] = h.expected[name][1:]
}

// step lets the call in flight return and starts the next. Without a call in flight, it does what the listener's
// goroutine does when it wakes.
func (h *exploredHandler) step() {
	if h.next == nil {
		<-h.l.wake
	}
	if h.l.nonBlocking {
		h.l.delivery.Lock()
		h.l.deliverAll()
		return
	}
	if h.next == nil {
		h.next, h.stop = iter.Pull(func(yield func(struct{}) bool) {
			h.yield = func() bool { return yield(struct{}{}) }
			h.l.delivery.Lock()
			h.l.deliverAll()
			h.yield = nil
		})
	}
	if _, more := h.next(); !more {
		h.next, h.stop = nil, nil
	}
}

func (h *exploredHandler) busy() bool { return h.next != nil || len(h.l.wake) > 0 }

// backlogged reports whether the backlog has a group, perhaps without notifications.
func (h *exploredHandler) backlogged() bool {
	switch b := h.l.backlog.(type) {
	case *fullBacklog[*simulated]:
		return len(b.all) > 0
	case *coalescingBacklog[*simulated]:
		return b.complete || b.initial || b.resync || len(b.slots) > 0
	}
	return false
}

// exploredSteps are all steps. Each has a condition, and a line in the form of a transcript.
var exploredSteps = func() (all []explore.Step[*run]) {
	always := func(*run) bool { return true }
	listed := func(r *run) bool { return r.listed }
	write := func(line string, can func(*run) bool, do func(*run)) {
		all = append(all, explore.Step[*run]{Name: line, Can: can, Do: func(r *run) { r.written++; r.dirty = true; do(r) }})
	}
	write("list, nothing new", always, func(r *run) { r.list(func(_ string, o *simulated) *simulated { return o }) })
	write("list, nothing left", always, func(r *run) { r.list(func(string, *simulated) *simulated { return nil }) })
	for _, recreated := range []bool{false, true} {
		write(fmt.Sprintf("list, a changed (recreated %v)", recreated), always, func(r *run) {
			both := recreated && !r.listed
			r.list(func(name string, o *simulated) *simulated {
				switch {
				case name == "b" && !both:
					return o
				case o != nil && !recreated:
					return r.object(name, o.UID)
				}
				return r.object(name, "")
			})
		})
	}
	for _, name := range []string{"a", "b"} {
		exists := func(r *run) bool { return r.known[name] != nil }
		write("put "+name, listed, func(r *run) { r.put(name, false) })
		write("delete "+name+" ; create "+name, exists, func(r *run) { r.put(name, true) })
		write("delete "+name, exists, func(r *run) { r.remove(name, false) })
		write("delete another "+name, exists, func(r *run) { r.remove(name, true) })
	}
	write("bookmark", func(r *run) bool { return r.listed && !r.dirty }, func(r *run) { r.p.fifo.Bookmark(fmt.Sprint(r.written)) })
	all = append(all, explore.Step[*run]{Name: "resync", Can: listed, Do: func(r *run) {
		for _, h := range r.handlers {
			h.l.resync.next = time.Now()
		}
		r.dirty = true
		r.p.fifo.Resync()
	}})
	all = append(all, explore.Step[*run]{Name: "batch", Can: func(r *run) bool { return r.dirty }, Do: (*run).pop, Fair: true})
	for _, kind := range []string{"", "coalesce", "non-blocking"} {
		all = append(all, explore.Step[*run]{
			Name: "handler " + kind, Can: func(r *run) bool { return len(r.handlers) < mostHandlers && r.joined < 3 }, Do: func(r *run) { r.join(kind) },
		})
	}
	for i := range mostHandlers {
		all = append(all,
			explore.Step[*run]{
				Name: fmt.Sprint("release ", i), Can: func(r *run) bool { return i < len(r.handlers) && r.handlers[i].busy() },
				Do: func(r *run) { r.handlers[i].step() }, Fair: true,
			},
			explore.Step[*run]{Name: fmt.Sprint("remove ", i), Can: func(r *run) bool { return i < len(r.handlers) }, Do: func(r *run) { r.leave(r.handlers[i]) }})
	}
	for i := range all {
		do := all[i].Do
		all[i].Do = func(r *run) { r.begun = len(r.lines); do(r) }
	}
	return all
}()

// check compares the real state with the expected one.
func (r *run) check() error {
	s := r.p.indexer.Snapshot()
	if s.Len() != len(r.cached) || s.ResourceVersion() != r.version {
		r.fail("the cache has %d objects at version %q instead of %d at %q", s.Len(), s.ResourceVersion(), len(r.cached), r.version)
	}
	for key, o := range s.All() {
		if r.cached[key.Name] != o {
			r.fail("the cache has another state of %s", key.Name)
		}
	}
	if r.p.fifo.KnownLen() != len(r.known) {
		r.fail("the queue knows %d objects instead of %d", r.p.fifo.KnownLen(), len(r.known))
	}
	if left := r.p.fifo.Len(); left > 0 && !r.dirty {
		r.fail("the queue has changes of %d objects after a batch", left)
	}
	if len(r.p.handlers.all) != len(r.handlers) {
		r.fail("a handler that left is still registered")
	}
	for _, h := range r.handlers {
		if r.dirty || h.busy() {
			continue
		}
		for key, o := range h.state {
			if r.cached[key.Name] != o {
				r.fail("%s has another state of %s than the cache", h.name, key.Name)
			}
		}
		if len(h.state) != len(r.cached) || h.backlogged() {
			r.fail("%s has %d objects instead of %d, and a backlog: %v", h.name, len(h.state), len(r.cached), h.backlogged())
		}
		if r.listed && !runstate.IsClosed(h.l.synced) {
			r.fail("%s never gets its initial list", h.name)
		}
	}
	if r.wrong != "" {
		return errors.New(r.wrong)
	}
	return nil
}

// key describes the memory of the run. Objects have the number of their first occurrence, because only their identity
// matters.
func (r *run) key(to []byte) []byte {
	objects, uids := map[*simulated]byte{}, map[types.UID]byte{}
	object := func(o *simulated) {
		if o == nil {
			to = append(to, 0)
			return
		}
		if objects[o] == 0 {
			objects[o] = byte(len(objects) + 1)
			if uids[o.UID] == 0 {
				uids[o.UID] = byte(len(uids) + 1)
			}
		}
		to = append(to, o.Name[0], objects[o], uids[o.UID])
	}
	flag := func(f bool) {
		to = append(to, map[bool]byte{true: 1}[f])
	}
	change := func(c api.Change[*simulated]) {
		to = append(to, byte(c.Type))
		flag(c.FinalStateUnknown)
		flag(c.InitialList)
		flag(c.Resync)
		object(c.Object)
		object(c.Old)
	}
	for _, name := range []string{"a", "b"} {
		object(r.known[name])
		object(r.cached[name])
		to = append(to, '|')
	}
	for _, c := range r.pending {
		change(c)
	}
	flag(r.dirty)
	flag(r.listed)
	flag(r.initial)
	flag(r.p.heardAt.IsZero())
	flag(r.wrong != "")
	flag(reflect.ValueOf(r.p.fifo).Elem().FieldByName("resync").Bool())
	to = append(to, byte(r.joined))
	for _, h := range r.handlers {
		to = append(to, '#')
		flag(h.l.coalesce)
		flag(h.l.nonBlocking)
		flag(runstate.IsClosed(h.l.synced))
		flag(h.next != nil)
		flag(len(h.l.wake) > 0)
		flag(h.l.resync.due(time.Now()))
		for _, name := range []string{"a", "b"} {
			object(h.state[api.Key{Name: name}])
		}
		for _, c := range h.taken {
			change(c)
		}
		for _, name := range []string{"a", "b"} {
			to = append(to, '/')
			for _, c := range h.expected[name] {
				change(c)
			}
		}
		to = append(to, '/')
		switch b := h.l.backlog.(type) {
		case *fullBacklog[*simulated]:
			for _, g := range b.all {
				flag(g.completes)
				for c := range g.all() {
					change(c)
				}
			}
			flag(b.resync)
		case *coalescingBacklog[*simulated]:
			flag(b.initial)
			flag(b.resync)
			flag(b.complete)
			for _, key := range b.order {
				to = append(to, key.Name[0])
				if s := b.slots[key]; s != nil {
					for _, c := range []*api.Change[*simulated]{s.deletion, s.newest} {
						if to = append(to, ';'); c != nil {
							change(*c)
						}
					}
				}
			}
		}
	}
	return to
}

// pipelineWorld is a queue, a cache and handlers. breaks is nil, or the rule that a variant breaks.
func pipelineWorld(breaks func(*run, *api.Change[*simulated]) bool) explore.Machine[*run] {
	m := explore.Machine[*run]{
		New: func() *run { return newRun(breaks) }, Steps: exploredSteps, Key: (*run).key, Check: (*run).check, FairSteps: 40,
		First: []explore.Step[*run]{{Name: "run", Do: func(*run) {}}},
		Lines: func(r *run) []string { return r.lines[r.begun:] },
		Close: func(r *run) {
			for _, h := range r.handlers {
				h.end()
			}
		},
	}
	list := slices.IndexFunc(exploredSteps, func(s explore.Step[*run]) bool { return strings.HasPrefix(s.Name, "list, a") })
	for _, s := range exploredSteps {
		if !strings.HasPrefix(s.Name, "handler") {
			continue
		}
		m.First = append(m.First, explore.Step[*run]{Name: "run ; list a ; " + s.Name + " ; all calls return", Do: func(r *run) {
			exploredSteps[list].Do(r)
			s.Do(r)
			for next := 0; next >= 0; {
				if next = slices.IndexFunc(exploredSteps, func(s explore.Step[*run]) bool { return s.Fair && s.Can(r) }); next >= 0 {
					exploredSteps[next].Do(r)
				}
			}
		}})
	}
	return m
}

// TestExplore makes every order of changes, lists, batches, calls of handlers, joins and leaves.
func TestExplore(t *testing.T) {
	explore.Test(t, pipelineWorld(nil).World(), explore.Options{Depth: 10, States: 20_000})
}

// BrokenRule is a rule that leat, or another informer, has broken once. The exploration must find it.
type BrokenRule struct {
	Name   string // of its transcript
	Rule   string // how it is broken
	breaks func(*run, *api.Change[*simulated]) bool
	want   string // in the failure
}

// BrokenRules are the variants of TestExploreFindsBrokenRules.
var BrokenRules = []BrokenRule{
	{"dropped_tombstone", "a deletion is dropped if the final state is unknown", func(_ *run, c *api.Change[*simulated]) bool { return !c.FinalStateUnknown }, "another state of a than the cache"},
	{"hidden_recreation", "a list hides that an object was created again", func(r *run, c *api.Change[*simulated]) bool {
		return c.Type != api.Deleted || !c.FinalStateUnknown || r.known[c.Object.Name] == nil
	}, "an Added of an object that the handler has"},
	{"known_final_state", "a final state that is unknown looks known", func(_ *run, c *api.Change[*simulated]) bool {
		c.FinalStateUnknown = false
		return true
	}, "h0 gets Deleted a 1 instead of Deleted a 1 unknown"},
}

// Counterexample returns a shortest way to a failure, and why it is one. The way is a transcript with what the handlers
// get: with the broken rule, and with the rule. The way itself is a counterexample of leat explore.
func (b BrokenRule) Counterexample(t *testing.T) (why, broken, whole string) {
	m := pipelineWorld(b.breaks)
	report := explore.Finds(t, m.World(), explore.Options{Depth: 8, States: 50_000, Workers: 1}, b.want) // one worker, so that the steps are always the same
	var steps []explore.Step[*run]
	var shown []string
	bad, good := newRun(b.breaks), newRun(nil)
	for i, line := range explore.Replay(m.World(), report.Choices) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "> "), "\n")
		from := m.Steps
		if i == 0 {
			from = m.First
		}
		s := from[slices.IndexFunc(from, func(s explore.Step[*run]) bool { return s.Name == name })]
		s.Do(bad)
		if s.Can == nil || s.Can(good) {
			s.Do(good)
		}
		steps = append(steps, s)
		shown = append(shown, stepWords.Replace(name)+"\n"+bad.sides(good))
	}
	why, _, _ = strings.Cut(report.Failure.Error(), "\n")
	report.Failure = errors.New(strings.ReplaceAll(why, "h0", "the handler"))
	explore.Save(t, "../docs/counterexamples/"+b.Name+".txt", strings.ToUpper(b.Rule[:1])+b.Rule[1:]+".", "Each handler gets a legal history of each object, and ends with the state of the cache (package informer, 1).", report, shown)
	m.Close(bad)
	m.Close(good)
	return why, newRun(b.breaks).transcript(steps), newRun(nil).transcript(steps)
}

// stepWords are the names of steps for a student.
var stepWords = strings.NewReplacer("run ; list a ; handler  ; all calls return", "the client has listed a, and a handler has got it",
	"list, nothing left", "the client lists again: nothing is left", "list, a changed (recreated true)", "the client lists again: a was deleted and created again",
	"delete another a", "the watch brings a deletion of a, which was created again unseen", "batch", "the informer takes the batch: first the cache, then the handler's backlog",
	"release 0", "the handler is called")

// sides returns what each part has, and what the handler of a run without the broken rule has.
func (r *run) sides(whole *run) string {
	text := func(o *simulated) string { return fmt.Sprintf(" %s of version %s", o.Name, o.ResourceVersion) }
	var server, shows string
	var queue []string
	for _, name := range []string{"a", "b"} {
		if o := r.known[name]; o != nil {
			server += text(o)
		}
		if o, ok := r.p.indexer.Get(api.Key{Name: name}); ok {
			shows += text(o)
		}
	}
	for _, c := range r.pending {
		queue = append(queue, textOf(c))
	}
	out := fmt.Sprintf("   server:%s\n   queue: %s\n   cache:%s", cmp.Or(server, " nothing"), cmp.Or(strings.Join(queue, ", "), "nothing"), cmp.Or(shows, " nothing"))
	for i, r := range []*run{r, whole} {
		var has, got string
		for _, o := range r.handlers[0].state {
			has += text(o)
		}
		for _, line := range r.lines[r.begun:] {
			got += ", gets " + strings.Join(strings.Fields(line)[2:], " ")
		}
		out += fmt.Sprintf("\n   handler%s:%s%s", []string{"", " with the rule"}[i], cmp.Or(has, " nothing"), got)
	}
	return out
}

// transcript makes steps and returns them as a transcript, in which all calls of handlers return at once.
func (r *run) transcript(steps []explore.Step[*run]) string {
	var out strings.Builder
	shown := 0
	batch := slices.IndexFunc(exploredSteps, func(s explore.Step[*run]) bool { return s.Name == "batch" })
	for _, s := range append(steps, exploredSteps[batch]) { // the failure may be in the fair steps that follow
		if s.Can != nil && !s.Can(r) {
			continue // a call that has returned
		}
		s.Do(r)
		if r.dirty {
			continue
		}
		for _, s := range exploredSteps {
			for strings.HasPrefix(s.Name, "release ") && s.Can(r) {
				s.Do(r)
			}
		}
		if !r.lists && len(r.script) > 1 {
			r.script = []string{"together " + strings.Join(r.script, " ; ")}
		}
		for _, command := range r.script {
			fmt.Fprintln(&out, ">", command)
		}
		lines := r.lines[shown:]
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(objectOf(a), objectOf(b)) })
		for _, line := range lines {
			fmt.Fprintln(&out, "         ", line)
		}
		r.script, r.lists, shown = nil, false, len(r.lines)
	}
	return out.String()
}

// objectOf returns the handler and the object of a line.
func objectOf(line string) string {
	words := strings.Fields(line)
	return words[1] + words[3]
}
