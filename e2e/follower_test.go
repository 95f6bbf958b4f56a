package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
)

// patience is the time limit of everything that must happen, including a restart of the API server, beside two other
// groups of tests on two busy cores.
const patience = 4 * time.Minute

// eventually calls f every 20 ms until it returns nil. After patience it returns the last error.
func eventually(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// follower is an informer of a collection, with a handler that keeps its own copy.
type follower[T api.Object] struct {
	*informer.Informer[T]
	name       string
	collection *collection
	options    informer.Options[T]
	mirror     *mirror[T]
	handler    informer.Registration

	mu        sync.Mutex // guards the fields below
	errors    []error
	mutations []cache.Mutation
}

// follow runs an informer of the collection until the test ends. The informer must end without an error, and no object
// of its cache may have been changed.
func follow[T api.Object](t *testing.T, name string, c *collection, lw api.ListerWatcher[T], o informer.Options[T]) *follower[T] {
	t.Helper()
	f := &follower[T]{name: name, collection: c}
	o.OnError = f.noteError
	o.Mutations = informer.DetectMutations(f.noteMutation)
	// Notice within a second that a server is back, so that tests do not wait half a minute after each restart.
	o.BackoffBase, o.BackoffMax = 50*time.Millisecond, 500*time.Millisecond
	f.options = o
	f.Informer = informer.New(lw, o)
	f.mirror = newMirror[T](o.Selector.Labels == "" && o.Selector.Fields == "")
	f.handler = f.join(t, f.mirror)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %s\n%v", f.name, f.Status(), f.tellErrors(10))
		}
		cancel()
		require.NoError(t, <-ended)
		require.Empty(t, f.mutations, "%s: changed in the cache", f.name)
	})
	return f
}

func (f *follower[T]) join(t *testing.T, m *mirror[T]) informer.Registration {
	t.Helper()
	return must.Get(f.Subscribe(m.note, informer.HandlerOptions{Name: f.name}))(t)
}

func (f *follower[T]) noteError(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, err)
}

func (f *follower[T]) noteMutation(m cache.Mutation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mutations = append(f.mutations, m)
}

// tellErrors returns the last n errors of lists and watches.
func (f *follower[T]) tellErrors(n int) []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.errors[max(0, len(f.errors)-n):]
}

// errorsSince returns the errors after the first n.
func (f *follower[T]) errorsSince(n int) []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.errors[n:]
}

// await blocks until the cache has a version.
func (f *follower[T]) await(t *testing.T, version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, f.WaitFor(ctx, version), "%s waits for version %s: %s", f.name, version, f.Status())
}

// awaitSynced blocks until the cache holds the first list.
func (f *follower[T]) awaitSynced(t *testing.T) {
	t.Helper()
	select {
	case <-f.Synced():
	case <-time.After(patience):
		require.Fail(t, "not synced", "%s: %s", f.name, f.Status())
	}
}

// agree creates a mark and waits until the cache has it. Then it requires that the cache equals a plain list, and that
// the handler got exactly these objects in a legal order. No other client may write to the collection meanwhile.
func (f *follower[T]) agree(t *testing.T) {
	t.Helper()
	f.await(t, f.collection.mark(t))
	want := f.plain(t)
	snapshot := f.Snapshot()
	requireSame(t, f.name+": cache", want, snapshot.All())
	f.mirror.agree(t, f.name+": handler", want)
	require.Zero(t, f.handler.Panics())
	require.Empty(t, f.Undecodable())
}

// differs returns an error if the cache differs from a plain list.
func (f *follower[T]) differs(t *testing.T) error {
	return difference(t, f.plain(t), f.Snapshot().All())
}

// letComeBack allows an Add of a deleted object, as after a restore.
func (f *follower[T]) letComeBack() {
	f.mirror.mu.Lock()
	defer f.mirror.mu.Unlock()
	f.mirror.whole = false
}

// plain returns the objects of a plain list.
func (f *follower[T]) plain(t *testing.T) map[api.Key][]byte {
	t.Helper()
	want := map[api.Key][]byte{}
	for _, raw := range f.collection.list(t, f.options.Selector.Labels, f.options.Selector.Fields) {
		object := decodePlain[T](t, f.collection.resource, raw)
		want[api.KeyOf(object)] = canonical(t, object)
	}
	return want
}

// decodePlain decodes an item of a list with the standard library. Items of built-in lists have no kind, which some
// types need.
func decodePlain[T any](t *testing.T, r api.Resource, raw []byte) T {
	t.Helper()
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &fields))
	fields["apiVersion"] = fmt.Appendf(nil, "%q", r.GroupVersion())
	fields["kind"] = fmt.Appendf(nil, "%q", r.Kind)
	whole := must.Get(json.Marshal(fields))(t)
	var object T
	require.NoError(t, json.Unmarshal(whole, &object))
	return object
}

// canonical encodes an object in one form, without fields that list items lack or informers drop.
func canonical(t require.TestingT, object any) []byte {
	b := must.Get(json.Marshal(object))(t)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(b, &fields))
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	b = must.Get(json.Marshal(fields))(t)
	return b
}

// requireSame compares objects with those of a plain list.
func requireSame[T api.Object](t *testing.T, what string, want map[api.Key][]byte, have func(func(api.Key, T) bool)) {
	t.Helper()
	require.NoError(t, difference(t, want, have), "%s and a plain list differ", what)
}

// difference returns an error that names up to ten missing, surplus and different objects each.
func difference[T api.Object](t require.TestingT, want map[api.Key][]byte, have func(func(api.Key, T) bool)) error {
	var extra, different []string
	found := make(map[api.Key]bool, len(want))
	for key, object := range have {
		plain, ok := want[key]
		found[key] = true
		switch got := canonical(t, object); {
		case !ok:
			extra = append(extra, key.String())
		case !bytes.Equal(plain, got):
			different = append(different, fmt.Sprintf("%s\n\tlist: %s\n\thave: %s\n", key, plain, got))
		}
	}
	var missing []string
	for key := range want {
		if !found[key] {
			missing = append(missing, key.String())
		}
	}
	if len(missing)+len(extra)+len(different) == 0 {
		return nil
	}
	const most = 10
	return fmt.Errorf("of %d: %d missing %v, %d too many %v, %d different %v", len(want),
		len(missing), missing[:min(most, len(missing))], len(extra), extra[:min(most, len(extra))],
		len(different), different[:min(most, len(different))])
}
