package deltafifo_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/runstate"
)

// model is a simple implementation of a DeltaFIFO that ignores cost.
type model struct {
	noReuse bool
	known   map[api.Key]*thing
	events  []delta // since the last Pop, in their order
	version string
	listed  bool
	dirty   bool
	first   bool
	resync  bool
}

func (m *model) record(d delta) { m.events, m.dirty = append(m.events, d), true }

func (m *model) reach(version string) {
	if version != "" && version != m.version {
		m.version, m.dirty = version, true
	}
}

func (m *model) put(o *thing, kind deltafifo.DeltaType) {
	key := api.KeyOf(o)
	old := m.known[key]
	if old != nil && old.uid != "" && o.uid != "" && old.uid != o.uid {
		m.record(delta{Type: deltafifo.Deleted, Object: old, FinalStateUnknown: true})
		old = nil
	}
	if kind == 0 {
		kind = deltafifo.Updated
		if old == nil {
			kind = deltafifo.Added
		}
	}
	m.known[key] = o
	m.record(delta{Type: kind, Object: o, InitialList: m.first && kind == deltafifo.Listed})
}

func (m *model) delete(key api.Key, last *thing) {
	old := m.known[key]
	if old == nil {
		return
	}
	d := delta{Type: deltafifo.Deleted, Object: last}
	if last == nil || old.uid != "" && last.uid != "" && last.uid != old.uid {
		d.Object, d.FinalStateUnknown = old, true
	}
	delete(m.known, key)
	m.record(d)
}

