package merge_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/scale/scopes/internal/merge"
)

// server is a server with a history, for a model of scopes. The color of an object decides which selectors match.
type server struct {
	version int
	history []serverEvent
	objects map[api.Key]serverObject
	uids    int
}

type serverObject struct {
	thing *thing
	color int
}

type serverEvent struct {
	key      api.Key
	old, new *serverObject
}

func (s *server) write(key api.Key, color int, recreate bool) {
	s.version++
	old, exists := s.objects[key]
	s.uids++
	uid := fmt.Sprint("uid", s.uids)
	if exists && !recreate {
		uid = old.thing.uid
	}
	o := serverObject{&thing{namespace: key.Namespace, name: key.Name, uid: uid, version: strconv.Itoa(s.version)}, color}
	e := serverEvent{key: key, new: &o}
	if exists {
		e.old = &old
	}
	s.objects[key] = o
	s.history = append(s.history, e)
}

func (s *server) delete(key api.Key) {
	if old, ok := s.objects[key]; ok {
		s.version++
		delete(s.objects, key)
		s.history = append(s.history, serverEvent{key: key, old: &old})
	}
}

// at returns the objects at a version.
func (s *server) at(version int) map[api.Key]serverObject {
	state := map[api.Key]serverObject{}
	for _, e := range s.history[:version] {
		if e.new == nil {
			delete(state, e.key)
		} else {
			state[e.key] = *e.new
		}
	}
	return state
}

// modelScope is a scope and how far it has read the history.
type modelScope struct {
	*merge.Stream[*thing]
	namespace string
	color     int // 0 selects all
	reached   int
	listed    bool
}

func (m *modelScope) selects(key api.Key, o *serverObject) bool {
	return o != nil && (m.namespace == "" || m.namespace == key.Namespace) && (m.color == 0 || m.color == o.color)
}

// model drives a Merger with random changes, lists and lags, and checks each batch.
type model struct {
	t        *testing.T
	rand     *rand.Rand
	server   server
	queue    *queue
	set      *merge.Merger[*thing]
	scopes   []*modelScope
	have     map[api.Key]*thing
	disjoint bool
	complete bool
	updates  int // of objects that moved
}

// TestModel compares scopes with a server. Every batch is a legal history, no object goes back to an older version, a
// scope alone in its namespace shows exactly its version, and in the end the queue has what scopes select.
func TestModel(t *testing.T) {
	moved := 0
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			m := &model{t: t, rand: rand.New(rand.NewPCG(seed, 3)), have: map[api.Key]*thing{}, disjoint: seed%2 == 0}
			m.server.objects = map[api.Key]serverObject{}
			m.queue = deltafifo.New[*thing]()
			m.set = merge.New(m.queue)
			m.run()
			moved += m.updates
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	require.NotZero(t, moved)
}

func (m *model) run() {
	m.server.write(api.Key{Namespace: "ns0", Name: "o0"}, 1, false)
	for range 3 {
		m.add()
	}
	m.set.Complete()
	for range 300 {
		m.step()
	}
	if len(m.scopes) == 0 {
		m.add()
	}
	for _, s := range m.scopes {
		m.catchUp(s, m.server.version)
		s.Bookmark(strconv.Itoa(m.server.version))
	}
	<-time.After(2 * time.Second)
	m.pop()
	require.True(m.t, m.complete)
	want := map[api.Key]string{}
	for key, o := range m.server.objects {
		if slices.ContainsFunc(m.scopes, func(s *modelScope) bool { return s.selects(key, &o) }) {
			want[key] = o.thing.version
		}
	}
	got := map[api.Key]string{}
	for key, o := range m.have {
		got[key] = o.version
	}
	require.Equal(m.t, want, got)
	m.set.Stop()
}

func (m *model) step() {
	key := api.Key{Namespace: fmt.Sprint("ns", m.rand.IntN(3)), Name: fmt.Sprint("o", m.rand.IntN(4))}
	switch n := m.rand.IntN(100); {
	case n < 30:
		m.server.write(key, 1+m.rand.IntN(3), m.rand.IntN(5) == 0)
	case n < 38:
		m.server.delete(key)
	case n < 42:
		m.add()
	case n < 46 && len(m.scopes) > 0:
		m.remove(m.rand.IntN(len(m.scopes)))
	case n < 80 && len(m.scopes) > 0:
		s := m.scopes[m.rand.IntN(len(m.scopes))]
		m.catchUp(s, s.reached+m.rand.IntN(m.server.version-s.reached+1))
	case n < 84 && len(m.scopes) > 0:
		s := m.scopes[m.rand.IntN(len(m.scopes))]
		m.list(s, s.reached+m.rand.IntN(m.server.version-s.reached+1))
	case n < 88:
		<-time.After(time.Duration(m.rand.IntN(1500)) * time.Millisecond)
	default:
		m.pop()
	}
}

