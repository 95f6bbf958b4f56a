package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/reflector"
)

// thing is a minimal object. A transform counts in transformed.
type thing struct {
	namespace          string
	name, uid, version string
	content            string
	transformed        int
}

func (t *thing) GetNamespace() string       { return t.namespace }
func (t *thing) GetName() string            { return t.name }
func (t *thing) GetUID() types.UID          { return types.UID(t.uid) }
func (t *thing) GetResourceVersion() string { return t.version }
func (t *thing) String() string             { return t.name + "@" + t.version }

// at returns a state of an object whose UID is its name.
func at(name, version string) *thing { return &thing{name: name, uid: name, version: version} }

func (t *thing) as(uid string) *thing { t.uid = uid; return t }

// A script has one answer for each request, in order. The steps of an answer are the objects of a list, events, pauses
// (a time.Duration), undecodable objects, and the end: an error, or the metadata of a list. A watch may end without an
// error; stay keeps it open until the client cancels.
type script []answer

type answer struct {
	verb  string // "list", "watchlist", "watch" or "probe"
	steps []any
}

type (
	stayOpen struct{}
	accepted struct{}
	// cutOff ends a list with an error after its metadata has arrived.
	cutOff struct {
		meta metav1.ListMeta
		err  error
	}
)

// endless makes steps without an end: make(0), make(1), and so on.
type endless struct {
	n    int
	make func(n int) []any
}

func (e *endless) next() []any {
	e.n++
	return e.make(e.n - 1)
}

// ask is a step that calls a function.
type ask func(b *bench)

var (
	stay = stayOpen{}
	open = accepted{} // the server has accepted the watch
)

func list(version string, steps ...any) answer {
	return answer{"list", append(slices.Clone(steps), metav1.ListMeta{ResourceVersion: version})}
}

func pageOf(version, token string, steps ...any) answer {
	return answer{"list", append(slices.Clone(steps), metav1.ListMeta{ResourceVersion: version, Continue: token})}
}

func failedList(steps ...any) answer { return answer{"list", steps} }

// probed answers a probe with a version, failedProbe with an error. A probe for which the script has no answer confirms
// the version, and is not recorded.
func probed(version string) answer {
	return answer{"probe", []any{metav1.ListMeta{ResourceVersion: version}}}
}

func failedProbe(steps ...any) answer { return answer{"probe", steps} }

func watchList(steps ...any) answer { return answer{"watchlist", steps} }
func watch(steps ...any) answer     { return answer{"watch", steps} }

// afterDeadline returns a step that lets d pass and ignores the context of the request.
func afterDeadline(d time.Duration) ask { return func(*bench) { <-time.After(d) } }

func event(kind apiwatch.EventType, t *thing) api.Event[*thing] {
	return api.Event[*thing]{Type: kind, Object: t, ResourceVersion: t.version}
}

func added(t *thing) any    { return event(apiwatch.Added, t) }
func modified(t *thing) any { return event(apiwatch.Modified, t) }
func deleted(t *thing) any  { return event(apiwatch.Deleted, t) }

func bookmark(version string) any {
	return api.Event[*thing]{Type: apiwatch.Bookmark, ResourceVersion: version}
}

func initialEnd(version string) any {
	return api.Event[*thing]{Type: apiwatch.Bookmark, ResourceVersion: version, InitialEventsEnd: true}
}

var errBad = errors.New("not a thing")

// bad returns an object that cannot be decoded; kind is empty in a list.
func bad(kind apiwatch.EventType, t *thing) *api.UndecodableError {
	return &api.UndecodableError{Key: api.KeyOf(t), UID: t.GetUID(), ResourceVersion: t.version, Type: kind, Err: errBad}
}

// The errors of a server and of a network.
var (
	errExpired  = apierrors.NewResourceExpired("too old resource version")
	errForbid   = apierrors.NewForbidden(things.GroupResource(), "", errors.New("no"))
	errInvalid  = apierrors.NewInvalid(things.GroupVersionKind().GroupKind(), "", nil)
	errInternal = apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	errRefused  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset    = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

func errTooMany(seconds int) error { return apierrors.NewTooManyRequests("slow down", seconds) }

func errTooLarge() error {
	err := apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

func errTooLargeLegacy() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "Too large resource version: 9, current: 5"}}
}

var things = api.Resource{Group: "test", Version: "v1", Kind: "Thing", Plural: "things"}

// fake is a ListerWatcher that follows a script. After its end, requests get no answer.
type fake struct {
	t     *testing.T
	b     *bench
	start time.Time

	mu sync.Mutex // guards the fields below
	inquiry
	open int // requests being answered
}

// inquiry contains the requests that a fake got, and the rest of its script.
type inquiry struct {
	script   script
	requests []string
	options  []api.Options[*thing]
	contexts []context.Context
}

func (f *fake) asked() inquiry {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.inquiry
	i.requests, i.options, i.contexts = slices.Clone(i.requests), slices.Clone(i.options), slices.Clone(i.contexts)
	return i
}

