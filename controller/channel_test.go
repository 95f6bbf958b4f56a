package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/workqueue"
)

// listen runs a controller that watches a source, and returns it with its reports.
func listen(t *testing.T, s controller.Source[string]) (ctl *controller.Controller[string], seen *reports, stop func() error) {
	seen = new(reports)
	ctl = controller.New("test", reconcileFunc(succeed), controller.Options{OnReconcile: seen.add})
	ctl.Watch(s)
	stop = start(t, ctl.Run)
	<-ctl.Synced()
	return ctl, seen, stop
}

// keys waits until all goroutines are idle and returns the keys that were reconciled since the last call.
func (r *reports) keys() string {
	var keys []string
	for _, report := range r.take() {
		keys = append(keys, report.Key)
	}
	return strings.Join(keys, " ")
}

func TestChannelTellsEveryController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		source := controller.Channel("bells", events, strings.Fields)
		_, first, stopFirst := listen(t, source)
		_, second, stopSecond := listen(t, source.Unless(func(e string) bool { return e == "b" }))
		send := func(e string) {
			events <- e
			synctest.Wait()
		}
		sent := time.Now()
		send("a b a")
		send("b")
		all := first.take()
		require.Len(t, all, 3, "a key that comes twice in one event is added once")
		require.Equal(t, []workqueue.Cause{{Source: "bells", Event: "event", Object: "a", At: sent}}, all[0].Causes)
		require.Equal(t, "a b", second.keys())

		_, third, stopThird := listen(t, source)
		send("c")
		require.Equal(t, "c", first.keys())
		require.Equal(t, "c", second.keys())
		require.Equal(t, "c", third.keys())

		require.NoError(t, stopFirst()) // it is the reader of the channel; the other one takes over
		send("d")
		require.Empty(t, first.keys())
		require.Equal(t, "d", second.keys())
		require.NoError(t, stopSecond())
		require.NoError(t, stopThird())

		select {
		case events <- "e":
			t.Fatal("no receiver is left")
		default:
		}
		_, fourth, _ := listen(t, source)
		send("f")
		require.Equal(t, "f", fourth.keys())
	})
}

func TestChannelThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string, 1)
		source := controller.Channel("bells", events, strings.Fields)
		ctl, _, _ := listen(t, source)
		other := ctl.Watch(source)
		events <- "a"
		close(events)
		synctest.Wait()
		require.Empty(t, ctl.Stats().Sources)
		<-other.Done()
		require.NoError(t, other.Err())
		before := ctl.Stats().Succeeded // once or twice, as the key comes from two sources
		ctl.Add("b", workqueue.Item{})
		synctest.Wait()
		require.Equal(t, before+1, ctl.Stats().Succeeded, "the controller goes on")

		late := ctl.Watch(source)
		<-late.Done()
		require.NoError(t, late.Err())
	})
}

func TestChannelLeavesItsKeysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, all := make(chan string), []string{"a", "a", "b"}
		_, seen, _ := listen(t, controller.Channel("bells", events, func(string) []string { return all }))
		events <- "all"
		require.Equal(t, "a b", seen.keys())
		require.Equal(t, []string{"a", "a", "b"}, all)
	})
}

func TestChannelFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		has := func(letter string) func(string) bool {
			return func(e string) bool { return strings.Contains(e, letter) }
		}
		source := controller.Channel("bells", events, strings.Fields)
		_, seen, _ := listen(t, source.When(has("a"), has("b")).Unless(has("x"), has("y")).WhenAny(has("1"), has("2")))
		_, all, _ := listen(t, source)
		for _, e := range []string{"ab1", "ab2", "a1", "b1", "abx1", "aby1", "ab"} {
			events <- e
		}
		require.Equal(t, "ab1 ab2", seen.keys())
		require.Equal(t, "ab1 ab2 a1 b1 abx1 aby1 ab", all.keys())
	})
}

func TestChannelPanicIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		source := controller.Channel("bells", events, func(e string) []string {
			if e == "unmappable" {
				panic("a bug")
			}
			return []string{e}
		})
		ctl, seen, _ := listen(t, source.When(func(e string) bool {
			if e == "unspeakable" {
				panic("a bug")
			}
			return true
		}))
		for _, e := range []string{"unmappable", "unspeakable", "a"} {
			events <- e
		}
		require.Equal(t, "unspeakable a", seen.keys(), "a predicate that panics passes")
		require.EqualValues(t, 2, ctl.Stats().SourcePanics)
		require.EqualValues(t, 2, ctl.Stats().Sources[0].Panics)
	})
}

func TestChannelDelaysTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, leave, asked := make(chan string), make(chan struct{}), 0
		source := controller.Channel("bells", events, strings.Fields)
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		w := ctl.Watch(source.When(func(string) bool {
			asked++
			<-leave
			return true
		}))
		start(t, ctl.Run)
		<-ctl.Synced()
		_, other, _ := listen(t, source)
		events <- "a"
		sent := make(chan struct{})
		go func() {
			events <- "b"
			close(sent)
		}()
		synctest.Wait()
		require.Equal(t, 1, asked)
		select {
		case <-sent:
			t.Fatal("the previous event is still being handled")
		default:
		}
		w.Remove()
		synctest.Wait()
		select {
		case <-w.Done():
			t.Fatal("a call is in flight")
		default:
		}
		close(leave)
		<-sent
		<-w.Done()
		require.Equal(t, "a b", other.keys())
		require.Equal(t, 1, asked, "the source was removed before the second call")
		require.Zero(t, ctl.Stats().Reconciles)
	})
}

// TestListenerThatLeavesIsWaitedFor removes a source while another one's reader delivers an event to it.
func TestListenerThatLeavesIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, entered, leave := make(chan string), make(chan struct{}), make(chan struct{})
		var mapped atomic.Int64
		source := controller.Channel("bells", events, func(e string) []string {
			mapped.Add(1)
			return []string{e}
		})
		_, reader, _ := listen(t, source)
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		w := ctl.Watch(source.When(func(string) bool {
			close(entered)
			<-leave
			return true
		}))
		start(t, ctl.Run)
		<-ctl.Synced()
		events <- "a"
		<-entered
		w.Remove()
		synctest.Wait()
		select {
		case <-w.Done():
			t.Fatal("a call is in flight")
		default:
		}
		close(leave)
		<-w.Done()
		require.Equal(t, "a", reader.keys())
		require.Zero(t, ctl.Stats().Reconciles)
		require.EqualValues(t, 1, mapped.Load(), "the functions of a removed source are not called again")
	})
}

func TestSourceFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		source := controller.SourceFunc("clock", func(ctx context.Context, sink *controller.Sink[string]) error {
			calls.Add(1)
			tick := time.NewTicker(time.Minute)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-tick.C:
					sink.Add(fmt.Sprint(i), workqueue.Item{})
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		ctl, first, _ := listen(t, source)
		_, second, _ := listen(t, source)
		require.Equal(t, "clock", ctl.Stats().Sources[0].Name)
		pass(2 * time.Minute)
		require.Equal(t, "0 1", first.keys())
		require.Equal(t, "0 1", second.keys())
		require.EqualValues(t, 2, calls.Load())
		why := ctl.Why("1")
		require.Len(t, why, 1)
		require.Equal(t, "clock", why[0].Causes[0].Source)
		require.Equal(t, "request", why[0].Causes[0].Event)
		require.Equal(t, why[0].Started, why[0].Causes[0].At)
	})
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("the clock stands still")
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		ctl.Watch(controller.SourceFunc("clock", func(context.Context, *controller.Sink[string]) error { return failure }))
		require.ErrorIs(t, ctl.Run(t.Context()), failure)
	})
}

func TestPredicatesOfTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		first, second, third := c.collection(owners), c.collection(things), c.collection(things)
		r := &recorder{}
		notSecret := func(n api.Change[api.Object]) bool {
			require.Equal(t, n.Type == api.Updated, n.Old != nil)
			return n.Object.GetName() != "secret"
		}
		ctl := controller.New("test", r, controller.Options{
			When: []predicate.Predicate[api.Object]{notSecret, predicate.OfType(predicate.GenerationChanged[*thing])},
		})
		ctl.Watch(controller.For(first.running(t)))
		ctl.Watch(controller.For(second.running(t)).When(predicate.Object(func(o *thing) bool { return o.Name != "own" })))
		ctl.Watch(controller.For(third.running(t)).Regardless().Unless(predicate.Deleted))
		start(t, ctl.Run)
		<-ctl.Synced()

		spec := func(name, spec string) *thing {
			object := named(name)
			object.Spec = spec
			return object
		}
		for _, server := range []*collection{first, second} {
			server.apply(named("secret"))
			server.apply(named("a"))
			require.Equal(t, []string{"a"}, r.names())
			server.apply(named("a"))
			require.Empty(t, r.names(), "the generation has not changed")
			server.apply(spec("a", "new"))
			require.Equal(t, []string{"a"}, r.names())
			server.delete("a")
			require.Equal(t, []string{"a"}, r.names())
		}
		second.apply(named("own"))
		require.Empty(t, r.names(), "the source's own predicates apply too")
		third.apply(named("secret"))
		third.apply(named("secret"))
		require.NotEmpty(t, r.names(), "the source is exempted")
		third.delete("secret")
		require.Empty(t, r.names(), "but not from its own predicates")
	})
}

func TestPanicOfAControllersPredicatePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(cluster).collection(things)
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{
			When: []predicate.Predicate[api.Object]{func(api.Change[api.Object]) bool { panic("a bug") }},
		})
		ctl.Watch(controller.For(server.running(t)))
		start(t, ctl.Run)
		server.apply(named("a"))
		require.Equal(t, []string{"a"}, r.names())
		require.EqualValues(t, 1, ctl.Stats().SourcePanics)
	})
}
