//go:build unix

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/e2e/cluster"
)

// The longest that it takes until another replica leads: each that waits asks after one to 2.2 retry periods. The rest is
// for a machine that has other things to do.
const (
	longestRetry = retryPeriod*22/10 + 2*time.Second
	longestWait  = leaseDuration + longestRetry
)

// TestElection has three processes campaign, one of which writes at a time, and takes the leader away in one way after the
// other: it is told to end, it is killed, it is stopped for longer than its lease lasts and goes on then. Whoever follows
// is there in time and has nothing to list. In the end every write is of whom the lease named at that moment, by the
// versions of the API server, which has one row of numbers for leases and writes.
func TestElection(t *testing.T) {
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, seeds, func(int) labelSet { return labelSet{seedLabel: "yes"} })
	g := &electorate{leaseLog: recordLeases(t, c.namespace), namespace: c.namespace, running: map[string]*replica{}}
	for range 3 {
		g.start(t)
	}
	leader := g.await(t, "")

	leader = g.replace(t, leader, "is told to end", longestRetry, func(r *replica) {
		r.terminate(t)
		last := g.lastBeat(r.identity)
		require.True(t, last.Last, "it had one more thing to do: %+v", last)
		require.True(t, g.released(r.identity), "the lease was not released")
	})
	leader = g.replace(t, leader, "is killed", longestWait, func(r *replica) {
		require.NoError(t, r.process.Kill())
		code, _ := r.end(t)
		require.Negative(t, code)
	})
	stopped := g.running[leader]
	leader = g.replace(t, leader, "is stopped", longestWait, func(r *replica) {
		require.NoError(t, r.process.Signal(syscall.SIGSTOP))
	})
	beats := g.lastBeat(leader).Number
	require.NoError(t, stopped.process.Signal(syscall.SIGCONT))
	code, said := stopped.end(t)
	require.Equal(t, 1, code)
	require.Regexp(t, "^manager: no longer the leader: leaderelection: the lease is lost: "+c.namespace+"/"+leaseName+
		" could not be renewed for 4s: [^\n]+\n$", said)
	g.awaitBeat(t, leader, beats+3)

	last := g.running[leader]
	delete(g.running, leader)
	for _, r := range g.running { // who waits goes first, so that nobody follows
		r.terminate(t)
	}
	last.terminate(t)
	g.judge(t, c)
}

// electorate is replicas that campaign for one lease, and what they wrote.
type electorate struct {
	*leaseLog
	namespace string
	running   map[string]*replica
	started   int
}

func (g *electorate) start(t *testing.T) {
	t.Helper()
	g.started++
	identity := fmt.Sprintf("replica-%d", g.started)
	g.running[identity] = startReplica(t, g.namespace, identity)
}

// replace takes the leader away, waits until another leads, which must not take longer than limit, and starts a new
// replica. It returns the new leader.
func (g *electorate) replace(t *testing.T, leader, how string, limit time.Duration, away func(*replica)) string {
	t.Helper()
	g.awaitBeat(t, leader, g.lastBeat(leader).Number+1) // the next one is a while away
	began := time.Now()
	r := g.running[leader]
	delete(g.running, leader)
	away(r)
	next := g.await(t, leader)
	elected, wrote := g.times(next)
	t.Logf("the leader %s: %s follows after %v, and writes %v later", how, next,
		elected.Sub(began).Round(time.Millisecond), wrote.Sub(elected).Round(time.Millisecond))
	require.Less(t, elected.Sub(began), limit)
	require.Less(t, wrote.Sub(elected), 2*time.Second, "it was not warm")
	g.start(t)
	return next
}

// terminate has a replica end in its own time, without an error.
func (r *replica) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, r.process.Signal(syscall.SIGTERM))
	code, said := r.end(t)
	require.Zero(t, code, said)
}

// ledger is who held a lease, and who wrote, as a watch tells that without leat.
type leaseLog struct {
	mu    sync.Mutex // guards the fields below
	holds []entry[string]
	beats []entry[beat]
	err   error // why a watch has ended
}

// entry is something that happened.
type entry[T any] struct {
	version int64
	at      time.Time
	what    T
}

