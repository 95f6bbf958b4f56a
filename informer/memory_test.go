package informer

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer/internal/slowcalls"
)

// requireCollected fails if an object is still reachable.
func requireCollected(t *testing.T, p weak.Pointer[thing], reason string) {
	t.Helper()
	for range 10 {
		runtime.GC()
		if p.Value() == nil {
			return
		}
	}
	require.Fail(t, "an object is still reachable", reason)
}

// TestRemovedHandlerHoldsNoObject keeps the listener of a removed handler that never got its notifications.
func TestRemovedHandlerHoldsNoObject(t *testing.T) {
	for name, coalesce := range map[string]bool{"full": false, "coalescing": true} {
		t.Run(name, func(t *testing.T) {
			l := newProcessListener(HandlerOptions{Coalesce: coalesce}, func(api.Change[*thing]) {}, slowcalls.New(-1, nil), zap.NewNop())
			object := &thing{name: "a"}
			p := weak.Make(object)
			l.push(groupOf(added(object)))
			require.Equal(t, 1, l.pending())
			l.remove()
			require.Zero(t, l.pending())
			requireCollected(t, p, "through the backlog")
			runtime.KeepAlive(l)
		})
	}
}

// TestDeliveredGroupsAreReleased has a handler that is stuck in the second of two groups, which it took together.
func TestDeliveredGroupsAreReleased(t *testing.T) {
	stuck, release := make(chan struct{}), make(chan struct{})
	l := newProcessListener(HandlerOptions{}, func(n api.Change[*thing]) {
		if n.Object.name == "second" {
			close(stuck)
			<-release
		}
	}, slowcalls.New(-1, nil), zap.NewNop())
	delivered := &thing{name: "first"}
	p := weak.Make(delivered)
	l.push(groupOf(added(delivered)))
	l.push(groupOf(added(&thing{name: "second"})))
	l.wakeUp()
	l.start(t.Context(), func(l *processListener[*thing]) []*group[*thing] { return l.swap().groups(nil, time.Time{}) })
	go l.run(t.Context())
	<-stuck
	requireCollected(t, p, "through the groups that were taken")
	l.remove()
	close(release)
	<-l.done
}

// TestSlotKeepsOneNotification has a group of two objects. One of them is deleted by the next group.
func TestSlotKeepsOneNotification(t *testing.T) {
	b := newBacklog[*thing](true)
	gone := &thing{name: "gone"}
	p := weak.Make(gone)
	b.push(groupOf(added(&thing{name: "stays"}), added(gone)))
	b.push(groupOf(removed(gone)))
	require.Equal(t, 1, b.len())
	requireCollected(t, p, "through the notification of the other object")
	runtime.KeepAlive(b)
}

// unlisted is a ListerWatcher without methods: its tests send no request.
type unlisted struct{ api.ListerWatcher[*thing] }

func (*unlisted) Collection() api.Collection {
	return api.Collection{Resource: api.Resource{Version: "v1", Plural: "things"}}
}

// pipelineOf returns the pipeline of an informer without Options.Hold.
func pipelineOf[T api.Object](i *Informer[T]) *pipeline[T] { return i.pipeline.(*pipeline[T]) }