func (m *model) replace(list []*thing, version string, reuse bool) {
	if !m.listed {
		m.listed, m.first = true, true
	}
	keys := slices.SortedFunc(maps.Keys(m.known), func(a, b api.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range keys {
		if !slices.ContainsFunc(list, func(o *thing) bool { return api.KeyOf(o) == key }) {
			m.delete(key, nil)
		}
	}
	for _, o := range list {
		old := m.known[api.KeyOf(o)]
		if reuse && old != nil && o.uid != "" && o.version != "" && old.uid == o.uid && old.version == o.version {
			continue
		}
		m.put(o, deltafifo.Listed)
	}
	m.version, m.dirty = version, true
}

// batch returns the batch of the next Pop: the events grouped by object, in the order of the first event of each.
func (m *model) batch() batch {
	b := batch{ResourceVersion: m.version, InitialList: m.first, Resync: m.resync}
	for _, d := range m.events {
		key := api.KeyOf(d.Object)
		i := slices.IndexFunc(b.Objects, func(o deltafifo.ObjectDeltas[*thing]) bool { return o.Key == key })
		if i < 0 {
			i = len(b.Objects)
			b.Objects = append(b.Objects, deltafifo.ObjectDeltas[*thing]{Key: key})
		}
		b.Objects[i].Deltas = append(b.Objects[i].Deltas, d)
	}
	m.events, m.dirty, m.first, m.resync = nil, false, false, false
	return b
}

// consumer applies deltas to its objects, and fails if the history is not legal.
type consumer struct {
	t       testing.TB
	objects map[api.Key]*thing
	initial int // number of batches that completed the first list
}

func (c *consumer) apply(b batch) {
	if b.InitialList {
		c.initial++
	}
	for _, o := range b.Objects {
		require.NotEmpty(c.t, o.Deltas)
		for _, d := range o.Deltas {
			require.Equal(c.t, o.Key, api.KeyOf(d.Object))
			c.applyDelta(o.Key, d)
		}
	}
}

func (c *consumer) applyDelta(key api.Key, d delta) {
	old, exists := c.objects[key]
	if exists && old.uid != "" && d.Object.uid != "" {
		require.Equal(c.t, old.uid, d.Object.uid, "%s: another UID without the deletion of the old one", line(d))
	}
	switch d.Type {
	case deltafifo.Added:
		require.False(c.t, exists, "%s: it exists", line(d))
	case deltafifo.Updated:
		require.True(c.t, exists, "%s: it does not exist", line(d))
	case deltafifo.Deleted:
		require.True(c.t, exists, "%s: it does not exist", line(d))
		delete(c.objects, key)
		return
	case deltafifo.Listed:
	default:
		c.t.Fatalf("%s: no such type", line(d))
	}
	require.False(c.t, d.FinalStateUnknown, line(d))
	c.objects[key] = d.Object
}

// script reads operations from bytes, for the fuzz target and the random test.
type script struct{ data []byte }

func (s *script) next(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := int(s.data[0])
	s.data = s.data[1:]
	return b % n
}

// object returns a random state. There are few keys, UIDs and versions, so that they collide often.
func (s *script) object() *thing {
	return &thing{
		namespace: []string{"", "ns", "other"}[s.next(3)],
		name:      string(rune('a' + s.next(5))),
		uid:       []string{"", "1", "2", "1", "2"}[s.next(5)],
		version:   []string{"", "1", "2", "3", "4"}[s.next(5)],
	}
}

// runOperations makes the same operations on a queue and on its model, and compares them at every step.
func runOperations(t testing.TB, data []byte) {
	s := &script{data: data}
	o := deltafifo.Options{NoReuse: s.next(2) == 1}
	q := deltafifo.New[*thing](o)
	m := &model{noReuse: o.NoReuse, known: map[api.Key]*thing{}}
	c := &consumer{t: t, objects: map[api.Key]*thing{}}
	for version := 1; len(s.data) > 0; version++ {
		step(t, s, q, m, c, strconv.Itoa(version))
		require.Equal(t, len(m.known), q.KnownLen())
		for key, want := range m.known {
			got, ok := q.Get(key)
			require.True(t, ok)
			require.Same(t, want, got)
		}
	}
	q.Bookmark("drained") // so that there is something to pop
	require.NoError(t, q.Pop(t.Context(), c.apply))
	require.Equal(t, m.known, c.objects, "after the last Pop, the consumer must have all known objects")
	require.LessOrEqual(t, c.initial, 1)
	require.Equal(t, m.listed, runstate.IsClosed(q.Synced()))
}

func step(t testing.TB, s *script, q *queue, m *model, c *consumer, version string) {
	switch s.next(12) {
	case 0, 1, 2, 3:
		o := s.object()
		q.Put(o, version)
		m.put(o, 0)
		m.reach(version)
	case 4, 5:
		o := s.object()
		q.Delete(o, version)
		m.delete(api.KeyOf(o), o)
		m.reach(version)
	case 6:
		key := api.KeyOf(s.object())
		q.DeleteKey(key, version)
		m.delete(key, nil)
		m.reach(version)
	case 7, 8:
		list := make([]*thing, s.next(8))
		for i := range list {
			list[i] = s.object()
		}
		if s.next(5) == 0 {
			q.Overwrite(list, version)
			m.replace(list, version, false)
		} else {
			q.Replace(list, version)
			m.replace(list, version, !m.noReuse)
		}
	case 9:
		version = []string{"", version}[s.next(2)]
		q.Bookmark(version)
		m.reach(version)
	case 10:
		q.Resync()
		m.resync, m.dirty = true, true
	case 11:
		popAndCompare(t, q, m, c)
	}
}

func popAndCompare(t testing.TB, q *queue, m *model, c *consumer) {
	if !m.dirty {
		return
	}
	want := m.batch()
	require.NoError(t, q.Pop(t.Context(), func(got batch) {
		c.apply(got)
		require.False(t, got.Since.IsZero())
		require.Equal(t, fmt.Sprint(lines(want)), fmt.Sprint(lines(got)))
		for i := range want.Objects {
			for j := range want.Objects[i].Deltas {
				require.Same(t, want.Objects[i].Deltas[j].Object, got.Objects[i].Deltas[j].Object)
			}
		}
		require.Equal(t,
			[]any{want.ResourceVersion, want.InitialList, want.Resync},
			[]any{got.ResourceVersion, got.InitialList, got.Resync})
	}))
	require.Equal(t, m.known, c.objects)
}

func TestModel(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 1200)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		runOperations(t, data)
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 7, 2, 0, 1, 1, 1, 0, 2, 1, 1, 1, 11, 0, 0, 1, 2, 2, 11})
	f.Add([]byte{1, 0, 1, 0, 1, 1, 4, 1, 0, 2, 2, 7, 1, 1, 0, 2, 3, 0, 10, 11})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4096 {
			runOperations(t, data)
		}
	})
}

// TestLegalHistory makes only operations that lead to deletions, in every order, and checks the history.
func TestLegalHistory(t *testing.T) {
	states := []*thing{incarnation("a", "1", "1"), incarnation("a", "1", "2"), incarnation("a", "2", "3"), incarnation("a", "", "4")}
	operations := []func(q *queue, i int){
		func(q *queue, i int) { q.Put(states[i], "") },
		func(q *queue, i int) { q.Delete(states[i], "") },
		func(q *queue, i int) { q.DeleteKey(keyOf("a"), "") },
		func(q *queue, i int) { q.Replace(states[i:i+1], "") },
		func(q *queue, i int) { q.Replace(nil, "") },
	}
	const length = 3
	choices := len(operations) * len(states)
	for n := range choices * choices * choices * 8 {
		q := deltafifo.New[*thing](deltafifo.Options{})
		c := &consumer{t: t, objects: map[api.Key]*thing{}}
		pops, rest := n%8, n/8
		for i := range length {
			choice := rest % choices
			rest /= choices
			operations[choice/len(states)](q, choice%len(states))
			if pops>>i&1 == 1 {
				q.Bookmark(strconv.Itoa(i)) // a batch even if nothing else changed
				require.NoError(t, q.Pop(t.Context(), c.apply))
			}
		}
		q.Bookmark("drained")
		require.NoError(t, q.Pop(t.Context(), c.apply))
		require.Len(t, c.objects, q.KnownLen())
	}
}