func (f *fake) Collection() api.Collection { return api.Collection{Resource: things} }

// begin notes a request and returns the steps of its answer.
func (f *fake) begin(ctx context.Context, verb string, o api.Options[*thing]) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.requests = append(f.requests, fmt.Sprintf("%s %s", time.Since(f.start), describe(verb, o.ListOptions)))
	f.options = append(f.options, o)
	f.contexts = append(f.contexts, ctx)
	if len(f.script) == 0 {
		return []any{stay}
	}
	a := f.script[0]
	f.script = f.script[1:]
	if a.verb != verb {
		f.t.Errorf("the script has a %s, but the request is a %s; requests: %v", a.verb, verb, f.requests)
		return []any{stay}
	}
	return a.steps
}

// expects reports whether the next answer of the script is for a request of this verb.
func (f *fake) expects(verb string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.script) > 0 && f.script[0].verb == verb
}

// forget drops the options, because their callbacks refer to the staged objects.
func (f *fake) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.options = nil
}

func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
}

// describe returns a short text for a request.
func describe(verb string, o metav1.ListOptions) string {
	s := verb
	if verb == "probe" {
		return s
	}
	if o.Continue == "" {
		s += " rv=" + o.ResourceVersion
	} else {
		s += " continue=" + o.Continue
	}
	if o.Limit > 0 {
		s += fmt.Sprint(" limit=", o.Limit)
	}
	if o.ResourceVersionMatch != "" {
		s += " " + string(o.ResourceVersionMatch)
	}
	return s
}

