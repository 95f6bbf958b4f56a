package workqueue_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/workqueue"
)

// model states what a queue should do. It uses only slices and linear search.
type model struct {
	ageing, maxCauses int
	backoff           workqueue.Backoff

	now     time.Time
	keys    []*modelKey // in the order of their first add; a key without any state is missing
	order   int         // counts becoming ready, entering a class and being delayed
	passed  int
	closed  bool
	adds    uint64
	retries uint64
	fails   map[byte]int
	queued  []time.Duration // the arguments that the hooks should have received
	worked  []time.Duration

	priorities []int
}

type modelKey struct {
	key                     byte
	pending                 string // "", "delayed", "ready" or "rerun"
	processing              bool
	priority                int
	causes                  []workqueue.Cause
	omitted                 int
	added, ready, started   time.Time
	aged, entered, deferred int
	turns, within           int // turns since it became ready, and the largest allowed number
}

func (m *model) find(key byte) *modelKey {
	for _, k := range m.keys {
		if k.key == key {
			return k
		}
	}
	return nil
}

func (m *model) next() int { m.order++; return m.order }

func (m *model) add(key byte, item workqueue.Item) {
	delay := max(item.After, 0)
	if item.RateLimited {
		m.fails[key]++
		delay = max(delay, m.backoff.Delay(m.fails[key]))
	}
	if m.closed {
		return
	}
	if item.RateLimited || item.After > 0 {
		m.retries++
	}
	k := m.find(key)
	if k == nil {
		k = &modelKey{key: key}
		m.keys = append(m.keys, k)
	}
	if k.pending == "" {
		k.priority, k.added = item.Priority, m.now
	} else if item.Priority > k.priority {
		k.priority, k.entered = item.Priority, m.next()
	}
	if item.Cause != (workqueue.Cause{}) {
		if len(k.causes) < m.maxCauses {
			k.causes = append(k.causes, item.Cause)
		} else {
			k.omitted++
		}
	}
	switch due := m.now.Add(delay); {
	case k.pending == "ready" || k.pending == "rerun":
	case delay == 0:
		m.becomeReady(k, m.now)
	case k.pending == "":
		k.pending, k.ready, k.deferred = "delayed", due, m.next()
	case due.Before(k.ready):
		k.ready = due
	}
}

func (m *model) becomeReady(k *modelKey, at time.Time) {
	m.adds++
	k.ready = at
	if k.processing {
		k.pending = "rerun"
		return
	}
	m.enqueue(k)
}

func (m *model) enqueue(k *modelKey) {
	k.pending = "ready"
	k.aged, k.entered = m.next(), m.next()
	k.turns, k.within = 0, m.ageing*len(m.all("ready"))
}

func (m *model) all(pending string) (keys []*modelKey) {
	for _, k := range m.keys {
		if k.pending == pending {
			keys = append(keys, k)
		}
	}
	return keys
}

// take returns the key that a Get should hand out, or nil.
func (m *model) take() *modelKey {
	ready := m.all("ready")
	if len(ready) == 0 {
		return nil
	}
	k := slices.MinFunc(ready, func(a, b *modelKey) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.entered, b.entered))
	})
	oldest := slices.MinFunc(ready, func(a, b *modelKey) int { return cmp.Compare(a.aged, b.aged) })
	if m.passed+1 >= m.ageing {
		k = oldest
	}
	if m.passed++; k == oldest {
		m.passed = 0
	}
	for _, other := range ready {
		other.turns++
	}
	k.pending, k.processing, k.started = "", true, m.now
	m.queued, m.priorities = append(m.queued, m.now.Sub(k.ready)), append(m.priorities, k.priority)
	return k
}

func (m *model) done(k *modelKey) {
	k.processing = false
	m.worked = append(m.worked, m.now.Sub(k.started))
	if k.pending == "rerun" {
		m.enqueue(k)
	}
	m.sweep()
}

func (m *model) advance(d time.Duration) {
	m.now = m.now.Add(d)
	due := m.all("delayed")
	slices.SortFunc(due, func(a, b *modelKey) int { return cmp.Or(a.ready.Compare(b.ready), cmp.Compare(a.deferred, b.deferred)) })
	for _, k := range due {
		if !k.ready.After(m.now) {
			m.becomeReady(k, k.ready)
		}
	}
}

func (m *model) shutDown() {
	m.closed = true
	for _, k := range m.all("delayed") {
		k.pending, k.causes, k.omitted = "", nil, 0
	}
	m.sweep()
}

// sweep removes the keys that have no state any more.
func (m *model) sweep() {
	m.keys = slices.DeleteFunc(m.keys, func(k *modelKey) bool { return k.pending == "" && !k.processing })
}

