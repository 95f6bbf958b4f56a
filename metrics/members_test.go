package metrics_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/workqueue"
)

func idle(context.Context, string) (controller.Result, error) { return controller.Result{}, nil }

func newIdle(name string) *controller.Controller[string] {
	return controller.New(name, controller.Func[string](idle), controller.Options{})
}

func TestRemove(t *testing.T) {
	m, registry := registered(t)
	c := newCluster(t)
	queue := workqueue.New[string](workqueue.Options{Name: "queue", Metrics: m.QueueTimes("queue")})
	join := []func() *metrics.CollectorRegistration{
		func() *metrics.CollectorRegistration { return shown(t)(m.Controller(newIdle("a"))) },
		func() *metrics.CollectorRegistration { return shown(t)(m.Queue(queue)) },
		func() *metrics.CollectorRegistration {
			return shown(t)(m.Informer("maps", c.informer(t, informer.Options[*configMap]{})))
		},
		func() *metrics.CollectorRegistration { return shown(t)(m.Elector("lock", elector(false))) },
		func() *metrics.CollectorRegistration { return shown(t)(m.Recorder("a", recorderStats{})) },
		func() *metrics.CollectorRegistration { return shown(t)(m.Gate("a", gateStats{})) },
		func() *metrics.CollectorRegistration {
			return shown(t)(m.Mask("pods", must.Get(codec.NewMask[*configMap]("metadata.labels"))(t)))
		},
		func() *metrics.CollectorRegistration { return shown(t)(m.Shard(shardStatus{Group: "a"})) },
	}
	var all []*metrics.CollectorRegistration
	for _, f := range join {
		all = append(all, f())
	}
	m.SlowPath("lock")()
	require.NotEmpty(t, exposition(t, registry))
	for _, r := range all {
		r.Remove()
	}
	require.Empty(t, string(exposition(t, registry)))
	for i, f := range join {
		r := f() // the name is free again
		all[i].Remove()
		require.NotEmpty(t, exposition(t, registry), "a second Remove does not remove the successor")
		r.Remove()
	}
}

// A removed controller does not call Metrics any more, and Metrics keeps no reference to it.
func TestRemovedControllerIsReleased(t *testing.T) {
	m, _ := registered(t)
	r, ctl := func() (*metrics.CollectorRegistration, weak.Pointer[controller.Controller[string]]) {
		ctl := newIdle("a")
		return shown(t)(m.Controller(ctl)), weak.Make(ctl)
	}()
	r.Remove()
	runtime.GC()
	require.Nil(t, ctl.Value())
	runtime.KeepAlive(r)
	runtime.KeepAlive(m)
}

func TestNamesAreUnique(t *testing.T) {
	m, registry := registered(t)
	shown(t)(m.Controller(newIdle("a")))
	_, err := m.Controller(newIdle("a"))
	require.ErrorIs(t, err, metrics.ErrNameTaken)
	require.ErrorContains(t, err, `there is a controller "a"`)
	require.ErrorIs(t, must.Err(m.Queue(workqueue.New[string](workqueue.Options{Name: "a"}))), metrics.ErrNameTaken, "their queues would be one")
	shown(t)(m.Recorder("a", recorderStats{}))
	for _, name := range []string{"", "\xff"} {
		require.ErrorContains(t, must.Err(m.Elector(name, elector(true))), "must be valid UTF-8")
	}
	require.Len(t, values(t, registry, "workqueue_depth"), 1)
}

func TestStoppedInformerIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		first, second := c.informer(t, informer.Options[*configMap]{}), c.informer(t, informer.Options[*configMap]{})
		shown(t)(m.Informer("", first))
		require.ErrorIs(t, must.Err(m.Informer("", second)), metrics.ErrNameTaken)
		stop := fixture.Start(t, first.Run)
		synctest.Wait()
		require.Len(t, values(t, registry, "leat_informer_objects"), 1)
		stop()
		require.Empty(t, string(exposition(t, registry)))
		shown(t)(m.Informer("", second))
		fixture.Start(t, second.Run)
		synctest.Wait()
		require.Equal(t, map[string]float64{"configmaps": 1}, values(t, registry, "leat_informer_synced"))
	})
}

// A name is free as soon as its informer has stopped, even before the next scrape.
func TestNameOfAStoppedInformerIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		first := c.informer(t, informer.Options[*configMap]{})
		r := shown(t)(m.Informer("maps", first))
		fixture.Start(t, first.Run)()
		shown(t)(m.Informer("maps", c.informer(t, informer.Options[*configMap]{})))
		r.Remove()
		require.Equal(t, map[string]float64{"maps": 0}, values(t, registry, "leat_informer_synced"))
	})
}

func TestTheAgeOfACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		maps := c.informer(t, informer.Options[*configMap]{})
		shown(t)(m.Informer("maps", maps))
		age := func() map[string]float64 { return values(t, registry, "leat_informer_age_seconds") }
		require.Empty(t, age(), "a cache that never synced has no age")
		fixture.Start(t, maps.Run)
		fixture.Pass(7 * time.Second)
		require.Equal(t, map[string]float64{"maps": 7}, age())
		c.create(t, "a")
		fixture.Pass(3 * time.Second)
		require.Equal(t, map[string]float64{"maps": 3}, age())
	})
}

