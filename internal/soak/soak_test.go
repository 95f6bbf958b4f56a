package soak_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	timeFlag    = flag.Duration("soak.time", 0, "how long to begin new rounds; 0 means no soak")
	seedFlag    = flag.Uint64("soak.seed", rand.Uint64N(1_000_000), "decides what happens in which round")
	profileFlag = flag.String("soak.profile", "", "write heap profiles to this folder, which is below internal/soak unless it is absolute: after the warm-up and at the end")
	logFlag     = flag.Bool("soak.log", false, "write the log of everything to the standard error")
)

// churnFor is how long the unquiet part of a round takes.
const churnFor = 3 * time.Second

// withHTTP2 is how long a soak must be to speak HTTP/2. For 90 s after an HTTP/2 connection was cut, an idle timer of
// net/http holds up to 70 KB at each end. In a shorter soak that would look like a leak.
const withHTTP2 = 10 * time.Minute

// The objects: as many mills in as many namespaces, and at most so many parts of each.
const (
	namespaces = 6
	millCount  = 60
	maxParts   = 4
	textLength = 200
)

var (
	mills  = api.Resource{Group: "soak.leat.test", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
	parts  = api.Resource{Group: "soak.leat.test", Version: "v1", Kind: "Part", Plural: "parts", Namespaced: true}
	happen = api.Resource{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
)

// widget is a mill, whose size is the number of parts that it wants, or a part.
type widget = fixture.Widget

func namespaceOf(n int) string { return fmt.Sprint("ns-", n%namespaces) }

func millKey(n int) api.Key {
	return api.Key{Namespace: namespaceOf(n), Name: fmt.Sprint("mill-", n)}
}

// soak is one run.
type soak struct {
	*testing.T
	rand       *rand.Rand
	log        *zap.Logger
	quiet      atomic.Bool // true while nothing may fail on purpose
	server     *testserver.Server
	address    string
	observer   *observer
	replicas   [2]*replica
	round      int
	generation int // counts the replicas
	samples    []sample
	faults     map[string]int // those that clients met, by the name of the effect
	visitors   map[string]int
}

// TestSoak runs a soak for -soak.time.
func TestSoak(t *testing.T) {
	if *timeFlag == 0 {
		t.Skip("make soak runs it, with -soak.time")
	}
	if *profileFlag != "" {
		require.NoError(t, os.MkdirAll(*profileFlag, 0o755))
		runtime.MemProfileRate = 1024 // small things that are many must show
	}
	// A Go process keeps some descriptors from its first connection on.
	require.NoError(t, must.Get(net.Listen("tcp", "127.0.0.1:0"))(t).Close())
	before := measure()
	var samples []sample
	done := t.Run(fmt.Sprint("seed=", *seedFlag), func(t *testing.T) { samples = run(t) }) // everything stops when it ends
	_ = poll(settleLimit, func() error { return judgeEnd(before, measure()) })             // judged below
	after := measure()
	writeHeapProfile(t, "stopped.pprof")
	t.Logf("before %v; stopped %v", before, after)
	if err := judgeEnd(before, after); err != nil {
		writeGoroutines()
		t.Error(err)
	}
	if done { // otherwise there may be no samples
		require.NoError(t, judge(samples))
	}
}

func run(t *testing.T) []sample {
	s := &soak{
		T: t, rand: rand.New(rand.NewPCG(*seedFlag, 10)), log: zap.NewNop(),
		faults: map[string]int{}, visitors: map[string]int{},
	}
	if *logFlag {
		s.log = must.Get(zap.NewDevelopment())(t)
	}
	s.serve()
	s.observer = newObserver(s)
	for i := range s.replicas {
		s.replicas[i] = s.newReplica(i)
	}
	t.Cleanup(func() {
		for _, r := range s.replicas {
			if err := r.restart(); err != nil {
				t.Error(err)
			}
		}
	})
	warm := false
	for began := time.Now(); time.Since(began) < *timeFlag || s.round < minRounds; {
		s.round++
		s.do()
		if !warm && s.round >= minRounds/4 && time.Since(began) > *timeFlag/4 {
			warm = true
			writeHeapProfile(t, "warm.pprof")
		}
	}
	writeHeapProfile(t, "end.pprof")
	t.Logf("faults met: %v", s.faults)
	t.Logf("visitors: %v", s.visitors)
	if len(s.samples) >= minRounds {
		warm, end := compare(s.samples)
		t.Logf("warm %v; end %v", warm, end)
	}
	return s.samples
}

// serve starts the server.
func (s *soak) serve() {
	s.server = testserver.New(testserver.Options{
		Seed: *seedFlag, TLS: true, HTTP2: *timeFlag >= withHTTP2, History: 500, RequestLog: -1, BookmarkInterval: 500 * time.Millisecond,
	})
	s.server.Register(mills, parts)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(s)
	s.address = listener.Addr().String()
	fixture.Start(s, func(ctx context.Context) error { return s.server.Serve(ctx, listener) })
}

// client returns a client. With an odd index, it does not speak HTTP/2.
func (s *soak) client(dial func(context.Context, string, string) (net.Conn, error), index int) *apiclient.Client {
	return must.Get(apiclient.New(apiclient.Config{
		Host: "https://" + s.address, TLS: apiclient.TLS{CAData: s.server.CA()}, DialContext: dial, DisableHTTP2: index%2 == 1,
		ResponseHeaderTimeout: 5 * time.Second,
	}))(s)
}

// informerOptions returns the options of each informer: short pauses, because a round is short, and short watches.
func informerOptions(log *zap.Logger) informer.Options[*widget] {
	return informer.Options[*widget]{
		Tuning: reflector.Tuning{
			BackoffBase:     20 * time.Millisecond,
			BackoffMax:      500 * time.Millisecond,
			MinWatchTimeout: 2 * time.Second,
			PageSize:        20,
		}, Logger: log,
	}
}

// do does one round.
func (s *soak) do() {
	s.quiet.Store(false)
	v := &visitors{soak: s, observer: s.observer, over: make(chan struct{})}
	injected := s.churn(v)
	s.observer.record(s.round)
	s.settle(v, injected)
	for _, r := range s.replicas {
		r.client.CloseIdleConnections()
	}
	s.observer.client.CloseIdleConnections()
	met := map[string]int{}
	for name, all := range injected {
		for _, i := range all {
			met[name] += i.Seen()
			s.faults[name] += i.Seen()
		}
	}
	m := measureWhenStill()
	s.samples = append(s.samples, m)
	s.Logf("round %d: %v, %d notifications, faults %v", s.round, m, s.observer.told.Load(), met)
}

// undetected are the effects that a client cannot notice: only a new list shows what they hid.
var undetected = []string{"drop", "hold", "malform"}

// outage is a fault that ends by itself.
const outage = "outage"

// plan are the faults, in the form of package faultplan. An answer that is wrong would make a writer believe that it
// had written, so such faults affect reads only.
var plan = []string{
	"get,list,watch: fail 500 times=2", "get,list,watch: fail 503 times=4 retry-after=1s", "get,list,watch: fail 504 times=1",
	"get,list,watch: fail 429 times=3", "get,list,watch: fail 403 times=2", "get,list,watch: fail 401 times=1",
	"get,list,watch: fail 404 times=2", "get,list,watch: fail 502 times=3 retry-after=1s",
	"fail 429 times=4 retry-after=1s", // a busy server
	`get,list,watch: fail 200 body="{\"kind\":\"MillList\",\"items\":[{" times=2`,
	"delay 500ms times=3", "delay 50ms times=3", "stall times=1", "stall 1500 times=1", "reset times=3",
	"cut 100 times=1", "cut 4000 times=2", "cut 700 abrupt times=3", "cut-frame 0 times=1", "cut-frame 150 abrupt times=1",
	"short-watch 0s times=4", "short-watch 200ms abrupt times=4", "end-watch 410 times=2", "refuse-watchlist",
	"duplicate times=9", "stall-events times=1", "disconnect", "disconnect abrupt", "compact",
	"drop times=3", "hold times=1", "hold 3 times=3", "list,watch: malform times=5",
}

// kinds returns the faults by the name of their effect.
func kinds(t *testing.T) map[string][]faults.Fault {
	all := map[string][]faults.Fault{}
	for _, text := range plan {
		f := must.Get(faultplan.Parse(text))(t)
		effect := text
		if _, after, has := strings.Cut(text, "watch: "); has {
			effect = after
		}
		name := strings.Fields(effect)[0]
		all[name] = append(all[name], f.Fault)
	}
	return all
}

// churn changes objects, injects faults and replaces a replica. It returns what was injected, by kind.
func (s *soak) churn(v *visitors) map[string][]*testserver.Injection {
	injected, kinds := map[string][]*testserver.Injection{}, kinds(s.T)
	names := slices.Sorted(maps.Keys(kinds))
	index := s.round % len(s.replicas) // the other one in the next round
	end, ended := s.replicas[index].restart, make(chan error, 1)
	if s.round/len(s.replicas)%2 == 0 {
		end = s.replicas[index].cutOff
	}
	go func() { ended <- end() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	replaced := false
	for over := time.Now().Add(churnFor); time.Now().Before(over) || !replaced; {
		select {
		case <-tick.C:
		case err := <-ended:
			require.NoError(s, err)
			s.replicas[index], replaced = s.newReplica(index), true
		}
		switch n := s.rand.IntN(1000); {
		case n < 700:
			s.write()
		case n < 760:
			name := names[s.rand.IntN(len(names))]
			injected[name] = append(injected[name], s.server.Inject(kinds[name][s.rand.IntN(len(kinds[name]))]))
		case n < 764:
			i := s.server.Inject(faults.Fault{Effect: faults.Outage{}})
			injected[outage] = append(injected[outage], i)
			time.AfterFunc(rand.N(300*time.Millisecond), i.Remove)
		case n < 780: // half of the faults end
			for _, i := range slices.Concat(slices.Collect(maps.Values(injected))...) {
				if rand.IntN(2) == 0 {
					i.Remove()
				}
			}
		case n < 850:
			v.come()
		case n < 900:
			v.goAway()
		}
	}
	return injected
}

// write creates, changes or deletes a mill, replaces it by another of the same name, or deletes one of its parts.
func (s *soak) write() {
	n := s.rand.IntN(millCount)
	key := millKey(n)
	what := s.rand.IntN(12)
	if what == 8 || what == 9 {
		s.delete(mills, key)
	}
	if what < 8 || what == 9 {
		s.put(n, s.rand.IntN(maxParts+1))
	}
	if what > 9 {
		s.delete(parts, api.Key{Namespace: key.Namespace, Name: fmt.Sprintf("%s-%d", key.Name, s.rand.IntN(maxParts))})
	}
}

// put creates or changes a mill. Its text is one of a hundred, all of the same length, because a decoder remembers
// strings that repeat.
func (s *soak) put(n, count int) {
	key, text := millKey(n), strings.Repeat(fmt.Sprintf("%02d, ", s.rand.IntN(100)), textLength/4)
	_, err := s.server.Edit(mills, key, func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"size": int64(count), "node": text}
	})
	if apierrors.IsNotFound(err) {
		m := fixture.Named(key.Namespace, key.Name)
		m.Spec = fixture.WidgetSpec{Size: int64(count), Node: text}
		_, err = s.server.Create(mills, m)
	}
	require.NoError(s, err)
}

// delete deletes an object, if there is one.
func (s *soak) delete(r api.Resource, key api.Key) {
	if err := s.server.Delete(r, key); !apierrors.IsNotFound(err) {
		require.NoError(s, err)
	}
}

// poll calls done until it returns nil. After the limit, it returns done's last error.
func poll(limit time.Duration, done func() error) error {
	const again = 50 * time.Millisecond
	for deadline := time.Now().Add(limit); ; <-time.After(again) {
		if err := done(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// writeHeapProfile writes what is reachable. It does nothing without the flag. Two profiles show what grew:
// go tool pprof -base warm.pprof end.pprof.
func writeHeapProfile(t *testing.T, name string) {
	if *profileFlag == "" {
		return
	}
	f := must.Get(os.Create(filepath.Join(*profileFlag, name)))(t)
	require.NoError(t, errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close()))
}

// writeGoroutines writes the stacks of all goroutines, equal ones as one.
func writeGoroutines() { _ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1) }
