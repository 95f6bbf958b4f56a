package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/e2e/proxy"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
)

// TestKilledInMidWatch kills the API server while an informer watches. The cached objects stay, and the watch continues
// when the server is back.
func TestKilledInMidWatch(t *testing.T) {
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, 100, noLabels)
	lw := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, adminConfig()), configMaps, c.namespace)
	f := follow(t, "informer", c, lw, informer.Options[*corev1.ConfigMap]{})
	f.agree(t)

	before := f.Snapshot()
	t.Cleanup(func() { ensureServer(t) })
	require.NoError(t, server.KillAPIServer())
	require.NoError(t, eventually(t.Context(), func() error { return atLeast(3, len(f.errorsSince(0))) }))
	require.Equal(t, before.Len(), f.Cache().Len(), "lost while the server was away")
	require.Error(t, f.Status().Reflector.Err)

	require.NoError(t, server.StartAPIServer(t.Context()))
	require.NoError(t, (&churner{collection: c, objects: 100, seed: 5, label: noLabels}).run(t.Context(), 200))
	f.agree(t)
	require.NoError(t, f.Status().Reflector.Err)
}

func atLeast(want, have int) error {
	if have < want {
		return fmt.Errorf("%d, not %d", have, want)
	}
	return nil
}

// TestCompactedWhileAway disconnects an informer without its noticing, changes the collection, compacts etcd and
// restarts the API server, with and without a watch cache. The informer's version is then too old. It must get a 410,
// and its handler must get exactly the changes.
func TestCompactedWhileAway(t *testing.T) {
	for name, flags := range map[string][]string{"with watch cache": nil, "without": {"--watch-cache=false"}} {
		for _, paged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, paged=%v", name, paged), func(t *testing.T) {
				t.Cleanup(func() { restart(t) })
				compactedWhileAway(t, informer.Options[*corev1.ConfigMap]{Tuning: reflector.Tuning{NoWatchList: paged}}, flags...)
			})
		}
	}
}

func compactedWhileAway(t *testing.T, o informer.Options[*corev1.ConfigMap], flags ...string) {
	const objects = 100
	p, config := startProxy(t)
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, objects, noLabels)
	f := follow(t, "informer", c, apiclient.NewTyped[*corev1.ConfigMap](newClient(t, config), configMaps, c.namespace), o)
	f.agree(t)
	require.Zero(t, f.Status().Reflector.Counters.Expired)

	p.Stall()
	for i := range 30 {
		switch name := objectName(i); i % 3 {
		case 0:
			require.NoError(t, c.delete(t.Context(), name))
		case 1:
			must.Get(c.annotate(t.Context(), name, "changed"))(t)
		case 2: // another object with the same name
			require.NoError(t, c.delete(t.Context(), name))
			must.Get(c.create(t.Context(), name, nil))(t)
		}
	}
	compactWhileAway(t, flags...)
	require.Equal(t, objects+1, f.Cache().Len(), "lost while the server was away")
	p.Cut()
	p.Resume()
	f.agree(t)

	counters := f.Status().Reflector.Counters
	require.NotZero(t, counters.Expired, "no 410 was seen: %v", f.errorsSince(0))
	require.Equal(t, 2, counters.Lists)
	require.Equal(t, objects+int(c.marks.Load())+10, f.mirror.count(api.Added))
	require.Equal(t, 10, f.mirror.count(api.Updated))
	require.Equal(t, 20, f.mirror.count(api.Deleted))
	require.Equal(t, 20, f.mirror.countUnknown(), "the deletions were missed, and not said to be")
}

// compactWhileAway kills the API server, compacts etcd, and starts the server again.
func compactWhileAway(t *testing.T, flags ...string) {
	t.Helper()
	require.NoError(t, server.KillAPIServer())
	must.Get(server.Compact(t.Context()))(t)
	require.NoError(t, server.StartAPIServer(t.Context(), flags...))
}

