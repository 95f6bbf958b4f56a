//go:build !race

package cachedclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/explore"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/workqueue"
)

const (
	mostVersions  = 6
	gateTimeout   = 3 * time.Minute
	mostTriggers  = 3
	writesAtMost  = 2 // in one reconcile
	alphaOfServer = `{"apiVersion":"leat.test/v1","kind":"Widget","metadata":{"namespace":"default","name":"alpha","uid":"%d","resourceVersion":"%d"}}`
)

// gated is a server with the object alpha, an informer, and a controller with a gate. Its reconciles do what the
// exploration tells them.
type gated struct {
	history  []int // the UID of alpha after each version; zero: alpha does not exist
	informer *informer.Informer[*widget]
	client   *cachedclient.Typed[*widget]
	gate     *cachedclient.Gate
	sink     *controller.Sink[api.Key]
	cancel   context.CancelFunc
	variant  gateVariant

	deliver, expire chan struct{} // to the watch of the informer
	answer          error         // of the next write, after the server has applied it; or errNotApplied

	reconcile context.Context // of the reconcile that runs; nil without one
	former    context.Context // of the last one
	ends      chan error
	read      int // the version that it has read
	writes    int // in this reconcile
	triggers  int
	owed      bool         // an event or a failure has no reconcile yet
	own       int          // the version of the last write that was answered
	deleted   map[int]bool // the objects whose delete was answered, by UID
	timedOut  int64        // of the gate, when own was last written
	wrong     error
}

// gateVariant is a rule that a test breaks, outside of the package.
type gateVariant int

const (
	_            gateVariant = iota
	withoutGate              // the reconciler has no gate
	otherContext             // the reconciler writes with another context
)

var errNotApplied = errors.New("the request did not reach the server")

func (x *gated) fail(format string, args ...any) {
	if x.wrong == nil {
		x.wrong = fmt.Errorf(format, args...)
	}
}

func (x *gated) newest() int { return len(x.history) - 1 }

func (x *gated) uid() int { return x.history[x.newest()] }

// cached returns the version of the cache, and the UID and version of alpha in it.
func (x *gated) cached() (version, uid, at int) {
	s := x.informer.Snapshot()
	version, _ = strconv.Atoi(s.ResourceVersion())
	if w, ok := s.Get(alpha); ok {
		uid, _ = strconv.Atoi(string(w.UID))
		at, _ = strconv.Atoi(w.ResourceVersion)
	}
	return version, uid, at
}

func (x *gated) Collection() api.Collection { return api.Collection{Resource: widgets} }

func (x *gated) List(_ context.Context, _ api.Options[*widget], each func(*widget) error) (metav1.ListMeta, error) {
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(x.newest())}
	if x.uid() == 0 {
		return meta, nil
	}
	return meta, each(x.state(x.newest()))
}

// state returns alpha at a version. Each version changes it.
func (x *gated) state(version int) *widget {
	return at(strconv.Itoa(x.history[version]), strconv.Itoa(version), 0)
}

func (x *gated) Watch(ctx context.Context, o api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	return func(yield func(api.Event[*widget], error) bool) {
		version, _ := strconv.Atoi(o.ResourceVersion)
		for {
			select {
			case <-x.deliver:
				version++
				e := api.Event[*widget]{Type: watch.Modified, ResourceVersion: strconv.Itoa(version)}
				if x.history[version] == 0 {
					e.Type, e.Object = watch.Deleted, at(strconv.Itoa(x.history[version-1]), strconv.Itoa(version), 0)
				} else {
					e.Object = x.state(version)
				}
				if !yield(e, nil) {
					return
				}
			case <-x.expire:
				yield(api.Event[*widget]{}, apierrors.NewResourceExpired("too old"))
				return
			case <-ctx.Done():
				yield(api.Event[*widget]{}, ctx.Err())
				return
			}
		}
	}
}

