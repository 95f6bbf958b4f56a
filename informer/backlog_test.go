package informer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer/internal/slowcalls"
)

// thing is an object with only an identity and a version.
type thing struct {
	name    string
	uid     types.UID
	version int
}

func (t *thing) GetNamespace() string       { return "" }
func (t *thing) GetName() string            { return t.name }
func (t *thing) GetUID() types.UID          { return t.uid }
func (t *thing) GetResourceVersion() string { return fmt.Sprint(t.version) }
func (t *thing) String() string             { return fmt.Sprintf("%s/%s@%d", t.name, t.uid, t.version) }

func one(version int) *thing { return &thing{name: "a", uid: "1", version: version} }
func two(version int) *thing { return &thing{name: "a", uid: "2", version: version} }

func added(o *thing) api.Change[*thing] { return api.Change[*thing]{Type: api.Added, Object: o} }
func updated(old, o *thing) api.Change[*thing] {
	return api.Change[*thing]{Type: api.Updated, Old: old, Object: o}
}

func removed(o *thing) api.Change[*thing] { return api.Change[*thing]{Type: api.Deleted, Object: o} }

func groupOf(n ...api.Change[*thing]) *group[*thing] { return &group[*thing]{changes: n} }

// describe formats notifications without their times.
func describe(ns []api.Change[*thing]) []string {
	var lines []string
	for _, n := range ns {
		line := fmt.Sprintf("%s %s", n.Type, n.Object)
		if n.Type == api.Updated {
			line = fmt.Sprintf("%s %s %s", n.Type, n.Old, n.Object)
		}
		if n.Resync {
			line += " resync"
		}
		if n.InitialList {
			line += " initial"
		}
		if n.FinalStateUnknown {
			line += " unknown"
		}
		lines = append(lines, line)
	}
	return lines
}

// drain takes all notifications of a backlog.
func drain(t *testing.T, b backlog[*thing], now *cache.Snapshot[*thing]) (all []api.Change[*thing], complete bool) {
	t.Helper()
	for _, g := range b.groups(now, time.Time{}) {
		before := len(all)
		for n := range g.all() {
			all = append(all, n)
		}
		require.Equal(t, g.len(), len(all)-before, "len must be the number of notifications")
		complete = complete || g.completes
	}
	return all, complete
}

func TestCoalescingTable(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   []api.Change[*thing]
		out  []api.Change[*thing]
	}{
		{"add", []api.Change[*thing]{added(one(1))}, []api.Change[*thing]{added(one(1))}},
		{"add, update", []api.Change[*thing]{added(one(1)), updated(one(1), one(2))}, []api.Change[*thing]{added(one(2))}},
		{"add, delete", []api.Change[*thing]{added(one(1)), removed(one(2))}, nil},
		{"add, update, delete", []api.Change[*thing]{added(one(1)), updated(one(1), one(2)), removed(one(2))}, nil},
		{"update, update", []api.Change[*thing]{updated(one(1), one(2)), updated(one(2), one(3))}, []api.Change[*thing]{updated(one(1), one(3))}},
		{"update, delete", []api.Change[*thing]{updated(one(1), one(2)), removed(one(3))}, []api.Change[*thing]{removed(one(3))}},
		{"delete, add", []api.Change[*thing]{removed(one(1)), added(two(2))}, []api.Change[*thing]{removed(one(1)), added(two(2))}},
		{"delete, add, update", []api.Change[*thing]{removed(one(1)), added(two(2)), updated(two(2), two(3))}, []api.Change[*thing]{removed(one(1)), added(two(3))}},
		{"delete, add, delete", []api.Change[*thing]{removed(one(1)), added(two(2)), removed(two(2))}, []api.Change[*thing]{removed(one(1))}},
		{"update, delete, add", []api.Change[*thing]{updated(one(1), one(2)), removed(one(2)), added(two(3))}, []api.Change[*thing]{removed(one(2)), added(two(3))}},
		{"update, delete, add, delete", []api.Change[*thing]{updated(one(1), one(2)), removed(one(2)), added(two(3)), removed(two(4))}, []api.Change[*thing]{removed(one(2))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBacklog[*thing](true)
			for _, n := range tc.in {
				b.push(groupOf(n))
			}
			require.Equal(t, len(tc.out) > 0, b.len() > 0)
			out, _ := drain(t, b, nil)
			require.Equal(t, describe(tc.out), describe(out))
		})
	}
}

