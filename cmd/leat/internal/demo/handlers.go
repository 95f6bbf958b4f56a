package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/observe/livepage"
)

// badHandlers are handlers of the demonstration's pods that the Lab adds and removes.
type badHandlers struct {
	pods *informer.Informer[*pod]

	mu    sync.Mutex        // guards the field below
	added map[string]func() // removes the handler of a name
}

// add registers a handler that calls f with a channel that is closed when the handler is removed.
func (b *badHandlers) add(name string, f func(removed <-chan struct{})) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.added[name] != nil {
		return fmt.Errorf("there is a handler %q already; remove it first", name)
	}
	removed := make(chan struct{})
	r, err := b.pods.Subscribe(func(api.Change[*pod]) { f(removed) }, informer.HandlerOptions{Name: name})
	if err != nil {
		return err
	}
	b.added[name] = func() {
		r.Remove()
		close(removed)
	}
	return nil
}

// remove removes all handlers, and returns their number.
func (b *badHandlers) remove() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.added)
	for _, remove := range b.added {
		remove()
	}
	clear(b.added)
	return n
}

// stuckAfter is when the demonstration reports a handler as stuck. It is short, because somebody watches.
const stuckAfter = 2 * time.Second

func (d *demo) handlerActions() []livepage.Action {
	const group = "Handlers"
	bad := &badHandlers{pods: d.pods.Informer, added: map[string]func(){}}
	return []livepage.Action{
		{
			Name: "slow-handler", Group: group, Label: "Slow handler", Help: "Adds a handler to pods that takes long for each change. It falls behind; no other handler does.",
			Fields: []livepage.Field{{Name: "takes", Label: "Takes", Value: "1s"}},
			Do: func(_ context.Context, v values) (string, error) {
				takes, err := time.ParseDuration(v["takes"])
				if err != nil || takes < 0 || takes > time.Minute {
					return "", fmt.Errorf("%q is not a duration up to 1m", v["takes"])
				}
				return "see handlers of pods", bad.add("slow", func(removed <-chan struct{}) {
					select {
					case <-time.After(takes):
					case <-removed:
					}
				})
			},
		},
		{
			Name: "stuck-handler", Group: group, Label: "Stuck handler", Help: "Adds one that does not return from its first call. After 2 seconds it is reported as stuck.",
			Do: func(context.Context, values) (string, error) {
				return "see handlers of pods", bad.add("stuck", func(removed <-chan struct{}) { <-removed })
			},
		},
		{
			Name: "panic-handler", Group: group, Label: "Panicking handler", Help: "Adds one that panics in each call. The panics are counted, and the program goes on.",
			Do: func(context.Context, values) (string, error) {
				return "see handlers of pods", bad.add("panics", func(<-chan struct{}) { panic("the Lab makes this handler panic") })
			},
		},
		{
			Name: "remove-handlers", Group: group, Label: "Remove", Help: "Removes the handlers that these buttons added.",
			Do: func(context.Context, values) (string, error) { return fmt.Sprintf("%d removed", bad.remove()), nil },
		},
	}
}