// RoundTrip applies a write. Each write has one answer, and a repeated request has none.
func (x *gated) RoundTrip(r *http.Request) (*http.Response, error) {
	err := x.answer
	x.answer = errNotApplied
	if errors.Is(err, errNotApplied) {
		return nil, err
	}
	code, body := http.StatusOK, ""
	switch r.Method {
	case http.MethodPost:
		x.history = append(x.history, len(x.history))
	case http.MethodDelete:
		body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"%d"}}`, x.uid())
		x.history = append(x.history, 0)
	default:
		x.history = append(x.history, x.uid())
	}
	if err != nil {
		return nil, err
	}
	if body == "" {
		body = fmt.Sprintf(alphaOfServer, x.uid(), x.newest())
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// write lets the reconcile, or a goroutine that it has left behind, change, create or delete alpha.
func (x *gated) write(ctx context.Context, remove bool, answer error) {
	x.answer = answer
	x.writes++
	if x.variant == otherContext {
		ctx = context.Background()
	}
	uid := x.uid()
	var err error
	switch {
	case uid == 0:
		_, err = x.client.Create(ctx, named("alpha", 0), metav1.CreateOptions{})
	case remove:
		err = x.client.Delete(ctx, alpha, metav1.DeleteOptions{})
	default:
		_, err = x.client.Patch(ctx, alpha, apiclient.Patch{Type: types.MergePatchType, Data: []byte("{}")}, apiclient.PatchOptions{})
	}
	synctest.Wait()
	if (err == nil) != (answer == nil) {
		x.fail("the write returns %v and not %v", err, answer)
	}
	if err != nil {
		return
	}
	if n := x.gate.Stats().TimedOut; n != x.timedOut { // the gate has given up the writes before
		x.timedOut, x.own = n, 0
		clear(x.deleted)
	}
	// The gate cannot know from which version on the cache lacks an object that neither it nor an answer had.
	if _, cached, _ := x.cached(); !remove || uid == 0 {
		x.own = x.newest()
	} else if cached == uid || x.own > 0 && x.history[x.own] == uid {
		x.deleted[uid] = true
	}
}

// begin is the reconcile. It reads the cache at its beginning.
func (x *gated) begin(ctx context.Context, _ api.Key) (controller.Result, error) {
	version, uid, _ := x.cached()
	x.read = version
	if x.gate.Stats().TimedOut == x.timedOut {
		if version < x.own {
			x.fail("a reconcile reads version %d, and an earlier one has written version %d", version, x.own)
		}
		if uid != 0 && x.deleted[uid] {
			x.fail("a reconcile reads an object that an earlier one has deleted")
		}
	}
	if x.reconcile != nil {
		x.fail("two reconciles of one key")
	}
	x.reconcile, x.owed, x.writes = ctx, false, 0
	err := <-x.ends
	x.former, x.reconcile = ctx, nil
	return controller.Result{}, err
}

func newGated(v gateVariant) *gated {
	x := &gated{
		history: []int{0, 1}, variant: v, deliver: make(chan struct{}), expire: make(chan struct{}), ends: make(chan error),
		deleted: map[int]bool{}, gate: cachedclient.NewGate(cachedclient.GateOptions{Timeout: gateTimeout}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	live, err := apiclient.New(apiclient.Config{Host: "http://server.memory", Transport: fixture.RoundTripper(x.RoundTrip)})
	if err != nil {
		x.fail("apiclient.New: %v", err)
	}
	x.informer = informer.New[*widget](x, informer.Options[*widget]{Tuning: reflector.Tuning{NoWatchList: true}})
	x.client = cachedclient.NewTyped(apiclient.NewTyped[*widget](live, widgets, ""), x.informer, cachedclient.Options{})
	var r controller.Reconciler[api.Key] = controller.Func[api.Key](x.begin)
	if v != withoutGate {
		r = controller.Gated(r, x.gate)
	}
	c := controller.New("explored", r, controller.Options{
		Workers: 2, CacheSyncTimeout: -1, Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Second, Max: time.Second}},
		Tuning: controller.Tuning{StuckAfter: -1, History: -1},
	})
	c.Watch(controller.SourceFunc("events", func(ctx context.Context, sink *controller.Sink[api.Key]) error {
		x.sink = sink
		<-ctx.Done()
		return nil
	}))
	go func() { _ = x.informer.Run(ctx) }()
	go func() { _ = c.Run(ctx) }()
	synctest.Wait()
	return x
}

func (x *gated) close() {
	x.cancel()
	if x.reconcile != nil {
		x.ends <- nil
	}
	synctest.Wait()
}

func (x *gated) rest() error {
	version, uid, _ := x.cached()
	switch {
	case x.owed:
		return errors.New("an event is lost")
	case version != x.newest() || uid != x.uid():
		return fmt.Errorf("the cache has version %d, and the server %d", version, x.newest())
	case x.gate.Stats().Waiting > 0:
		return errors.New("the gate holds a key back")
	}
	return nil
}

func (x *gated) key(to []byte) []byte {
	version, uid, cached := x.cached()
	s := x.gate.Stats()
	var deleted []int
	for uid := range x.deleted {
		deleted = append(deleted, uid)
	}
	slices.Sort(deleted)
	return fmt.Append(to, x.history, version, uid, cached, x.reconcile != nil, x.former != nil, x.writes, x.triggers, x.owed, x.own, deleted,
		s.TimedOut-x.timedOut, s.Keys, s.Waiting)
}

// parts returns what the server, the cache, the gate and the controller have.
func (x *gated) parts() []string {
	version, uid, _ := x.cached()
	return []string{
		fmt.Sprintf("server: version %d, alpha exists: %v", x.newest(), x.uid() > 0),
		fmt.Sprintf("cache: version %d, alpha exists: %v", version, uid > 0),
		fmt.Sprintf("gate: holds %d keys back", x.gate.Stats().Waiting),
		fmt.Sprintf("controller: the last reconcile has read version %d, and still runs: %v", x.read, x.reconcile != nil),
	}
}

func gateMachine(v gateVariant) explore.Machine[*gated] {
	behind := func(x *gated) bool { version, _, _ := x.cached(); return version < x.newest() }
	busy := func(x *gated) bool { return x.reconcile != nil }
	mayWrite := func(x *gated) bool { return busy(x) && x.writes < writesAtMost && x.newest() < mostVersions }
	end := func(err error) func(*gated) {
		return func(x *gated) {
			x.owed = x.owed || err != nil
			x.ends <- err
			synctest.Wait()
		}
	}
	steps := []explore.Step[*gated]{
		explore.Fair("the reconcile ends", busy, end(nil)),
		explore.Fair("the cache receives an event", behind, func(x *gated) { x.deliver <- struct{}{}; synctest.Wait() }),
		explore.Fair("two seconds pass", func(x *gated) bool { return x.owed && x.reconcile == nil && x.gate.Stats().Waiting == 0 },
			func(x *gated) { fixture.Pass(2 * time.Second) }),
		explore.Do("the reconcile fails", busy, end(errors.New("failed"))),
		explore.Do("an event adds the key", func(x *gated) bool { return x.triggers < mostTriggers }, func(x *gated) {
			x.triggers++
			x.owed = true
			x.sink.Add(owner, workqueue.Item{})
			synctest.Wait()
		}),
		explore.Do("the watch expires, and a list follows", behind, func(x *gated) { x.expire <- struct{}{}; fixture.Pass(5 * time.Second) }),
		explore.Do("another client writes", func(x *gated) bool { return x.newest() < mostVersions && x.uid() > 0 }, func(x *gated) {
			x.history = append(x.history, x.uid())
		}),
		explore.Do("the timeout of the gate passes", func(x *gated) bool { return x.gate.Stats().Waiting > 0 }, func(x *gated) { fixture.Pass(gateTimeout) }),
		explore.Do("a goroutine of the last reconcile writes", func(x *gated) bool {
			return x.former != nil && !busy(x) && x.writes < writesAtMost && x.newest() < mostVersions
		}, func(x *gated) { x.write(x.former, false, nil) }),
	}
	for _, remove := range []bool{false, true} {
		for _, answer := range []error{nil, io.ErrUnexpectedEOF, errNotApplied} {
			what := map[bool]string{true: "deletes", false: "writes"}[remove]
			steps = append(steps, explore.Do(fmt.Sprintf("the reconcile %s, error: %v", what, answer), func(x *gated) bool {
				return mayWrite(x) && (!remove || x.uid() > 0)
			}, func(x *gated) { x.write(x.reconcile, remove, answer) }))
		}
	}
	return explore.Machine[*gated]{
		New: func() *gated { return newGated(v) }, Close: (*gated).close, Steps: steps, Key: (*gated).key,
		Check: func(x *gated) error { return x.wrong }, Rest: (*gated).rest, FairSteps: 30,
		Lines: (*gated).parts,
	}
}

// TestExplore makes every order of events, lists, reconciles, their writes and their failures.
func TestExplore(t *testing.T) {
	explore.Test(t, gateMachine(0).World(), explore.Options{Depth: 30, States: 1_000, Around: explore.InBubbles(t)})
}

// Each variant breaks a rule that a controller needs. The exploration must find it.
func TestExploreFindsBrokenRules(t *testing.T) {
	for v, c := range map[gateVariant][2]string{
		withoutGate:  {"missing_gate", "The reconciler has no gate."},
		otherContext: {"other_context", "The reconciler writes with a context that is not the one of its reconcile."},
	} {
		o := explore.Options{Depth: 8, States: 5_000, Around: explore.InBubbles(t)}
		gateMachine(v).Show(t, o, "an earlier one has", "../docs/counterexamples/"+c[0]+".txt", c[1], "A reconcile does not read a state from before the writes of earlier reconciles of the same key (package cachedclient, 5).")
	}
}