// TestCoalescedNotificationHasTheFirstTime checks At, from which delays are measured.
func TestCoalescedNotificationHasTheFirstTime(t *testing.T) {
	b := newBacklog[*thing](true)
	first, second := updated(one(1), one(2)), updated(one(2), one(3))
	first.At, second.At = time.Unix(1, 0), time.Unix(2, 0)
	b.push(groupOf(first))
	b.push(groupOf(second))
	out, _ := drain(t, b, nil)
	require.Len(t, out, 1)
	require.Equal(t, first.At, out[0].At)
}

// randomChanges makes random changes to a cache.
type randomChanges struct {
	rand    *rand.Rand
	names   int // of objects
	indexer *cache.Indexer[*thing]
	version int
	uids    int
}

// change makes one random change and returns the group for the backlogs.
func (w *randomChanges) change() *group[*thing] {
	name := fmt.Sprint(w.rand.IntN(w.names))
	txn := w.indexer.Begin()
	defer func() { txn.Commit(fmt.Sprint(w.version)) }()
	w.version++
	old, exists := txn.Get(api.Key{Name: name})
	switch {
	case !exists:
		w.uids++
		fresh := &thing{name, types.UID(fmt.Sprint(w.uids)), w.version}
		txn.Set(fresh)
		return groupOf(added(fresh))
	case w.rand.IntN(3) == 0:
		txn.Delete(api.KeyOf(old))
		return groupOf(removed(old))
	case w.rand.IntN(4) == 0: // another incarnation, in one batch
		w.uids++
		fresh := &thing{name, types.UID(fmt.Sprint(w.uids)), w.version}
		txn.Set(fresh)
		return groupOf(removed(old), added(fresh))
	default:
		fresh := &thing{name, old.uid, w.version}
		txn.Set(fresh)
		return groupOf(updated(old, fresh))
	}
}

// history checks that the notifications of one handler are legal, and applies them to state.
type history struct {
	t     *testing.T
	state map[string]*thing
}

func (h *history) apply(n api.Change[*thing]) {
	known := h.state[n.Object.name]
	switch n.Type {
	case api.Added:
		require.Nil(h.t, known, "an Added of %v over %v", n.Object, known)
		h.state[n.Object.name] = n.Object
	case api.Updated:
		require.NotNil(h.t, known, "an Updated of %v without an Added", n.Object)
		require.Equal(h.t, known.uid, n.Object.uid)
		require.Equal(h.t, known, n.Old, "Old must be the state that the handler got last")
		h.state[n.Object.name] = n.Object
	case api.Deleted:
		require.NotNil(h.t, known, "a Deleted of %v without an Added", n.Object)
		require.Equal(h.t, known.uid, n.Object.uid)
		delete(h.state, n.Object.name)
	}
}

// TestBacklogsDeliverLegalHistories uses both kinds of backlog with random changes, joins, resyncs and takes. Whenever
// a backlog is empty, the state of its handler must be equal to the cache.
func TestBacklogsDeliverLegalHistories(t *testing.T) {
	for seed := range uint64(200) {
		w := &randomChanges{rand: rand.New(rand.NewPCG(seed, 0)), names: 4, indexer: cache.New[*thing]()}
		for range w.rand.IntN(6) {
			w.change()
		}
		backlogs := []backlog[*thing]{newBacklog[*thing](false), newBacklog[*thing](true)}
		histories := make([]*history, len(backlogs))
		for n, b := range backlogs {
			histories[n] = &history{t, map[string]*thing{}}
			b.push(&group[*thing]{replay: w.indexer.Snapshot(), completes: true})
		}
		completed := make([]bool, len(backlogs))
		for range 60 {
			switch w.rand.IntN(8) {
			case 0:
				n := w.rand.IntN(len(backlogs))
				ns, complete := drain(t, backlogs[n], w.indexer.Snapshot())
				for _, each := range ns {
					histories[n].apply(each)
				}
				completed[n] = completed[n] || complete
				requireState(t, w.indexer.Snapshot(), histories[n])
				backlogs[n] = newBacklog[*thing](n == 1)
			case 1:
				for _, b := range backlogs {
					b.push(&group[*thing]{replay: w.indexer.Snapshot(), resync: true})
				}
			default:
				g := w.change()
				for _, b := range backlogs {
					b.push(g)
				}
			}
			require.LessOrEqual(t, len(backlogs[1].(*coalescingBacklog[*thing]).slots), 8)
		}
		for n, b := range backlogs {
			ns, complete := drain(t, b, w.indexer.Snapshot())
			for _, each := range ns {
				histories[n].apply(each)
			}
			require.True(t, complete || completed[n], "the initial list must be delivered")
			requireState(t, w.indexer.Snapshot(), histories[n])
		}
	}
}

