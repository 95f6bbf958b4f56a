package informer

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// requireCollected fails if somebody still holds the object.
func requireCollected(t *testing.T, p weak.Pointer[thing], reason string) {
	t.Helper()
	for range 10 {
		runtime.GC()
		if p.Value() == nil {
			return
		}
	}
	require.Fail(t, "an object is kept", reason)
}

// TestRemovedHandlerKeepsNothing holds on to the registration of a handler that never got to what it was told.
func TestRemovedHandlerKeepsNothing(t *testing.T) {
	for name, coalesce := range map[string]bool{"full": false, "coalescing": true} {
		t.Run(name, func(t *testing.T) {
			l := newProcessListener("stuck", func(Notification[*thing]) {}, coalesce, newWatchdog(-1, nil), zap.NewNop())
			object := &thing{name: "a"}
			p := weak.Make(object)
			l.push(told(added(object)))
			require.Equal(t, 1, l.pending())
			l.remove()
			require.Zero(t, l.pending())
			requireCollected(t, p, "by the backlog")
			runtime.KeepAlive(l)
		})
	}
}

// TestDeliveredGroupsAreLetGo has a handler stuck with the second of two groups that it took together.
func TestDeliveredGroupsAreLetGo(t *testing.T) {
	stuck, release := make(chan struct{}), make(chan struct{})
	l := newProcessListener("stuck", func(n Notification[*thing]) {
		if n.Object.name == "second" {
			close(stuck)
			<-release
		}
	}, false, newWatchdog(-1, nil), zap.NewNop())
	delivered := &thing{name: "first"}
	p := weak.Make(delivered)
	l.push(told(added(delivered)))
	l.push(told(added(&thing{name: "second"})))
	go l.run(t.Context(), func(l *processListener[*thing]) []*group[*thing] { return l.swap().groups(nil, time.Time{}) })
	<-stuck
	requireCollected(t, p, "by the groups that were taken")
	l.remove()
	close(release)
	<-l.done
}

// TestASlotKeepsOneNotification has a batch tell of two objects, of which one has come and gone since.
func TestASlotKeepsOneNotification(t *testing.T) {
	b := newBacklog[*thing](true)
	gone := &thing{name: "gone"}
	p := weak.Make(gone)
	b.push(told(added(&thing{name: "stays"}), added(gone)))
	b.push(told(removed(gone)))
	require.Equal(t, 1, b.len())
	requireCollected(t, p, "by what is told of the other one")
	runtime.KeepAlive(b)
}

// TestAShareForgetsItsFormerHandlers has handlers come and go, as those of a server's clients do.
func TestAShareForgetsItsFormerHandlers(t *testing.T) {
	f := NewFactory(FactoryOptions{})
	share, err := Shared(f, &unlisted{}, Options[*thing]{})
	require.NoError(t, err)
	for range 1000 {
		r, err := share.Subscribe(func(Notification[*thing]) {}, HandlerOptions{})
		require.NoError(t, err)
		r.Remove()
	}
	require.LessOrEqual(t, len(share.registrations), 1)
	share.Release()
	<-share.Done()
}

// unlisted is a ListerWatcher that is never asked.
type unlisted struct{ api.ListerWatcher[*thing] }

func (*unlisted) Resource() api.Resource { return api.Resource{Version: "v1", Plural: "things"} }

// TestNothingIsObservedUnlessAskedFor is the informer of production, in which the detector costs nothing.
func TestNothingIsObservedUnlessAskedFor(t *testing.T) {
	m := newMutations[*thing](nil)
	batch := deltafifo.Batch[*thing]{Objects: []deltafifo.ObjectDeltas[*thing]{{Deltas: []deltafifo.Delta[*thing]{{Object: one(1)}}}}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.observe(batch)
		m.checkIfDue()
		m.check()
	}))
}
