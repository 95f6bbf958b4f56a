package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/reflector"
)

// world is a server that keeps the protocol, with its own history, behind an unreliable network.
type world struct {
	mu      sync.Mutex // guards the fields below
	r       *rand.Rand
	trouble bool // faults happen
	state   map[string]*thing
	events  []api.Event[*thing] // the whole history; events up to compacted are expired
	version int
	// compacted is the oldest version that a watch may begin at. states has the objects of each version.
	compacted int
	states    map[int]map[string]*thing
	uids      int
	changed   chan struct{} // closed at the next change
	cut       chan struct{} // closed when all connections break

	watchLists bool // it supports WatchLists
	finishes   bool // it sends the bookmark that ends the initial state
	cache      bool // it does not page lists of any version, and they may be old
	seen       map[string]int
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 3))
	w := &world{
		r: r, trouble: true, state: map[string]*thing{}, states: map[int]map[string]*thing{}, version: 1,
		changed: make(chan struct{}), cut: make(chan struct{}), seen: map[string]int{},
		watchLists: r.IntN(3) > 0, finishes: r.IntN(4) > 0, cache: r.IntN(2) == 0,
	}
	w.states[1] = map[string]*thing{}
	return w
}

// chance is true once in n times while faults happen, and counts it.
func (w *world) chance(n int, what string) bool {
	if !w.trouble || w.r.IntN(n) > 0 {
		return false
	}
	w.seen[what]++
	return true
}

// change makes one random change.
func (w *world) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := string(rune('a' + w.r.IntN(12)))
	old := w.state[name]
	w.version++
	next := &thing{name: name, version: strconv.Itoa(w.version), content: fmt.Sprint("content ", w.r.Int())}
	e := api.Event[*thing]{Type: apiwatch.Modified, Object: next, ResourceVersion: next.version}
	if w.chance(8, "undecodable") {
		next.content = "bad"
	}
	switch {
	case old == nil:
		w.uids++
		next.uid, e.Type = strconv.Itoa(w.uids), apiwatch.Added
	case w.r.IntN(3) == 0:
		next.uid, next.content, e.Type = old.uid, old.content, apiwatch.Deleted
	default:
		next.uid = old.uid
	}
	if w.state[name] = next; e.Type == apiwatch.Deleted {
		delete(w.state, name)
	}
	w.events = append(w.events, e)
	w.states[w.version] = maps.Clone(w.state)
	close(w.changed)
	w.changed = make(chan struct{})
}

// compact forgets the history.
func (w *world) compact() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.compacted = w.version
	w.seen["compacted"]++
}

// restore sets the state back to an older one and breaks all connections.
func (w *world) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	back := max(1, w.version-1-w.r.IntN(20))
	w.events = slices.DeleteFunc(w.events, func(e api.Event[*thing]) bool { return number(e.ResourceVersion) > back })
	w.version, w.compacted, w.state = back, min(w.compacted, back), maps.Clone(w.states[back])
	maps.DeleteFunc(w.states, func(v int, _ map[string]*thing) bool { return v > back })
	close(w.cut)
	w.cut = make(chan struct{})
	w.seen["restored"]++
}

func (w *world) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = false
}

func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

func (w *world) Collection() api.Collection { return api.Collection{Resource: things} }

// refusal returns a random error of a request, or nil.
func (w *world) refusal() error {
	switch {
	case w.chance(20, "refused"):
		return errRefused
	case w.chance(20, "429"):
		return errTooMany(w.r.IntN(3))
	case w.chance(20, "500"):
		return errInternal
	case w.chance(60, "403"):
		return errForbid
	default:
		return nil
	}
}

// admit checks the version of a list request and returns the version of the answer.
func (w *world) admit(o metav1.ListOptions) (at int, err error) {
	want := number(o.ResourceVersion)
	if err := w.refusal(); err != nil {
		return 0, err
	}
	if want > w.version {
		w.seen["too large"]++
		return 0, errTooLarge()
	}
	if w.cache && o.ResourceVersion == "0" && w.version > 5 && w.chance(2, "old list") {
		return w.version - w.r.IntN(5), nil
	}
	return w.version, nil
}

// page answers one list request.
func (w *world) page(o metav1.ListOptions) (items []*thing, meta metav1.ListMeta, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, from := 0, ""
	if o.Continue != "" {
		version, last, _ := strings.Cut(o.Continue, "/")
		at, from = number(version), last
		if err := w.refusal(); err != nil {
			return nil, meta, err
		}
		if w.states[at] == nil || at < w.compacted || w.chance(4, "token expired") {
			return nil, meta, errExpired
		}
	} else if at, err = w.admit(o); err != nil {
		return nil, meta, err
	}
	meta.ResourceVersion = strconv.Itoa(at)
	for _, name := range slices.Sorted(maps.Keys(w.states[at])) {
		if name <= from {
			continue
		}
		if o.Limit > 0 && int64(len(items)) == o.Limit && (o.ResourceVersion != "0" || !w.cache) {
			meta.Continue = fmt.Sprintf("%d/%s", at, items[len(items)-1].name)
			break
		}
		items = append(items, w.states[at][name])
	}
	return items, meta, nil
}

