package merge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/explore"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/scopes/internal/merge"
)

// The object of the exploration, and how often it may change.
var only = api.Key{Namespace: "ns", Name: "o"}

const mostVersions = 5

// streams are two or three scopes of one object, which moves between them, and their consumer.
type streams struct {
	server  server
	queue   *queue
	set     *merge.Merger[*thing]
	scopes  []*modelScope
	have    *thing
	left    string // the UID of a deletion that the consumer has got
	overdue bool   // a deletion has waited for long enough, so a move may be a deletion and an addition
	variant variant
	wrong   error
}

// variant is a rule that a test breaks.
type variant int

const (
	_      variant = iota
	early          // a stream shows a version before the change of this version
	forget         // the merger forgets when streams lost objects
)

// streamsMachine has streams that select two colors. Color 0 selects both.
func streamsMachine(v variant, colors ...int) explore.Machine[*streams] {
	m := explore.Machine[*streams]{
		New: func() *streams {
			w := &streams{server: server{objects: map[api.Key]serverObject{}}, queue: deltafifo.New[*thing](), variant: v}
			w.set = merge.New(w.queue)
			w.server.write(only, 1, false)
			for _, color := range colors {
				w.scopes = append(w.scopes, &modelScope{Stream: w.set.Add(only.Namespace, api.Selector{}), color: color})
			}
			w.set.Complete()
			for i := range w.scopes {
				w.list(i)
			}
			w.pop()
			return w
		},
		Close: func(w *streams) { w.set.Stop() },
		Check: func(w *streams) error { return w.wrong },
		Rest:  (*streams).rest, FairSteps: 20,
		Key: func(w *streams, to []byte) []byte {
			memory, _ := w.set.Memory()
			to = fmt.Append(to, memory, w.have, w.left, w.overdue, w.wrong)
			for _, e := range w.server.history {
				if to = append(to, '|'); e.new != nil {
					to = fmt.Append(to, e.new.thing, e.new.color)
				}
			}
			for _, s := range w.scopes {
				to = fmt.Append(to, s.reached, " ")
			}
			return fmt.Append(to, w.queue.Len())
		},
		Lines: (*streams).parts,
	}
	exists := func(w *streams) bool { _, ok := w.server.objects[only]; return ok && w.server.version < mostVersions }
	for color := 1; color <= 2; color++ {
		m.Steps = append(m.Steps,
			explore.Do(fmt.Sprint("a write with the color ", color), exists, func(w *streams) { w.server.write(only, color, false) }),
			explore.Do(fmt.Sprint("a new object with the color ", color), exists, func(w *streams) { w.server.write(only, color, true) }))
	}
	m.Steps = append(m.Steps, explore.Do("a deletion", exists, func(w *streams) { w.server.delete(only) }))
	for i := range colors {
		behind := func(w *streams) bool { return w.scopes[i].reached < w.server.version }
		m.Steps = append(m.Steps,
			explore.Fair(fmt.Sprintf("stream %d gets the next change", i), behind, func(w *streams) { w.next(i) }),
			explore.Fair(fmt.Sprintf("stream %d gets a bookmark", i), func(w *streams) bool {
				s := w.scopes[i]
				_, version := s.Objects()
				return version != strconv.Itoa(s.reached)
			}, func(w *streams) { w.scopes[i].Bookmark(strconv.Itoa(w.scopes[i].reached)) }),
			explore.Do(fmt.Sprintf("stream %d lists", i), behind, func(w *streams) { w.list(i) }))
	}
	if v == forget {
		for i := range m.Steps {
			do := m.Steps[i].Do
			m.Steps[i].Do = func(w *streams) { do(w); w.set.ForgetLost() }
		}
	}
	m.Steps = append(m.Steps,
		explore.Fair("a held deletion is overdue", func(w *streams) bool { _, waits := w.set.Memory(); return waits > 0 }, func(w *streams) {
			_, waits := w.set.Memory()
			w.overdue = true
			fixture.Pass(waits)
		}),
		explore.Fair("a batch", func(w *streams) bool { _, next := w.state(); return next }, (*streams).pop))
	return m
}

// parts returns what the server, each stream and the consumer have.
func (w *streams) parts() []string {
	lines := []string{fmt.Sprintf("server: version %d, the object exists: %v", w.server.version, w.server.objects[only].thing != nil)}
	for i, s := range w.scopes {
		lines = append(lines, fmt.Sprintf("stream %d: gets the color %d, has reached version %d", i, s.color, s.reached))
	}
	return append(lines, strings.ReplaceAll(fmt.Sprint("consumer: ", w.have), "<nil>", "nothing"))
}

// state returns the object that the streams should show, and whether the consumer lacks a batch.
func (w *streams) state() (o *thing, next bool) {
	now, _ := w.queue.Get(only)
	stale := now != w.have
	for _, s := range w.scopes {
		_, version := s.Objects()
		stale = stale || s.Version() != version
	}
	if o, ok := w.server.objects[only]; ok && w.selected(o) {
		return o.thing, stale
	}
	return nil, stale
}

