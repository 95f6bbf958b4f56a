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
)

// model is a simple implementation of a DeltaFIFO that ignores cost.
type model struct {
	known   map[api.Key]*thing
	events  []change // since the last Pop, in their order
	version string
	listed  bool
	dirty   bool
	first   bool
	resync  bool
}

func (m *model) record(d change) { m.events, m.dirty = append(m.events, d), true }

func (m *model) reach(version string) {
	if version != "" && version != m.version {
		m.version, m.dirty = version, true
	}
}

func (m *model) put(o *thing, fromList bool) {
	key := api.KeyOf(o)
	old := m.known[key]
	if old != nil && old.uid != "" && o.uid != "" && old.uid != o.uid {
		m.record(change{Type: api.Deleted, Object: old, FinalStateUnknown: true})
		old = nil
	}
	m.known[key] = o
	if old == nil {
		m.record(change{Type: api.Added, Object: o, InitialList: m.first && fromList})
	} else {
		m.record(change{Type: api.Updated, Object: o, Old: old})
	}
}

func (m *model) delete(key api.Key, last *thing) {
	old := m.known[key]
	if old == nil {
		return
	}
	d := change{Type: api.Deleted, Object: last}
	if last == nil || old.uid != "" && last.uid != "" && last.uid != old.uid {
		d.Object, d.FinalStateUnknown = old, true
	}
	delete(m.known, key)
	m.record(d)
}

func (m *model) replace(list []*thing, version string) {
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
		if m.known[api.KeyOf(o)] != o {
			m.put(o, true)
		}
	}
	m.version, m.dirty = version, true
}

// batch returns the batch of the next Pop: the events grouped by object, in the order of the first event of each.
func (m *model) batch() batch {
	b := batch{ResourceVersion: m.version, InitialList: m.first, Resync: m.resync}
	for _, d := range m.events {
		key := api.KeyOf(d.Object)
		i := slices.IndexFunc(b.Objects, func(o deltafifo.ObjectChanges[*thing]) bool { return o.Key == key })
		if i < 0 {
			i = len(b.Objects)
			b.Objects = append(b.Objects, deltafifo.ObjectChanges[*thing]{Key: key})
		}
		b.Objects[i].Changes = append(b.Objects[i].Changes, d)
	}
	m.events, m.dirty, m.first, m.resync = nil, false, false, false
	return b
}

// consumer applies changes to its objects, and fails if the history is not legal.
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
		require.NotEmpty(c.t, o.Changes)
		for _, d := range o.Changes {
			require.Equal(c.t, o.Key, api.KeyOf(d.Object))
			c.applyChange(o.Key, d)
		}
	}
}

func (c *consumer) applyChange(key api.Key, d change) {
	old, exists := c.objects[key]
	if exists && old.uid != "" && d.Object.uid != "" {
		require.Equal(c.t, old.uid, d.Object.uid, "%s: another UID without the deletion of the old one", line(d))
	}
	switch d.Type {
	case api.Added:
		require.False(c.t, exists, "%s: it exists", line(d))
	case api.Updated:
		require.True(c.t, exists, "%s: it does not exist", line(d))
		require.Same(c.t, old, d.Old)
	case api.Deleted:
		require.True(c.t, exists, "%s: it does not exist", line(d))
		delete(c.objects, key)
		return
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
	q := deltafifo.New[*thing]()
	m := &model{known: map[api.Key]*thing{}}
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
	require.Equal(t, m.listed, c.initial == 1)
}

func step(t testing.TB, s *script, q *queue, m *model, c *consumer, version string) {
	switch s.next(12) {
	case 0, 1, 2, 3:
		o := s.object()
		q.Put(o, version)
		m.put(o, false)
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
			if known := m.known[api.KeyOf(list[i])]; known != nil && s.next(2) == 0 {
				list[i] = known
			}
		}
		q.Replace(list, version)
		m.replace(list, version)
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
			for j := range want.Objects[i].Changes {
				require.Same(t, want.Objects[i].Changes[j].Object, got.Objects[i].Changes[j].Object)
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