func (m *model) stats() workqueue.Stats {
	s := workqueue.Stats{Adds: m.adds, Retries: m.retries, ByPriority: map[int]int{}}
	for _, k := range m.keys {
		switch k.pending {
		case "ready", "rerun":
			s.Depth++
			s.ByPriority[k.priority]++
		case "delayed":
			s.Delayed++
		}
		if k.processing {
			s.Processing++
			s.UnfinishedWork += m.now.Sub(k.started)
			s.LongestRunning = max(s.LongestRunning, m.now.Sub(k.started))
		}
	}
	return s
}

// runModel runs operations, four bytes each, on a queue and on the model, and compares them after each one.
func runModel(t *testing.T, ops []byte) {
	m := &model{
		ageing: 3, maxCauses: 2, now: time.Now(), fails: map[byte]int{},
		backoff: workqueue.Backoff{Base: 2 * ms, Max: 50 * ms},
	}
	var r recorder
	q := workqueue.NewAgeing(m.ageing, workqueue.Options{MaxCauses: m.maxCauses, Metrics: r.metrics()},
		workqueue.Exponential[byte](m.backoff))
	for i := 0; i+4 <= len(ops); i += 4 {
		step(t, q, m, ops[i], ops[i+1]%8, ops[i+2], ops[i+3])
		synctest.Wait()
		require.Equal(t, m.stats(), q.Stats())
		require.Equal(t, len(m.all("ready")), q.Len())
		for key := range byte(8) {
			require.Equal(t, m.fails[key], q.NumRequeues(key))
		}
	}
	m.shutDown()
	q.ShutDown()
	for len(m.keys) > 0 {
		finish(t, q, m, 0)
		take(t, q, m)
	}
	require.ErrorIs(t, must.Err(q.Get(t.Context())), workqueue.ErrShutDown)
	requireEmpty(t, q)
	require.Equal(t, m.queued, r.queued)
	require.Equal(t, m.worked, r.worked)
	require.Equal(t, m.priorities, r.priorities)
}

func step(t *testing.T, q *workqueue.Queue[byte], m *model, op, key, a, b byte) {
	item := workqueue.Item{Priority: int(a%5) - 2}
	if b%2 == 0 {
		item.Cause = workqueue.Cause{Version: fmt.Sprint(a, b)}
	}
	switch op % 16 {
	case 0, 1, 2, 3, 13:
	case 4, 5, 6:
		item.After = time.Duration(int(b)-20) * ms
	case 7:
		item.RateLimited, item.After = true, time.Duration(b%4)*10*ms
	case 8, 9, 10:
		take(t, q, m)
		return
	case 11, 12:
		finish(t, q, m, int(a))
		return
	case 14:
		<-time.After(time.Duration(a) * ms)
		m.advance(time.Duration(a) * ms)
		return
	case 15:
		if a == 0 {
			m.shutDown()
			q.ShutDown()
		} else {
			delete(m.fails, key)
			q.Forget(key)
		}
		return
	}
	m.add(key, item)
	q.AddWith(key, item)
}

func take(t *testing.T, q *workqueue.Queue[byte], m *model) {
	k := m.take()
	if k == nil {
		return
	}
	work := get(t, q)
	require.Equal(t, k.key, work.Key)
	require.Equal(t, k.priority, work.Priority)
	require.Equal(t, k.omitted, work.CausesOmitted)
	require.True(t, slices.Equal(k.causes, work.Causes), "%v is not %v", work.Causes, k.causes)
	require.True(t, k.added.Equal(work.Added))
	require.True(t, k.ready.Equal(work.Ready))
	require.LessOrEqual(t, k.turns, k.within, "the bound of ageing")
	k.causes, k.omitted = nil, 0
}

func finish(t *testing.T, q *workqueue.Queue[byte], m *model, which int) {
	var processing []*modelKey
	for _, k := range m.keys {
		if k.processing {
			processing = append(processing, k)
		}
	}
	if len(processing) > 0 {
		k := processing[which%len(processing)]
		m.done(k)
		q.Done(k.key)
	}
}

// After any operations, the queue agrees with a plain model, to the nanosecond.
func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		ops := make([]byte, 4*400)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		if seed%4 != 0 {
			for i := 0; i < len(ops); i += 4 {
				ops[i+2] |= 1 // no early shutdown
			}
		}
		synctest.Test(t, func(t *testing.T) { runModel(t, ops) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 1, 0, 11, 0, 0, 0, 8, 0, 0, 0})
	f.Add([]byte{4, 0, 1, 90, 4, 1, 2, 60, 4, 0, 4, 40, 14, 0, 30, 0, 13, 1, 0, 0, 8, 0, 0, 0})
	f.Add([]byte{7, 0, 1, 0, 7, 1, 1, 3, 14, 0, 200, 0, 8, 0, 0, 0, 7, 0, 0, 0, 15, 0, 1, 0, 15, 0, 0, 0})
	f.Add([]byte{0, 0, 4, 0, 0, 1, 0, 0, 0, 2, 4, 0, 0, 3, 4, 0, 0, 4, 4, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 4000 {
			return
		}
		synctest.Test(t, func(t *testing.T) { runModel(t, ops) })
	})
}