func (w *streams) selected(o serverObject) bool {
	return slices.ContainsFunc(w.scopes, func(s *modelScope) bool { return s.selects(only, &o) })
}

// next gives a stream one change, if it selects the object before or after it.
func (w *streams) next(i int) {
	s := w.scopes[i]
	e := w.server.history[s.reached]
	s.reached++
	now := strconv.Itoa(s.reached)
	if w.variant == early {
		s.Bookmark(now)
		w.pop()
	}
	switch before, after := s.selects(e.key, e.old), s.selects(e.key, e.new); {
	case after:
		decoded := *e.new.thing
		s.Put(&decoded, now)
	case before:
		last := *e.old.thing
		last.version = now
		s.Delete(&last, now)
	}
}

func (w *streams) list(i int) {
	s := w.scopes[i]
	var list []*thing
	if o, ok := w.server.objects[only]; ok && s.selects(only, &o) {
		item := *o.thing
		list = append(list, &item)
		if known, ok := s.Get(only); ok && known.version == item.version {
			list[0] = known
		}
	}
	s.reached, s.listed = w.server.version, true
	s.Replace(list, strconv.Itoa(s.reached))
}

func (w *streams) fail(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf(format, args...)
	}
}

func (w *streams) pop() {
	w.queue.Resync() // so that there is a batch
	if err := w.queue.Pop(context.Background(), w.apply); err != nil {
		w.fail("Pop: %v", err)
	}
}

// apply checks the history of the object, and that the version of a batch is not ahead of the object.
func (w *streams) apply(b batch) {
	b.Note.(*merge.State).Applied()
	for _, o := range b.Objects {
		for _, c := range o.Changes {
			switch {
			case c.Type == api.Added && w.have != nil, c.Type != api.Added && w.have == nil:
				w.fail("%v of %v, and the consumer has %v", c.Type, c.Object, w.have)
			case c.Type == api.Added && c.Object.uid == w.left && !w.overdue:
				w.fail("%v was deleted and added instead of moved", c.Object)
			case c.Type != api.Added && c.Object.uid != w.have.uid:
				w.fail("%v of %v, and the consumer has another object: %v", c.Type, c.Object, w.have)
			case c.Type == api.Updated && (c.Old != w.have || numberOf(c.Object) < numberOf(w.have)):
				w.fail("an update from %v to %v, and the consumer has %v", c.Old, c.Object, w.have)
			}
			if w.have = c.Object; c.Type == api.Deleted {
				w.have, w.left = nil, c.Object.uid
			}
		}
	}
	if shown := number(b.ResourceVersion); !w.overdue && !w.possible(shown) {
		w.fail("the batch has the version %d, and the consumer has %v", shown, w.have)
	}
}

// possible reports whether the streams could show the consumer's object at a version, or at a later one.
func (w *streams) possible(version int) bool {
	for ; version <= w.server.version; version++ {
		o, exists := w.server.at(version)[only]
		shown := exists && w.selected(o)
		if !shown && w.have == nil || shown && w.have != nil && o.thing.version == w.have.version {
			return true
		}
	}
	return false
}

func (w *streams) rest() error {
	if want, _ := w.state(); (want == nil) != (w.have == nil) || want != nil && want.version != w.have.version {
		return errors.New("the consumer does not have the state of the server")
	}
	return nil
}

// TestExplore makes every order of writes, moves, deletions, events, lists, waits and batches, for two streams that do
// not overlap, for two that do, and for three.
func TestExplore(t *testing.T) {
	for _, colors := range [][]int{{1, 2}, {0, 2}, {1, 2, 0}} {
		t.Run(fmt.Sprint(colors), func(t *testing.T) {
			explore.Test(t, streamsMachine(0, colors...).World(), explore.Options{Depth: 30, States: 3_000, Around: explore.InBubbles(t)})
		})
	}
}

// The exploration must find a stream that shows a version before it has the change of this version, and a return that
// is shown as a deletion and an addition.
func TestExploreFindsBrokenRules(t *testing.T) {
	o := explore.Options{Depth: 30, States: 3_000, Around: explore.InBubbles(t)}
	streamsMachine(early, 1, 2).Show(t, o, "and the consumer has", "../../../../docs/counterexamples/version_ahead.txt", "A stream shows a version before it has the change of this version.", "The version of a batch is not ahead of its objects (package scopes, 5).")
	streamsMachine(forget, 1, 2).Show(t, o, "was deleted and added instead of moved", "../../../../docs/counterexamples/forgotten_loss.txt", "The merger forgets at which version a stream lost an object.", "If an object returns to a scope that had lost it, handlers get an update (package scopes, 2).")
}