// keepLedger watches a namespace, which must be empty, until the test ends.
func recordLeases(t *testing.T, namespace string) *leaseLog {
	t.Helper()
	l := &leaseLog{}
	client := server.HTTPClient(cluster.AdminToken)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
	beats := (&collection{resource: configMaps, namespace: namespace}).path()
	version, _, err := listPlain[json.RawMessage](t.Context(), client, leases)
	require.NoError(t, err)
	all.Go(func() { l.close(watchPlain(ctx, client, leases, version, l.noteLease)) })
	all.Go(func() { l.close(watchPlain(ctx, client, beats, version, l.noteBeat)) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
		client.CloseIdleConnections()
	})
	return l
}

func (l *leaseLog) close(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, err)
}

func (l *leaseLog) noteLease(_ string, lease coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if n := len(l.holds); n > 0 && l.holds[n-1].what == holder {
		return
	}
	l.holds = append(l.holds, newEntry(lease.ObjectMeta, holder))
}

func (l *leaseLog) noteBeat(_ string, m corev1.ConfigMap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Labels[beatLabel] == "" {
		return
	}
	var b beat
	l.err = errors.Join(l.err, json.Unmarshal([]byte(m.Data["beat"]), &b))
	l.beats = append(l.beats, newEntry(m.ObjectMeta, b))
}

func newEntry[T any](m metav1.ObjectMeta, what T) entry[T] {
	version, _ := strconv.ParseInt(m.ResourceVersion, 10, 64) // what is none is zero, and in nobody's term
	return entry[T]{version: version, at: time.Now(), what: what}
}

// await waits until somebody holds the lease who is not the one given, and has written, and returns who.
func (l *leaseLog) await(t *testing.T, not string) (holder string) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		holder = l.holder()
		if holder == "" || holder == not {
			return fmt.Errorf("%q holds the lease", holder)
		}
		return nil
	}))
	l.awaitBeat(t, holder, 1)
	return holder
}

func (l *leaseLog) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.holds) == 0 {
		return ""
	}
	return l.holds[len(l.holds)-1].what
}

func (l *leaseLog) awaitBeat(t *testing.T, writer string, number int) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error { return atLeast(number, l.lastBeat(writer).Number) }))
}

// lastBeat is what a replica wrote last; the zero value if it has not.
func (l *leaseLog) lastBeat(writer string) (last beat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.beats {
		if b.what.Writer == writer {
			last = b.what
		}
	}
	return last
}

// released tells whether nobody held the lease after a replica did.
func (l *leaseLog) released(holder string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range l.holds {
		if h.what == holder {
			return i+1 < len(l.holds) && l.holds[i+1].what == ""
		}
	}
	return false
}

// times is when a replica was seen to get the lease, and to write for the first time.
func (l *leaseLog) times(replica string) (elected, wrote time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.holds {
		if h.what == replica {
			elected = h.at
		}
	}
	for _, b := range l.beats {
		if b.what.Writer == replica {
			return elected, b.at
		}
	}
	return elected, wrote
}

// judge requires that every write is of whom the lease named at its version, that nobody led twice, that no write of
// anybody is missing, and that everybody had a full cache before it led.
func (l *leaseLog) judge(t *testing.T, c *collection) {
	t.Helper()
	written := len(c.list(t, beatLabel, ""))
	require.NoError(t, eventually(t.Context(), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return errors.Join(l.err, atLeast(written, len(l.beats)))
	}))
	l.mu.Lock()
	defer l.mu.Unlock()
	terms := map[string]int{}
	for _, h := range l.holds {
		terms[h.what]++
	}
	delete(terms, "") // nobody may lead more than once
	require.Len(t, terms, 4)
	numbers := map[string]int{}
	for _, b := range l.beats {
		holder := ""
		for _, h := range l.holds {
			if h.version < b.version {
				holder = h.what
			}
		}
		require.Equal(t, holder, b.what.Writer, "%+v was written at version %d, while another led: %+v", b.what, b.version, l.holds)
		numbers[b.what.Writer]++
		require.Equal(t, numbers[b.what.Writer], b.what.Number, "of %s", b.what.Writer)
		require.Equal(t, seeds, b.what.Cached, "%s led before its cache was full", b.what.Writer)
	}
	for replica, n := range terms {
		require.Equal(t, 1, n, "%s led more than once", replica)
		require.NotZero(t, numbers[replica], "%s wrote nothing", replica)
	}
}
