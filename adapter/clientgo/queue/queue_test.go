package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/leatproject/leat/adapter/clientgo/queue"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/workqueue"
)

// request is a key like reconcile.Request of controller-runtime.
type request struct{ Namespace, Name string }

// newQueue has the type of controller-runtime's controller.Options.NewQueue.
var newQueue func(string, clientgo.TypedRateLimiter[request]) clientgo.TypedRateLimitingInterface[request] = queue.New[request]

func newLimiter[K comparable]() clientgo.TypedRateLimiter[K] {
	return clientgo.NewTypedItemExponentialFailureRateLimiter[K](time.Second, time.Minute)
}

func TestKeysAreHandedOutOnce(t *testing.T) {
	q := newQueue("requests", newLimiter[request]())
	a := request{"default", "a"}
	q.Add(a)
	q.Add(a)
	require.Equal(t, 1, q.Len())
	got, shutdown := q.Get()
	require.Equal(t, a, got)
	require.False(t, shutdown)
	q.Add(a)
	require.Zero(t, q.Len(), "it is being processed")
	q.Done(a)
	require.Equal(t, 1, q.Len())
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New("", newLimiter[string]())
		start := time.Now()
		q.AddAfter("after", 90*time.Second)
		q.AddAfter("after", 30*time.Second)
		for range 3 {
			q.AddRateLimited("limited") // 1 s, then 2 s and 4 s, which do not come earlier
		}
		require.Equal(t, 3, q.NumRequeues("limited"))
		key, _ := q.Get()
		require.Equal(t, "limited", key)
		require.Equal(t, time.Second, time.Since(start))
		q.Forget("limited")
		require.Zero(t, q.NumRequeues("limited"))
		key, _ = q.Get()
		require.Equal(t, "after", key)
		require.Equal(t, 30*time.Second, time.Since(start))
	})
}

func TestAnAddEndsADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New("", newLimiter[string]())
		q.AddAfter("a", time.Minute)
		q.Add("a")
		key, _ := q.Get()
		q.Done(key)
		<-time.After(2 * time.Minute)
		require.Zero(t, q.Len())
	})
}

func TestAReadyKeyIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New("", newLimiter[string]())
		q.Add("a")
		q.AddAfter("a", time.Minute)
		key, _ := q.Get()
		q.Done(key)
		<-time.After(2 * time.Minute)
		require.Zero(t, q.Len())
	})
}

func TestShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New("", newLimiter[string]())
		q.Add("a")
		q.AddAfter("b", time.Second)
		require.False(t, q.ShuttingDown())
		q.ShutDown()
		require.True(t, q.ShuttingDown())
		key, shutdown := q.Get()
		require.Equal(t, "a", key)
		require.False(t, shutdown)
		_, shutdown = q.Get()
		require.True(t, shutdown)
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New("", newLimiter[string]())
		q.Add("a")
		drained := make(chan struct{})
		go func() {
			q.ShutDownWithDrain()
			close(drained)
		}()
		synctest.Wait()
		require.True(t, q.ShuttingDown())
		key, _ := q.Get()
		synctest.Wait()
		select {
		case <-drained:
			t.Fatal("the key is still being processed")
		default:
		}
		q.Done(key)
		<-drained
	})
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]clientgo.TypedRateLimitingQueueConfig[string]{
		"MetricsProvider": {MetricsProvider: provider{}},
		"Clock":           {Clock: clock.RealClock{}},
		"DelayingQueue":   {DelayingQueue: clientgo.NewTypedDelayingQueue[string]()},
	} {
		require.ErrorContains(t, must.Err(queue.NewWithConfig(newLimiter[string](), c)), "queue: TypedRateLimitingQueueConfig."+name)
		if c.DelayingQueue != nil {
			c.DelayingQueue.ShutDown()
		}
	}
	q := must.Get(queue.NewWithConfig(newLimiter[string](), clientgo.TypedRateLimitingQueueConfig[string]{Name: "pods"}))(t)
	q.Add("a")
	require.Equal(t, 1, q.Len())
}

type provider struct{ clientgo.MetricsProvider }

func TestWrapSharesTheQueue(t *testing.T) {
	leat := workqueue.New[string](workqueue.Options{Name: "pods"})
	q := queue.Wrap(leat)
	q.Add("a")
	require.Equal(t, 1, leat.Len())
	leat.ShutDown()
	require.True(t, q.ShuttingDown())
}