// TestCompactedInMidList compacts etcd between two pages of a list. The server rejects the continue token with a 410.
// The informer drops the first page and lists without pages.
func TestCompactedInMidList(t *testing.T) {
	restartWithoutWatchCache(t)
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, 100, noLabels)
	config := adminConfig()
	config.TLS = apiclient.TLS{}
	transport := &compactingTransport{base: server.HTTPClient("").Transport}
	config.Transport = transport
	lw := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, config), configMaps, c.namespace)
	f := follow(t, "informer", c, lw, informer.Options[*corev1.ConfigMap]{Tuning: reflector.Tuning{NoWatchList: true, PageSize: 30}})
	f.agree(t)
	require.NoError(t, transport.err)
	counters := f.Status().Reflector.Counters
	require.Equal(t, 1, counters.Expired, "no 410 was seen: %v", f.errorsSince(0))
	require.Equal(t, 1, counters.Lists)
	require.Equal(t, 3, counters.Pages, "the first, the one refused, and the whole")
}

// compactingTransport compacts etcd before it sends the first request for a second page.
type compactingTransport struct {
	base http.RoundTripper
	once sync.Once
	err  error
}

func (c *compactingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("continue") {
		c.once.Do(func() { _, c.err = server.Compact(r.Context()) })
	}
	return c.base.RoundTrip(r)
}

// victim is a follower of any type.
type victim interface {
	Status() informer.Status
	ResourceVersion() string
	errorsSince(n int) []error
	await(t *testing.T, version string)
	awaitSynced(t *testing.T)
	agree(t *testing.T)
}

// faultBench is the target of the faults.
type faultBench struct {
	c       *collection
	churn   *churner
	p       *proxy.Proxy
	victims []victim
}

// fault causes a failure and waits until it affected each victim, which seen checks with the victim's status and recent
// errors. Then it repairs the failure.
type fault struct {
	name  string
	times int
	// inflict causes the failure and returns a function that repairs it.
	inflict func(t *testing.T, b *faultBench) (mend func(*testing.T))
	seen    func(before, now reflector.Counters, errs []error) bool
	// afterMending means that the effect shows only after the repair.
	afterMending bool
}

func faults() []fault {
	broken := func(_, _ reflector.Counters, errs []error) bool { return len(errs) > 0 }
	expired := func(before, now reflector.Counters, _ []error) bool { return now.Expired > before.Expired }
	rewatched := func(before, now reflector.Counters, _ []error) bool { return now.Watches > before.Watches }
	// A client that writes during a reset may get the error from the write, and then reads the end of the stream.
	reset := func(_, _ reflector.Counters, errs []error) bool {
		return slices.ContainsFunc(errs, func(err error) bool {
			return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF)
		})
	}
	nothing := func(*testing.T) {}
	return []fault{
		{name: "API server killed", times: 4, seen: broken, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			require.NoError(t, server.KillAPIServer())
			return func(t *testing.T) { require.NoError(t, server.StartAPIServer(t.Context())) }
		}},
		{name: "compacted while away", times: 3, seen: expired, afterMending: true, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			b.compactBehindTheirBack(t)
			return nothing
		}},
		{name: "compacted while away, no watch cache", times: 2, seen: expired, afterMending: true, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			b.compactBehindTheirBack(t, "--watch-cache=false")
			return nothing
		}},
		{name: "connections reset", times: 6, seen: reset, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			require.GreaterOrEqual(t, b.p.Cut(), len(b.victims))
			return nothing
		}},
		{name: "connections half closed", times: 4, seen: rewatched, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			require.GreaterOrEqual(t, b.p.HalfClose(), len(b.victims))
			return nothing
		}},
		{
			name: "connections refused", times: 2, seen: func(_, _ reflector.Counters, errs []error) bool { return len(errs) > 3 },
			inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
				b.p.Refuse(true)
				b.p.Cut()
				return func(*testing.T) { b.p.Refuse(false) }
			},
		},
		{name: "stalled, then resumed", times: 4, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			b.stall(t)
			return func(*testing.T) { b.p.Resume() }
		}},
		{name: "stalled, then reset", times: 3, seen: reset, afterMending: true, inflict: func(t *testing.T, b *faultBench) func(*testing.T) {
			b.stall(t)
			return func(*testing.T) {
				b.p.Cut()
				b.p.Resume()
			}
		}},
	}
}

// stall holds all bytes back. It returns when the proxy holds bytes and no victim has received the writes since.
func (b *faultBench) stall(t *testing.T) {
	t.Helper()
	b.p.Stall()
	version := b.c.mark(t)
	require.NoError(t, eventually(t.Context(), func() error {
		if b.p.Stats().Held == 0 {
			return errors.New("nothing is held back")
		}
		return nil
	}))
	for _, v := range b.victims {
		order, ok := api.CompareVersions(v.ResourceVersion(), version)
		require.True(t, ok && order < 0, "%s passed a stall", version)
	}
}