func (w *world) List(ctx context.Context, o api.Options[*thing], each func(*thing) error) (metav1.ListMeta, error) {
	items, meta, err := w.page(o.ListOptions)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	for _, t := range items {
		if w.fails(15, "list cut") {
			return metav1.ListMeta{}, io.ErrUnexpectedEOF
		}
		if err := w.hand(o, "", t, each); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return meta, ctx.Err()
}

func (w *world) fails(n int, what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance(n, what)
}

// hand decodes an object and passes it to to.
func (w *world) hand(o api.Options[*thing], kind apiwatch.EventType, t *thing, to func(*thing) error) error {
	if t.content == "bad" {
		return o.OnUndecodable(bad(kind, t))
	}
	if kind == apiwatch.Deleted {
		last := *t
		return to(&last)
	}
	return to(decode(o, t))
}

// begin opens a watch. It returns the initial events, their version, and a channel that is closed when the connection
// breaks.
func (w *world) begin(o metav1.ListOptions) (initial []api.Event[*thing], at int, cut chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusal(); err != nil {
		return nil, 0, nil, err
	}
	at = number(o.ResourceVersion)
	if o.SendInitialEvents == nil {
		if at < w.compacted {
			w.seen["410"]++
			return nil, 0, nil, errExpired
		}
		return nil, at, w.cut, nil
	}
	if !w.watchLists {
		w.seen["no WatchList"]++
		return nil, 0, nil, errInvalid
	}
	if at > w.version {
		w.seen["too large"]++
		return nil, 0, nil, errTooLarge()
	}
	for _, name := range slices.Sorted(maps.Keys(w.state)) {
		t := w.state[name]
		initial = append(initial, api.Event[*thing]{Type: apiwatch.Added, Object: t, ResourceVersion: t.version})
	}
	if w.finishes {
		initial = append(initial, api.Event[*thing]{Type: apiwatch.Bookmark, ResourceVersion: strconv.Itoa(w.version), InitialEventsEnd: true})
	}
	return initial, w.version, w.cut, nil
}

// following returns the events of a watch after a version, and a channel that is closed at the next change.
func (w *world) following(at int, sent []api.Event[*thing]) (next []api.Event[*thing], changed chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.chance(80, "410 in a watch"):
		return nil, nil, errExpired
	case w.chance(40, "watch reset"):
		return nil, nil, errReset
	case w.chance(40, "watch closed"):
		return nil, nil, io.EOF
	}
	for _, e := range w.events {
		if number(e.ResourceVersion) > at {
			next = append(next, e)
		}
	}
	if len(next) > 1 && w.chance(4, "sent late") {
		e := next[0]
		next = append(next[1:], e) // one event later than its successors, in the same watch
	}
	if len(sent) > 0 && len(next) > 0 && w.chance(4, "sent twice") {
		next = append(next, sent[w.r.IntN(len(sent))])
	}
	return next, w.changed, nil
}

func (w *world) Watch(ctx context.Context, o api.Options[*thing]) iter.Seq2[api.Event[*thing], error] {
	return func(yield func(api.Event[*thing], error) bool) {
		if err := w.pump(ctx, o, func(e api.Event[*thing]) bool { return yield(e, nil) }); err != nil && err != io.EOF {
			yield(api.Event[*thing]{}, err)
		}
	}
}

// pump sends the events of a watch until it ends. io.EOF and nil are ends without an error.
func (w *world) pump(ctx context.Context, o api.Options[*thing], yield func(api.Event[*thing]) bool) error {
	next, at, cut, err := w.begin(o.ListOptions)
	if err != nil {
		return err
	}
	from := at
	timeout := time.After(time.Duration(*o.TimeoutSeconds) * time.Second)
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	var sent []api.Event[*thing]
	for {
		for _, e := range next {
			at = max(at, number(e.ResourceVersion))
			stopped := false
			err := error(nil)
			if e.Object == nil {
				stopped = !yield(e)
			} else if err = w.hand(o, e.Type, e.Object, func(t *thing) error { e.Object = t; stopped = !yield(e); return nil }); err != nil {
				return err
			}
			if stopped {
				return nil
			}
			if e.Object != nil {
				sent = append(sent, e)
			}
		}
		var changed chan struct{}
		if next, changed, err = w.following(at, sent); err != nil {
			return err
		}
		if len(next) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return io.EOF
		case <-cut:
			return errReset
		case <-changed:
		case <-minute.C:
			next = w.bookmark(from)
		}
	}
}

