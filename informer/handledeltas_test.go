package informer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
)

// received is the time at which the batches of these tests were received.
var received = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func other(name string, version int) *thing {
	return &thing{name, types.UID("uid of " + name), version}
}

type (
	changesOf = []api.Change[*thing]
	batch     = deltafifo.Batch[*thing]
)

// batchOf makes a batch of the changes of each object.
func batchOf(objects ...changesOf) batch {
	b := batch{ResourceVersion: "9", Since: received}
	for _, ds := range objects {
		for i := range ds {
			ds[i].At = received
		}
		b.Objects = append(b.Objects, deltafifo.ObjectChanges[*thing]{Key: api.KeyOf(ds[0].Object), Changes: ds})
	}
	return b
}

func initial(o *thing) api.Change[*thing] {
	return api.Change[*thing]{Type: api.Added, Object: o, InitialList: true}
}

func (b batchWith) first() batch  { b.InitialList = true; return batch(b) }
func (b batchWith) resync() batch { b.Resync = true; return batch(b) }

type batchWith batch

// TestHandleDeltas handles batches and compares the groups that the last one adds to a backlog. The handler has joined
// before the first batch and is due for every resync.
func TestHandleDeltas(t *testing.T) {
	gone := api.Change[*thing]{Type: api.Deleted, Object: one(1), FinalStateUnknown: true}
	filled := batchWith(batchOf(changesOf{initial(one(1))}, changesOf{initial(other("b", 2))})).first()
	for _, tc := range []struct {
		name    string
		batches []batch
		want    [][]string // groups of the last batch
	}{
		{"first list", []batch{filled}, [][]string{{"Added a/1@1 initial", "Added b/uid of b@2 initial", "completes"}}},
		{"an empty first list", []batch{batchWith(batch{}).first()}, [][]string{{"completes"}}},
		{"first list, and a change to an object of it", []batch{
			batchWith(batchOf(changesOf{initial(one(1)), updated(one(1), one(3))}, changesOf{initial(other("b", 2))})).first(),
		}, [][]string{{"Added b/uid of b@2 initial", "Added a/1@1 initial", "completes"}, {"Updated a/1@1 a/1@3"}}},
		{"first list, and the deletion of an object of it", []batch{
			batchWith(batchOf(changesOf{initial(one(1)), removed(one(3))})).first(),
		}, [][]string{{"Added a/1@1 initial", "completes"}, {"Deleted a/1@3"}}},
		{"first list, and another object with the same name", []batch{
			batchWith(batchOf(changesOf{initial(one(1)), gone, added(two(3))})).first(),
		}, [][]string{{"Added a/1@1 initial", "completes"}, {"Deleted a/1@1 unknown", "Added a/2@3"}}},
		{"first list, and a new object", []batch{
			batchWith(batchOf(changesOf{initial(one(1))}, changesOf{added(other("b", 2))})).first(),
		}, [][]string{{"Added a/1@1 initial", "completes"}, {"Added b/uid of b@2"}}},
		{"an object is added", []batch{filled, batchOf(changesOf{added(other("c", 3))})}, [][]string{{"Added c/uid of c@3"}}},
		{"an object changes twice", []batch{
			filled, batchOf(changesOf{updated(one(1), one(3)), updated(one(3), one(4))}),
		}, [][]string{{"Updated a/1@1 a/1@3", "Updated a/1@3 a/1@4"}}},
		{"an object is added, changed and deleted", []batch{
			filled, batchOf(changesOf{added(other("c", 3)), updated(other("c", 3), other("c", 4)), removed(other("c", 5))}),
		}, [][]string{{"Added c/uid of c@3", "Updated c/uid of c@3 c/uid of c@4", "Deleted c/uid of c@5"}}},
		{"an object is replaced by another", []batch{
			filled, batchOf(changesOf{gone, added(two(3))}),
		}, [][]string{{"Deleted a/1@1 unknown", "Added a/2@3"}}},
		{"a bookmark", []batch{filled, {ResourceVersion: "9"}}, nil},
		{"a resync", []batch{filled, batchWith(batch{}).resync()}, [][]string{{"Updated a/1@1 a/1@1 resync", "Updated b/uid of b@2 b/uid of b@2 resync"}}},
		{"a resync with changes", []batch{
			filled, batchWith(batchOf(changesOf{removed(one(3))}, changesOf{added(other("c", 4))})).resync(),
		}, [][]string{{"Deleted a/1@3", "Added c/uid of c@4"}, {"Updated b/uid of b@2 b/uid of b@2 resync"}}},
		{"a resync before the first list", []batch{batchWith(batch{}).resync()}, [][]string{nil}},
		{"a resync and the first list", []batch{batchWith(batchWith(batchOf(changesOf{initial(one(1))})).first()).resync()}, [][]string{{"Added a/1@1 initial", "completes"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := New(&unlisted{}, Options[*thing]{})
			must.Get(i.Subscribe(func(api.Change[*thing]) {}, HandlerOptions{ResyncPeriod: time.Minute}))(t)
			p := pipelineOf(i)
			l := p.handlers.all[0]
			var got [][]string
			for _, b := range tc.batches {
				l.swap()
				p.handleDeltas(b)
				require.Equal(t, b.ResourceVersion, i.ResourceVersion())
				got = takeGroups(t, l.swap(), b)
			}
			require.Equal(t, tc.want, got)
			require.True(t, runstate.IsClosed(i.Synced()) == tc.batches[0].InitialList)
		})
	}
}

// takeGroups returns the groups that a batch has added to a backlog, and checks their times.
func takeGroups(t *testing.T, b backlog[*thing], of batch) (lines [][]string) {
	t.Helper()
	for _, g := range b.groups(nil, time.Time{}) {
		var ns []api.Change[*thing]
		for n := range g.all() {
			if !n.Resync {
				require.Equal(t, of.Since, n.At)
			} else {
				require.WithinDuration(t, time.Now(), n.At, time.Minute)
			}
			ns = append(ns, n)
		}
		require.Len(t, ns, g.len())
		for end := range ns {
			n := 0
			for range g.all() {
				if n == end {
					break // as a listener does that was removed
				}
				n++
			}
		}
		group := describe(ns)
		if g.completes {
			group = append(group, "completes")
		}
		lines = append(lines, group)
	}
	return lines
}

// TestHeardAt handles batches while the reflector is ahead of the cache. Only what the server sent counts.
func TestHeardAt(t *testing.T) {
	i := New(&unlisted{}, Options[*thing]{})
	at := func(minutes int) time.Time { return received.Add(time.Duration(minutes) * time.Minute) }
	require.Zero(t, i.Status().HeardAt)
	for _, tc := range []struct {
		batch batch
		want  time.Time
	}{
		{batch{InitialList: true, ResourceVersion: "1", Since: at(1)}, at(1)}, // an empty first list
		{batch{ResourceVersion: "2", Since: at(2)}, at(2)},                    // a bookmark
		{batch{ResourceVersion: "2", Resync: true, Since: at(3)}, at(2)},
		{batchOf(changesOf{added(one(4))}), received},
	} {
		pipelineOf(i).handleDeltas(tc.batch)
		require.Equal(t, tc.want, i.Status().HeardAt)
	}
}

// TestResyncWithALateFirstList has a first list that is complete only after earlier batches, as with package scopes.
func TestResyncWithALateFirstList(t *testing.T) {
	i := New(&unlisted{}, Options[*thing]{})
	must.Get(i.Subscribe(func(api.Change[*thing]) {}, HandlerOptions{ResyncPeriod: time.Minute}))(t)
	p := pipelineOf(i)
	l := p.handlers.all[0]
	p.handleDeltas(batchOf(changesOf{added(one(1))}))
	l.swap()
	b := batch{InitialList: true, Resync: true, Since: received, ResourceVersion: "9"}
	p.handleDeltas(b)
	require.Equal(t, [][]string{{"completes"}, {"Updated a/1@1 a/1@1 resync"}}, takeGroups(t, l.swap(), b))
}

// TestUseLoggerBesideAHandler must be run with the race detector.
func TestUseLoggerBesideAHandler(t *testing.T) {
	for range 100 {
		i := New(&unlisted{}, Options[*thing]{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.UseLogger(zap.NewNop())
		}()
		must.Get(i.Subscribe(func(api.Change[*thing]) {}, HandlerOptions{}))(t)
		<-done
	}
}
