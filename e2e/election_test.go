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

// The longest time until another replica leads: a waiting replica asks after one to 2.2 retry periods. The rest is a
// margin for a busy machine.
const (
	longestRetry = retryPeriod*22/10 + 2*time.Second
	longestWait  = leaseDuration + longestRetry
)

// TestElection has three processes that campaign; only the leader writes. The leader is terminated, killed, or stopped
// for longer than its lease and then continued. The next leader is there in time and does not have to list. At the end,
// every write is by the holder of the lease at that moment. The versions of the API server prove it, because leases and
// other objects share one sequence of versions.
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
	for _, r := range g.running { // waiting replicas end first, so that none takes over
		r.terminate(t)
	}
	last.terminate(t)
	g.judge(t, c)
}

// electorate is the replicas that campaign for one lease, and what they wrote.
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

// replace stops the leader with away, waits until another replica leads, which may take limit at most, and starts a new
// replica. It returns the new leader.
func (g *electorate) replace(t *testing.T, leader, how string, limit time.Duration, away func(*replica)) string {
	t.Helper()
	g.awaitBeat(t, leader, g.lastBeat(leader).Number+1) // the next write is a while away
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

// terminate ends a replica in order and requires that it returns no error.
func (r *replica) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, r.process.Signal(syscall.SIGTERM))
	code, said := r.end(t)
	require.Zero(t, code, said)
}

// leaseLog has the holders of a lease and the writes, from a watch without leat.
type leaseLog struct {
	mu    sync.Mutex // guards the fields below
	holds []entry[string]
	beats []entry[beat]
	err   error // why the watch has ended
}

// entry is an event.
type entry[T any] struct {
	version int64
	at      time.Time
	what    T
}

// recordLeases watches a namespace, which must be empty, until the test ends.
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
	version, _ := strconv.ParseInt(m.ResourceVersion, 10, 64) // a missing version is zero and belongs to no term
	return entry[T]{version: version, at: time.Now(), what: what}
}

// await waits until another holder than the given one has the lease and has written, and returns the holder.
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

// lastBeat returns the last write of a replica, or the zero value.
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

// released reports whether the lease had no holder after a replica had held it.
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

// times returns when a replica got the lease, and when it wrote first.
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

// judge requires that every write is by the holder of the lease at its version, that no replica led twice, that no
// write is missing, and that every leader had a full cache before.
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
	delete(terms, "") // a replica may lead only once
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