// bookmark returns the bookmark that a watch sends each minute, or nothing before the server passes the version that
// the watch began at, so a watch from a version that the server has not reached is silent.
func (w *world) bookmark(from int) []api.Event[*thing] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.version <= from {
		return nil
	}
	return []api.Event[*thing]{{Type: apiwatch.Bookmark, ResourceVersion: strconv.Itoa(w.version)}}
}

// mirror applies batches, and fails if they are not a legal history.
type mirror struct {
	t       *testing.T
	objects map[string]*thing
}

func (m *mirror) apply(b deltafifo.Batch[*thing]) {
	for _, o := range b.Objects {
		for _, d := range o.Changes {
			old := m.objects[o.Key.Name]
			if old != nil {
				require.Equal(m.t, old.uid, d.Object.uid)
			}
			require.Equal(m.t, 1, d.Object.transformed, "%s %s", d.Type, d.Object)
			switch d.Type {
			case api.Added:
				require.Nil(m.t, old)
			case api.Updated:
				require.NotNil(m.t, old)
			case api.Deleted:
				require.NotNil(m.t, old)
				delete(m.objects, o.Key.Name)
				continue
			}
			m.objects[o.Key.Name] = d.Object
		}
	}
}

// TestSimulation runs random faults of every kind against random servers, and then compares the store with the server.
func TestSimulation(t *testing.T) {
	seen := map[string]int{}
	seeds := uint64(150)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed, seen) })
		})
	}
	if testing.Short() {
		return
	}
	for _, what := range []string{
		"undecodable", "compacted", "restored", "refused", "429", "500", "403", "too large", "old list", "token expired", "list cut",
		"410", "no WatchList", "410 in a watch", "watch reset", "watch closed", "sent late", "sent twice",
		"overwritten", "stale", "backwards", "stalled WatchList",
	} {
		require.Positive(t, seen[what], "no seed had %q: %v", what, seen)
	}
}

func simulate(t *testing.T, seed uint64, seen map[string]int) {
	w := newWorld(seed)
	r := rand.New(rand.NewPCG(seed, 4))
	for range 10 {
		w.change()
	}
	fifo := newRecorder()
	stalls := 0
	subject := reflector.New[*thing](w, fifo, options{
		Tuning:    reflector.Tuning{PageSize: int64(r.IntN(2) * 3), Rand: r.Float64},
		Transform: func(t *thing) (*thing, error) { t.transformed++; return t, nil },
		Hooks: reflector.Hooks{OnError: func(err error) {
			if errors.Is(err, reflector.ErrStalled) {
				stalls++
			}
		}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { require.NoError(t, subject.Run(ctx)) })
	m := &mirror{t: t, objects: map[string]*thing{}}
	all.Go(func() {
		for fifo.Pop(ctx, m.apply) == nil {
		}
	})
	live(w, rand.New(rand.NewPCG(seed, 5)))
	w.calm()
	<-time.After(30 * time.Minute)
	synctest.Wait()
	compare(t, w, m, subject.Undecodable(), subject.Status())
	cancel()
	all.Wait()
	for what, n := range w.seen {
		seen[what] += n
	}
	counters := subject.Status().Counters
	seen["stale"] += counters.Stale
	seen["backwards"] += counters.Backwards
	seen["stalled WatchList"] += stalls
	for _, call := range fifo.log() {
		if strings.HasPrefix(call, "overwrite") {
			seen["overwritten"]++
		}
	}
}

// live makes changes, pauses, compactions and restores.
func live(w *world, r *rand.Rand) {
	for range 250 {
		switch n := r.IntN(100); {
		case n < 70:
			for range 1 + r.IntN(4) {
				w.change()
			}
			<-time.After(time.Duration(r.IntN(3000)) * time.Millisecond)
		case n < 96:
			<-time.After(time.Duration(r.IntN(100)) * time.Second)
		case n < 98:
			w.compact()
		default:
			w.restore()
			// Without this pause, the server could reach the version of its clients before they connect again. Then no
			// client can notice the restore.
			<-time.After(time.Minute)
		}
	}
}

// compare expects that the mirror equals the world. Of an undecodable object the mirror has an older state or none.
func compare(t *testing.T, w *world, m *mirror, undecodable []*api.UndecodableError, s reflector.Status) {
	t.Helper()
	bad := map[string]bool{}
	for name, want := range w.state {
		got := m.objects[name]
		if want.content == "bad" {
			bad[name] = true
			require.True(t, got == nil || got.uid == want.uid, "%v is left of %v", got, want)
			continue
		}
		require.NotNil(t, got, "%v is missing; %+v", want, s)
		require.Equal(t, want.String()+want.uid+want.content, got.String()+got.uid+got.content)
	}
	for name, got := range m.objects {
		require.NotNil(t, w.state[name], "%v should be deleted; %+v", got, s)
	}
	require.Len(t, undecodable, len(bad))
	for _, e := range undecodable {
		require.True(t, bad[e.Key.Name], "%v", e)
	}
	require.Equal(t, reflector.Watching, s.Phase)
}
