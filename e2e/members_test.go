//go:build unix

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/internal/fixture/must"
)

const workObjects = 200

// TestMembersDivideTheWork has five processes that divide config maps by UID, at a kube-apiserver that cuts their lists
// and watches. One is killed, one is stopped for longer than its lease and then continued, and one is added, while the
// config maps change. At the end, the owner of each has reconciled it. All writes, in the order of the server, prove
// that no config map had two workers at once.
func TestMembersDivideTheWork(t *testing.T) {
	t.Cleanup(func() { restart(t) })
	require.NoError(t, server.RestartAPIServer(t.Context(), "--feature-gates=ShardedListAndWatch=true"))
	began := time.Now()
	c := newCollection(t, configMaps, configMapBody)
	g := &guild{c: c, works: map[string][]work{}, running: map[string]*replica{}}
	g.record(t)
	c.fill(t, workObjects, func(int) labelSet { return labelSet{workLabel: "yes"} })
	for range 5 {
		g.start(t)
	}
	stopChurn := g.churn(t)
	g.settle(t, "five start")

	killed := g.running["member-1"]
	g.awaitWork(t, "member-1")
	require.NoError(t, killed.process.Kill())
	delete(g.running, "member-1")
	g.settle(t, "one is killed")

	stopped := g.running["member-2"]
	g.awaitWork(t, "member-2")
	require.NoError(t, stopped.process.Signal(syscall.SIGSTOP))
	delete(g.running, "member-2")
	g.settle(t, "one is stopped")
	require.NoError(t, stopped.process.Signal(syscall.SIGCONT))
	g.running["member-2"] = stopped
	g.settle(t, "it continues")

	g.start(t)
	g.settle(t, "one is added")
	stopChurn()
	g.finish(t)
	g.judge(t, "member-1", "member-2")
	for _, r := range g.running {
		r.terminate(t)
	}
	t.Logf("all of it took %v", time.Since(began).Round(time.Millisecond))
}

// work is a reconcile, as the server saw it.
type work struct {
	name  string // the identity of the member and a number
	ended bool
	again bool // written again after another work of the same object had begun
}

// by returns the identity of the member.
func (w work) by() string {
	identity, _, _ := strings.Cut(w.name, " ")
	return identity
}

// guild is the members, and what they wrote.
type guild struct {
	c       *collection
	running map[string]*replica
	started int
	wants   int // only one goroutine at a time uses it

	mu    sync.Mutex // guards the fields below
	works map[string][]work
	maps  map[string]map[string]string // the data of each object
	err   error
}

func (g *guild) start(t *testing.T) {
	t.Helper()
	g.started++
	identity := fmt.Sprint("member-", g.started)
	g.running[identity] = startProcess(t, memberVariable, g.c.namespace, identity)
}

// record watches the objects until the test ends, without leat.
func (g *guild) record(t *testing.T) {
	t.Helper()
	client := server.HTTPClient(cluster.AdminToken)
	g.maps = map[string]map[string]string{}
	version, _, err := listPlain[json.RawMessage](t.Context(), client, g.c.path())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := watchPlain(ctx, client, g.c.path(), version, g.note)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.err = err
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		client.CloseIdleConnections()
	})
}

// note notes an event.
func (g *guild) note(_ string, m corev1.ConfigMap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maps[m.Name] = m.Data
	name, ended := m.Data["work"], m.Data["phase"] == "end"
	works := g.works[m.Name]
	i := slices.IndexFunc(works, func(w work) bool { return w.name == name })
	switch {
	case name == "":
	case i < 0:
		g.works[m.Name] = append(works, work{name: name, ended: ended})
	default:
		works[i].ended = works[i].ended || ended
		works[i].again = works[i].again || i < len(works)-1
	}
}

// churn changes objects until the returned function is called.
func (g *guild) churn(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				ended <- nil
				return
			}
			if err := g.want(context.WithoutCancel(ctx), g.wants*37%workObjects); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

// want changes what an object wants.
func (g *guild) want(ctx context.Context, i int) error {
	g.wants++
	_, err := g.c.patch(ctx, objectName(i), map[string]any{"data": labelSet{"want": fmt.Sprint(g.wants)}})
	return err
}