func TestPrioritiesAreBounded(t *testing.T) {
	m, registry := registered(t)
	queue := workqueue.New[int](workqueue.Options{Name: "queue", Metrics: m.QueueTimes("queue")})
	shown(t)(m.Queue(queue))
	for p := range 100 {
		queue.AddWith(p, workqueue.Item{Priority: p + 1})
	}
	queue.Add(100)
	depth := values(t, registry, "workqueue_depth")
	require.Len(t, depth, 26)
	require.Equal(t, 1.0, depth["queue,queue,0"])
	require.Equal(t, 1.0, depth["queue,queue,100"], "the most urgent ones are shown")
	require.Equal(t, 76.0, depth["queue,queue,exceeded_cardinality_limit"])
	for range 101 {
		work := must.Get(queue.Get(t.Context()))(t)
		queue.Done(work.Key)
	}
	depth = values(t, registry, "workqueue_depth")
	require.Len(t, depth, 25)
	for of, n := range depth {
		require.Zero(t, n, of)
	}
}

// A queue that does not tell the priority of a key still counts it.
func TestDepthWithoutTimes(t *testing.T) {
	m, registry := registered(t)
	queue := workqueue.New[string](workqueue.Options{Name: "queue"})
	shown(t)(m.Queue(queue))
	queue.AddWith("a", workqueue.Item{Priority: 3})
	must.Get(queue.Get(t.Context()))(t)
	queue.AddWith("a", workqueue.Item{Priority: 3})
	queue.AddWith("b", workqueue.Item{Priority: 3})
	require.Equal(t, map[string]float64{"queue,queue,0": 1, "queue,queue,3": 1}, values(t, registry, "workqueue_depth"))
}

func TestQueueTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		queue := workqueue.New[string](workqueue.Options{Name: "queue", Metrics: m.QueueTimes("queue")})
		shown(t)(m.Queue(queue))
		queue.Add("a")
		linger(3 * time.Second)
		must.Get(queue.Get(t.Context()))(t)
		linger(5 * time.Second)
		queue.Done("a")
		text := string(exposition(t, registry))
		require.Contains(t, text, `workqueue_queue_duration_seconds_sum{controller="queue",name="queue"} 3`)
		require.Contains(t, text, `workqueue_work_duration_seconds_sum{controller="queue",name="queue"} 5`)
	})
}

func TestHandlersAreBounded(t *testing.T) {
	m, registry := registered(t)
	maps := newCluster(t).informer(t, informer.Options[*configMap]{})
	shown(t)(m.Informer("maps", maps))
	subscribe := func(name string) {
		must.Get(maps.Subscribe(func(api.Change[*configMap]) {}, informer.HandlerOptions{Name: name}))(t)
	}
	subscribe("twice")
	subscribe("twice")
	subscribe("\xff")
	for n := range 100 {
		subscribe(fmt.Sprint("handler ", n))
	}
	pending := values(t, registry, "leat_informer_handler_pending")
	require.Len(t, pending, 26)
	require.Contains(t, pending, "twice,maps")
	require.Contains(t, pending, "?,maps")
	require.Contains(t, pending, "others,maps")
}

func TestPendingOfAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		for _, name := range []string{"a", "b", "c"} {
			c.create(t, name)
		}
		maps := c.informer(t, informer.Options[*configMap]{})
		shown(t)(m.Informer("maps", maps))
		stuck := make(chan struct{})
		for range 2 {
			_, err := maps.Subscribe(func(n api.Change[*configMap]) {
				<-stuck
				if api.KeyOf(n.Object).Name == "c" {
					panic("no")
				}
			}, informer.HandlerOptions{Name: "stuck"})
			require.NoError(t, err)
		}
		fixture.Start(t, maps.Run)
		synctest.Wait()
		require.Equal(t, map[string]float64{"stuck,maps": 4}, values(t, registry, "leat_informer_handler_pending"))
		close(stuck)
		synctest.Wait()
		require.Equal(t, map[string]float64{"stuck,maps": 0}, values(t, registry, "leat_informer_handler_pending"))
		require.Equal(t, map[string]float64{"stuck,maps": 2}, values(t, registry, "leat_informer_handler_panics_total"))
	})
}

// TestStuckHandler has two handlers of one name whose calls are stuck: the longer one counts.
func TestStuckHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		c.create(t, "a")
		maps := c.informer(t, informer.Options[*configMap]{Handling: informer.Handling{StuckAfter: time.Minute}})
		shown(t)(m.Informer("maps", maps))
		stuck := make(chan struct{})
		handle := func(api.Change[*configMap]) { <-stuck }
		subscribe := func() {
			must.Get(maps.Subscribe(handle, informer.HandlerOptions{Name: "stuck"}))(t)
		}
		seconds := func() map[string]float64 {
			synctest.Wait()
			return values(t, registry, "leat_informer_handler_stuck_seconds")
		}
		subscribe()
		fixture.Start(t, maps.Run)
		<-time.After(30 * time.Second)
		subscribe()
		require.Equal(t, map[string]float64{"stuck,maps": 0}, seconds())
		<-time.After(30 * time.Second)
		require.Equal(t, map[string]float64{"stuck,maps": 60}, seconds())
		<-time.After(time.Minute)
		require.Equal(t, map[string]float64{"stuck,maps": 120}, seconds())
		close(stuck)
		require.Equal(t, map[string]float64{"stuck,maps": 0}, seconds())
	})
}

// Two Metrics are independent: in two registries, or in one registry with a label that distinguishes them.
func TestTwoMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, cluster := range []string{"east", "west"} {
		m := must.Get(metrics.New(prometheus.WrapRegistererWith(prometheus.Labels{"cluster": cluster}, registry)))(t)
		shown(t)(m.Controller(newIdle("a")))
	}
	require.Equal(t, map[string]float64{"east,a": 0, "west,a": 0}, values(t, registry, "controller_runtime_active_workers"))
	_, other := registered(t)
	require.Empty(t, strings.TrimSpace(string(exposition(t, other))))
}