// TestCompactionKeepsEveryChange makes so many changes before it takes the backlog that keys without a slot are dropped
// several times.
func TestCompactionKeepsEveryChange(t *testing.T) {
	for seed := range uint64(10) {
		w := &randomChanges{rand: rand.New(rand.NewPCG(seed, 0)), names: 150, indexer: cache.New[*thing]()}
		h, dropped := &history{t, map[string]*thing{}}, 0
		for range 3 {
			b := newBacklog[*thing](true).(*coalescingBacklog[*thing])
			for range 5000 {
				before := len(b.order)
				b.push(w.change())
				if len(b.order) < before {
					dropped++
				}
				without := len(b.order) - len(b.slots)
				require.LessOrEqual(t, without, max(64, len(b.slots)), "keys without a slot must be few")
			}
			ns, _ := drain(t, b, w.indexer.Snapshot())
			for _, n := range ns {
				h.apply(n)
			}
			requireState(t, w.indexer.Snapshot(), h)
		}
		require.Greater(t, dropped, 1)
	}
}

func requireState(t *testing.T, s *cache.Snapshot[*thing], h *history) {
	t.Helper()
	want := map[string]*thing{}
	for key, o := range s.All() {
		want[key.Name] = o
	}
	require.Equal(t, want, h.state)
}

// TestCoalescingDropsShortLivedObjects adds and deletes many objects between two deliveries. Nothing of them may stay
// in the backlog.
func TestCoalescingDropsShortLivedObjects(t *testing.T) {
	b := newBacklog[*thing](true)
	stays := &thing{"stays", "0", 1}
	b.push(groupOf(added(stays)))
	for n := range 100_000 {
		o := &thing{fmt.Sprint(n), "1", n}
		b.push(groupOf(added(o)))
		b.push(groupOf(removed(o)))
	}
	require.Equal(t, 1, b.len())
	require.LessOrEqual(t, cap(b.(*coalescingBacklog[*thing]).order), 256)
	out, _ := drain(t, b, nil)
	require.Equal(t, []string{"Added stays/0@1"}, describe(out))
}

// TestReplayReplacesEarlierChanges adds changes and a resync to a coalescing backlog whose replay is not delivered yet.
func TestReplayReplacesEarlierChanges(t *testing.T) {
	indexer := cache.New[*thing]()
	txn := indexer.Begin()
	txn.Set(one(1))
	joined := txn.Commit("1")
	b := newBacklog[*thing](true)
	b.push(&group[*thing]{replay: joined, completes: true})
	require.Equal(t, 1, b.len())
	txn = indexer.Begin()
	txn.Set(one(2))
	now := txn.Commit("2")
	b.push(groupOf(updated(one(1), one(2))))
	b.push(&group[*thing]{replay: now, resync: true})
	require.Equal(t, 1, b.len())
	out, complete := drain(t, b, now)
	require.Equal(t, []string{"Added a/1@2 initial"}, describe(out))
	require.True(t, complete)
}