// settle waits until the running members, and no others, claim all hashes in equal parts.
func (g *guild) settle(t *testing.T, what string) {
	t.Helper()
	began := time.Now()
	require.NoError(t, eventually(t.Context(), func() error {
		claims, err := g.claims()
		if err != nil {
			return err
		}
		if len(claims) != len(g.running) {
			return fmt.Errorf("%d members", len(claims))
		}
		var all hashrange.Set
		for identity, set := range claims {
			if g.running[identity] == nil {
				return fmt.Errorf("%s is a member", identity)
			}
			if part := set.Share() * float64(len(claims)); part < 0.99 || part > 1.01 {
				return fmt.Errorf("%s has %.2f times its share", identity, part)
			}
			all = all.Union(set)
		}
		if !all.Equal(hashrange.All()) {
			return fmt.Errorf("all members have %v", all)
		}
		return nil
	}), what)
	t.Logf("%s: settled after %v", what, time.Since(began).Round(time.Millisecond))
}

// awaitWork waits until a member works on several objects.
func (g *guild) awaitWork(t *testing.T, identity string) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := 0
		for _, works := range g.works {
			if last := works[len(works)-1]; last.by() == identity && !last.ended {
				n++
			}
		}
		return errors.Join(g.err, atLeast(2, n))
	}))
}

// claims returns the ranges of each member, from the Leases.
func (g *guild) claims() (map[string]hashrange.Set, error) {
	path := "/apis/coordination.k8s.io/v1/namespaces/" + g.c.namespace + "/leases"
	client := server.HTTPClient(cluster.AdminToken)
	defer client.CloseIdleConnections()
	_, leases, err := listPlain[coordinationv1.Lease](context.Background(), client, path)
	claims := map[string]hashrange.Set{}
	for _, l := range leases {
		set, wrong := hashrange.Parse(l.Annotations["leatproject.github.io/shard-claims"])
		err = errors.Join(err, wrong)
		claims[*l.Spec.HolderIdentity] = set
	}
	return claims, err
}

// finish changes each object once more, and waits until its owner has reconciled it.
func (g *guild) finish(t *testing.T) {
	t.Helper()
	for i := range workObjects {
		require.NoError(t, g.want(t.Context(), i))
	}
	claims := must.Get(g.claims())(t)
	items := must.Get(g.c.items(t.Context(), url.Values{"labelSelector": {workLabel}}))(t)
	require.Len(t, items, workObjects)
	owned := map[string]int{}
	for _, item := range items {
		var m corev1.ConfigMap
		require.NoError(t, json.Unmarshal(item, &m))
		owner := ""
		for identity, set := range claims {
			if set.Contains(hashrange.Hash(string(m.UID))) {
				require.Empty(t, owner, "two members claim %s", m.Name)
				owner = identity
			}
		}
		owned[owner]++
		require.NoError(t, eventually(t.Context(), func() error {
			g.mu.Lock()
			defer g.mu.Unlock()
			data := g.maps[m.Name]
			last := work{name: data["work"]}
			if g.err != nil || data["want"] != m.Data["want"] || data["done"] != data["want"] || last.by() != owner {
				return errors.Join(g.err, fmt.Errorf("%s of %s has %v", m.Name, owner, data))
			}
			return nil
		}))
	}
	t.Logf("objects of each member: %v", owned)
}

// judge requires that no work continued after another one of the same object had begun, and that each work ended. A
// process that is killed or stopped leaves works without an end. A stopped one may send a request for each worker after
// it continues, because it looked at the clock before (see package shard, Limits).
func (g *guild) judge(t *testing.T, killed, stopped string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	total, moved, open, late := 0, 0, map[string]int{}, map[string]int{}
	for name, works := range g.works {
		owners := map[string]bool{}
		for i, w := range works {
			owners[w.by()] = true
			total++
			if w.again {
				late[w.by()]++
			}
			if !w.ended && i < len(works)-1 {
				open[w.by()]++
				require.Contains(t, []string{killed, stopped}, w.by(), "%s: %+v has no end: %+v", name, w, works)
			}
		}
		moved += len(owners) - 1
	}
	t.Logf("%d works; objects changed their owner %d times; works without an end: %v; late writes: %v", total, moved, open, late)
	require.NotZero(t, open[killed]+open[stopped], "no work was interrupted")
	require.LessOrEqual(t, late[stopped], memberWorkers)
	delete(late, stopped)
	require.Empty(t, late, "two workers at once")
	require.Greater(t, moved, workObjects/5, "the objects have not moved")
}