// perform executes steps that lists and watches have in common. It returns the first other step and the rest.
func (f *fake) perform(ctx context.Context, o api.Options[*thing], steps []any) (step any, rest []any, err error) {
	for len(steps) > 0 {
		step := steps[0]
		steps = steps[1:]
		switch step := step.(type) {
		case *endless:
			steps = slices.Concat(step.next(), []any{step}, steps)
		case time.Duration:
			select {
			case <-time.After(step):
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		case ask:
			step(f.b)
		case accepted:
			if o.OnOpen != nil {
				o.OnOpen()
			}
		case stayOpen:
			<-ctx.Done()
			return nil, nil, ctx.Err()
		case error:
			var u *api.UndecodableError
			if !errors.As(step, &u) {
				return nil, nil, step
			}
			if o.OnUndecodable == nil {
				return nil, nil, u
			}
			if err := o.OnUndecodable(u); err != nil {
				return nil, nil, err
			}
		default:
			return step, steps, nil
		}
	}
	return nil, nil, nil
}

// decode returns the known object of the same version, or a copy, like a decoder.
func decode(o api.Options[*thing], t *thing) *thing {
	if o.Known != nil {
		if known, ok := o.Known(nil, []byte(t.name)); ok && api.SameVersion(known, t) {
			return known
		}
	}
	fresh := *t
	return &fresh
}

func (f *fake) List(ctx context.Context, o api.Options[*thing], each func(*thing) error) (metav1.ListMeta, error) {
	verb := "list"
	if strings.Contains(o.FieldSelector, "leat-probe") {
		verb = "probe"
	}
	if verb == "probe" && !f.expects("probe") {
		return metav1.ListMeta{}, nil
	}
	steps := f.begin(ctx, verb, o)
	defer f.end()
	for {
		step, rest, err := f.perform(ctx, o, steps)
		if err != nil {
			return metav1.ListMeta{}, err
		}
		steps = rest
		switch step := step.(type) {
		case metav1.ListMeta:
			return step, nil
		case cutOff:
			return step.meta, step.err
		case *thing:
			if err := each(decode(o, step)); err != nil {
				return metav1.ListMeta{}, err
			}
		default:
			panic(fmt.Sprintf("a list has no %T", step))
		}
	}
}

func (f *fake) Watch(ctx context.Context, o api.Options[*thing]) iter.Seq2[api.Event[*thing], error] {
	return func(yield func(api.Event[*thing], error) bool) {
		verb := "watch"
		if o.SendInitialEvents != nil && *o.SendInitialEvents {
			verb = "watchlist"
		}
		steps := f.begin(ctx, verb, o)
		defer f.end()
		for {
			step, rest, err := f.perform(ctx, o, steps)
			if err != nil {
				yield(api.Event[*thing]{}, err)
				return
			}
			if steps = rest; step == nil {
				return
			}
			e := step.(api.Event[*thing])
			if e.Object != nil && e.Type != apiwatch.Deleted {
				e.Object = decode(o, e.Object)
			} else if e.Object != nil {
				fresh := *e.Object
				e.Object = &fresh
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// recorder is a DeltaFIFO that records its calls.
type recorder struct {
	*deltafifo.DeltaFIFO[*thing]
	mu    sync.Mutex // guards the field below, and the store while a test reads it
	calls []string
	list  []*thing // the last list
}

func newRecorder() *recorder {
	return &recorder{DeltaFIFO: deltafifo.New[*thing]()}
}

func (r *recorder) record(f func(), format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, a...))
	f()
}

func (r *recorder) log() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *recorder) Put(t *thing, version string) {
	r.record(func() { r.DeltaFIFO.Put(t, version) }, "put %s at %s", t, version)
}

func (r *recorder) Delete(t *thing, version string) {
	r.record(func() { r.DeltaFIFO.Delete(t, version) }, "delete %s at %s", t, version)
}

func (r *recorder) DeleteKey(key api.Key, version string) {
	r.record(func() { r.DeltaFIFO.DeleteKey(key, version) }, "delete key %s at %s", api.FormatKey(key), version)
}

// Replace records "overwrite" if the list has another pointer for a known object of the same version.
func (r *recorder) Replace(list []*thing, version string) {
	r.list = slices.Clone(list)
	verb := "replace"
	for _, object := range list {
		if known, ok := r.Get(api.KeyOf(object)); ok && known != object && api.SameVersion(known, object) {
			verb = "overwrite"
		}
	}
	r.record(func() { r.DeltaFIFO.Replace(list, version) }, "%s %v at %s", verb, sorted(list), version)
}

func (r *recorder) Bookmark(version string) {
	r.record(func() { r.DeltaFIFO.Bookmark(version) }, "bookmark %s", version)
}

func sorted(list []*thing) []*thing {
	return slices.SortedFunc(slices.Values(list), func(a, b *thing) int { return strings.Compare(a.name, b.name) })
}

// bench has a reflector, its fake ListerWatcher and its store, in a bubble.
type bench struct {
	*reflector.Reflector[*thing]
	t      *testing.T
	lw     *fake
	store  *recorder
	cancel context.CancelFunc
	ended  chan error
	over   bool              // ended has no element any more
	last   map[string]*thing // the last states of deleted objects
}

type options = reflector.Options[*thing]

// run starts a reflector, without jitter if o.Rand is nil, and returns when it waits. The end of the test stops it.
func run(t *testing.T, o options, s ...answer) *bench {
	t.Helper()
	return runAs(t, o, func(lw *fake) api.ListerWatcher[*thing] { return lw }, s...)
}

// runAs is run for a ListerWatcher that wraps the fake.
func runAs(t *testing.T, o options, wrap func(*fake) api.ListerWatcher[*thing], s ...answer) *bench {
	t.Helper()
	store := newRecorder()
	if o.Rand == nil {
		o.Rand = func() float64 { return 0 }
	}
	lw := &fake{t: t, start: time.Now(), inquiry: inquiry{script: s}}
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{
		Reflector: reflector.New[*thing](wrap(lw), store, o), t: t, lw: lw, store: store, cancel: cancel, ended: make(chan error, 1),
	}
	lw.b = b
	go func() { b.ended <- b.Run(ctx) }()
	t.Cleanup(b.stop)
	synctest.Wait()
	return b
}

// pass lets d pass.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// wait returns the error of Run.
func (b *bench) wait() error {
	b.over = true
	return <-b.ended
}

// stop ends the reflector and expects that it ends at once. After the end it does nothing.
func (b *bench) stop() {
	b.t.Helper()
	if b.over {
		return
	}
	start := time.Now()
	b.cancel()
	require.NoError(b.t, b.wait())
	require.Zero(b.t, time.Since(start), "Run did not return at once")
	require.Equal(b.t, reflector.Stopped, b.Status().Phase)
	b.lw.mu.Lock()
	defer b.lw.mu.Unlock()
	require.Zero(b.t, b.lw.open, "a request is still open")
}

// expectRequests asserts the requests so far, and that the script is at its end.
func (b *bench) expectRequests(want ...string) {
	b.t.Helper()
	require.Equal(b.t, want, b.lw.asked().requests)
	require.Empty(b.t, b.lw.asked().script, "the script is not at its end")
}

// expectStore asserts the calls of the store so far.
func (b *bench) expectStore(want ...string) {
	b.t.Helper()
	if len(want) == 0 {
		want = nil
	}
	require.Equal(b.t, want, b.store.log())
}

func (b *bench) known(name string) *thing {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	t, _ := b.store.Get(api.Key{Name: name})
	return t
}

// bubble runs a subtest in its own bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func withRemaining(meta any, n *int64) any {
	m := meta.(metav1.ListMeta)
	m.RemainingItemCount = n
	return m
}

// changes pops the changes of the store, by name. It keeps the last states of deleted objects in last.
func (b *bench) changes() map[string][]string {
	b.t.Helper()
	all := map[string][]string{}
	b.last = map[string]*thing{}
	require.NoError(b.t, b.store.Pop(b.t.Context(), func(batch deltafifo.Batch[*thing]) {
		for _, o := range batch.Objects {
			for _, d := range o.Changes {
				all[o.Key.Name] = append(all[o.Key.Name], d.Type.String()+" "+d.Object.String())
				if d.Type == api.Deleted {
					b.last[o.Key.Name] = d.Object
				}
			}
		}
	}))
	return all
}