func TestResyncOfACoalescingHandlerSkipsChangedObjects(t *testing.T) {
	indexer := cache.New[*thing]()
	a, b := one(1), &thing{"b", "3", 2}
	txn := indexer.Begin()
	txn.Set(a)
	txn.Set(b)
	txn.Commit("2")
	backlog := newBacklog[*thing](true)
	backlog.push(groupOf(updated(one(0), a)))
	backlog.push(&group[*thing]{replay: indexer.Snapshot(), resync: true})
	require.Equal(t, 2, backlog.len())
	out, _ := drain(t, backlog, indexer.Snapshot())
	require.Equal(t, []string{"Updated a/1@0 a/1@1", "Updated b/3@2 b/3@2 resync"}, describe(out))
}

func TestFullBacklogKeepsOneResync(t *testing.T) {
	indexer := cache.New[*thing]()
	txn := indexer.Begin()
	txn.Set(one(1))
	txn.Commit("1")
	b := newBacklog[*thing](false)
	for range 3 {
		b.push(&group[*thing]{replay: indexer.Snapshot(), resync: true})
		b.push(groupOf(updated(one(1), one(2))))
	}
	require.Equal(t, 4, b.len())
	out, _ := drain(t, b, nil)
	require.Len(t, out, 4)
}

// TestPendingDoesNotDropDuringTake reads Pending while a listener takes its backlog. A reader that waits for 0 must not
// see it there.
func TestPendingDoesNotDropDuringTake(t *testing.T) {
	for name, coalesce := range map[string]bool{"full": false, "coalescing": true} {
		t.Run(name, func(t *testing.T) {
			l := newProcessListener(HandlerOptions{Coalesce: coalesce}, func(api.Change[*thing]) {}, slowcalls.New(-1, nil), zap.NewNop())
			l.start(t.Context(), nil)
			l.push(groupOf(added(one(1))))
			require.Equal(t, 1, l.pending())
			l.swap()
			require.Equal(t, 1, l.pending())
			require.True(t, l.deliver(groupOf(added(one(1)))))
			require.Zero(t, l.pending())
		})
	}
}

// TestResyncTimerAfterADelay advances a timer that is late. The next time is the first one after now that is a whole
// number of periods after the time when the timer was due.
func TestResyncTimerAfterADelay(t *testing.T) {
	const period = 10 * time.Second
	start := time.Unix(1, 0)
	for late, next := range map[time.Duration]time.Duration{
		0: period, 1: period, period - 1: period, period: 2 * period, 25 * time.Second: 3 * period, time.Hour: time.Hour + period,
	} {
		timer := resyncTimer{period: period, next: start}
		now := start.Add(late)
		require.True(t, timer.due(now))
		timer.advance(now)
		require.Equal(t, next, timer.next.Sub(start), "%v late", late)
		require.False(t, timer.due(now))
	}
}

func TestFiltered(t *testing.T) {
	var got []string
	h := Filtered(func(o *thing) bool { return o.version%2 == 0 }, HandlerFuncs[*thing]{
		AddFunc:    func(o *thing, initial bool) { got = append(got, fmt.Sprint("add ", o.version, " ", initial)) },
		UpdateFunc: func(a, b *thing) { got = append(got, fmt.Sprint("update ", a.version, " ", b.version)) },
		DeleteFunc: func(d DeletedObject[*thing]) {
			got = append(got, fmt.Sprint("delete ", d.Object.version, " ", d.FinalStateUnknown))
		},
	})
	h.OnAdd(one(1), true)
	h.OnAdd(one(2), true)
	h.OnUpdate(one(2), one(4))
	h.OnUpdate(one(4), one(5))
	h.OnUpdate(one(5), one(7))
	h.OnUpdate(one(7), one(8))
	h.OnDelete(DeletedObject[*thing]{Object: one(9)})
	h.OnDelete(DeletedObject[*thing]{Object: one(10), FinalStateUnknown: true})
	require.Equal(t, []string{"add 2 true", "update 2 4", "delete 4 false", "add 8 false", "delete 10 true"}, got)
}

func TestHandlerFuncsMayBeNil(t *testing.T) {
	var h HandlerFuncs[*thing]
	for _, n := range []api.Change[*thing]{added(one(1)), updated(one(1), one(2)), removed(one(2))} {
		require.NotPanics(t, func() { dispatch(h, n) })
	}
}