// compactBehindTheirBack disconnects all clients while writers write, until the history of these writes is gone.
func (b *faultBench) compactBehindTheirBack(t *testing.T, flags ...string) {
	t.Helper()
	b.p.Stall()
	before := b.churn.done.Load()
	require.NoError(t, eventually(t.Context(), func() error { return atLeast(50, int(b.churn.done.Load()-before)) }))
	compactWhileAway(t, flags...)
	b.p.Cut()
	b.p.Resume()
}

// seedVariable is the environment variable with another seed for TestFaults.
const seedVariable = "LEAT_E2E_SEED"

// TestFaults kills, compacts, resets, half closes, refuses and stalls, in an order that a seed decides, while three
// kinds of informers run and writers write. A fault counts when each informer has noticed it.
func TestFaults(t *testing.T) {
	const objects = 400
	seed := uint64(6)
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, seedVariable)
	}
	p, config := startProxy(t)
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, objects, noLabels)
	typed := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, config), configMaps, c.namespace)
	jsonConfig := config
	jsonConfig.DisableProtobuf = true
	metadata := apiclient.NewPartial[*metav1.PartialObjectMetadata](newClient(t, jsonConfig), configMaps, c.namespace)
	sockets := websocket.Watch(apiclient.NewTyped[*corev1.ConfigMap](newClient(t, config), configMaps, c.namespace))
	churning := &churner{collection: c, objects: objects, seed: seed, label: noLabels, tolerant: true, pace: 10 * time.Millisecond}
	b := &faultBench{c: c, churn: churning, p: p, victims: []victim{
		follow(t, "typed", c, typed, informer.Options[*corev1.ConfigMap]{}),
		follow(t, "metadata, paged", c, metadata, informer.Options[*metav1.PartialObjectMetadata]{Tuning: reflector.Tuning{NoWatchList: true}}),
		follow(t, "over WebSocket", c, sockets, informer.Options[*corev1.ConfigMap]{}),
	}}
	for _, v := range b.victims {
		v.awaitSynced(t)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- churning.run(ctx, 1<<40) }()
	t.Cleanup(func() { restart(t) })
	t.Cleanup(cancel)

	tally := map[string]int{}
	for n, f := range shuffled(faults(), seed) {
		began := time.Now()
		b.suffer(t, f)
		tally[f.name]++
		t.Logf("%2d %-40s seen and overcome in %s", n+1, f.name, time.Since(began).Round(time.Millisecond))
	}
	cancel()
	require.NoError(t, <-ended)
	for _, v := range b.victims {
		v.agree(t)
	}

	total := 0
	for _, n := range tally {
		total += n
	}
	require.GreaterOrEqual(t, total, 20)
	t.Logf("%d faults: %v; %d writes succeeded meanwhile, %d failed", total, tally, churning.done.Load(), churning.failed.Load())
	for _, v := range b.victims {
		t.Logf("%+v", v.Status().Reflector.Counters)
	}
}

// suffer causes a fault, and returns when each victim has noticed it and has recovered.
func (b *faultBench) suffer(t *testing.T, f fault) {
	t.Helper()
	before := make([]reflector.Counters, len(b.victims))
	errs := make([]int, len(b.victims))
	for i, v := range b.victims {
		before[i], errs[i] = v.Status().Reflector.Counters, len(v.errorsSince(0))
	}
	mend := f.inflict(t, b)
	if f.afterMending {
		mend(t)
	}
	for i, v := range b.victims {
		if f.seen == nil {
			continue
		}
		require.NoError(t, eventually(t.Context(), func() error {
			now, since := v.Status().Reflector.Counters, v.errorsSince(errs[i])
			if f.seen(before[i], now, since) {
				return nil
			}
			return fmt.Errorf("%s: no effect on victim %d: %v, %v", f.name, i, v.Status(), since)
		}))
	}
	if !f.afterMending {
		mend(t)
	}
	version := b.c.mark(t)
	for _, v := range b.victims {
		v.await(t, version)
	}
}

// shuffled returns the faults, each as many times as it says, in an order that the seed decides.
func shuffled(kinds []fault, seed uint64) []fault {
	var all []fault
	for _, f := range kinds {
		for range f.times {
			all = append(all, f)
		}
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