func (m *model) add() {
	s := &modelScope{namespace: fmt.Sprint("ns", len(m.scopes))}
	if !m.disjoint {
		s.namespace, s.color = []string{"", "ns0", "ns1"}[m.rand.IntN(3)], m.rand.IntN(4)
	} else if len(m.scopes) == 3 {
		return
	} else {
		for slices.ContainsFunc(m.scopes, func(o *modelScope) bool { return o.namespace == s.namespace }) {
			s.namespace = fmt.Sprint("ns", m.rand.IntN(3))
		}
	}
	s.reached = max(1, number(m.set.Newest())) // version 0 has no order
	s.Stream = m.set.Add(s.namespace, api.Selector{Labels: fmt.Sprint(s.color)})
	m.scopes = append(m.scopes, s)
}

func (m *model) remove(at int) {
	s := m.scopes[at]
	m.scopes = slices.Delete(m.scopes, at, at+1)
	silent, gone := m.rand.IntN(2) == 0, make(chan struct{})
	s.Remove(silent, gone)
	m.pop()
	require.True(m.t, runstate.IsClosed(gone))
}

// catchUp gives a scope the events up to a version, as a watch does.
func (m *model) catchUp(s *modelScope, version int) {
	if !s.listed {
		m.list(s, version)
		return
	}
	for ; s.reached < version; s.reached++ {
		e, now := m.server.history[s.reached], strconv.Itoa(s.reached+1)
		switch before, after := s.selects(e.key, e.old), s.selects(e.key, e.new); {
		case after && before && e.old.thing.uid != e.new.thing.uid && m.rand.IntN(2) == 0:
			s.DeleteKey(e.key, "")
			s.Put(e.new.thing, now)
		case after:
			s.Put(e.new.thing, now)
		case before:
			last := *e.old.thing
			last.version = now
			s.Delete(&last, now)
		default:
			if m.rand.IntN(3) == 0 {
				s.Bookmark(now)
			}
		}
	}
}

// list gives a scope a list, with the known pointers of objects that have not changed.
func (m *model) list(s *modelScope, version int) {
	var list []*thing
	state := m.server.at(version)
	for _, key := range slices.SortedFunc(maps.Keys(state), func(a, b api.Key) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	}) {
		o := state[key]
		if !s.selects(key, &o) {
			continue
		}
		copied := *o.thing
		item := &copied
		if known, ok := s.Get(key); ok && known.version == item.version {
			item = known
		}
		list = append(list, item)
	}
	s.Replace(list, strconv.Itoa(version))
	s.listed, s.reached = true, version
}

// pop takes a batch. The resync makes sure that there is one.
func (m *model) pop() {
	m.queue.Resync()
	require.NoError(m.t, m.queue.Pop(m.t.Context(), m.apply))
}

func (m *model) apply(b batch) {
	state := b.Note.(*merge.State)
	state.Applied()
	require.False(m.t, b.InitialList && m.complete, "InitialList is set once")
	m.complete = m.complete || b.InitialList
	for _, o := range b.Objects {
		for _, c := range o.Changes {
			m.applyChange(o.Key, c)
		}
	}
	for _, key := range b.Forgotten {
		delete(m.have, key)
	}
	m.checkVersions(state, b.ResourceVersion)
}

func (m *model) applyChange(key api.Key, c change) {
	known := m.have[key]
	switch c.Type {
	case api.Added:
		require.Nil(m.t, known)
		m.have[key] = c.Object
	case api.Updated:
		require.Same(m.t, known, c.Old)
		require.Equal(m.t, known.uid, c.Object.uid)
		require.False(m.t, numberOf(c.Object) < numberOf(known), "%v after %v", c.Object, known)
		m.have[key] = c.Object
		m.updates++
	case api.Deleted:
		require.NotNil(m.t, known)
		require.Equal(m.t, known.uid, c.Object.uid)
		delete(m.have, key)
	}
}

// checkVersions compares the versions of a batch with the scopes. A scope alone shows exactly its version.
func (m *model) checkVersions(scopes *merge.State, oldest string) {
	versions := make([]string, 0, len(m.scopes))
	for _, s := range m.scopes {
		versions = append(versions, s.Version())
	}
	want := ""
	if len(versions) > 0 && !slices.Contains(versions, "") {
		want = slices.MinFunc(versions, func(a, b string) int { return number(a) - number(b) })
	}
	require.Equal(m.t, want, oldest)
	for _, s := range m.scopes {
		version := s.Version()
		reached, _ := strconv.Atoi(version)
		require.LessOrEqual(m.t, reached, s.reached)
		if !m.disjoint {
			continue
		}
		require.Equal(m.t, s.listed, scopes.Listed(s.namespace))
		require.Equal(m.t, version, scopes.Version(s.namespace))
		require.Len(m.t, scopes.Selectors(s.namespace), 1)
		if version == "" {
			continue
		}
		for key, o := range m.server.at(reached) {
			if s.selects(key, &o) {
				require.Equal(m.t, o.thing.version, m.have[key].version)
			}
		}
	}
}

func numberOf(o *thing) int { return number(o.version) }

func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}
