package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

func TestWhyHasTheLastReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		results := []controller.Result{{}, {RequeueAfter: time.Hour, Priority: 2}, {}, {}, {}}
		failures := []error{errors.New("no luck"), nil, controller.TerminalError(errors.New("hopeless")), nil, nil}
		calls := 0
		ctl := traced(controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			linger(time.Second)
			calls++
			return results[calls-1], failures[calls-1]
		}), controller.Options{Queue: workqueue.Options{MaxCauses: 2}}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		require.Empty(t, ctl.Why("a"))

		f.add("a", because("first"))
		pass(30 * time.Minute)
		require.Len(t, ctl.Why("a"), 2)
		pass(time.Hour)
		f.add("b", because("of another"))
		for i := range 3 {
			f.add("a", because(fmt.Sprint("last-", i)))
		}
		pass(time.Hour)

		all := seen.take()
		require.Len(t, all, 5)
		require.Equal(t, "b", all[3].Key)
		require.Equal(t, []controller.Report{textOnly(all[3])}, ctl.Why("b"))
		require.Equal(t, []controller.Report{textOnly(all[4]), textOnly(all[2]), textOnly(all[1]), textOnly(all[0])}, ctl.Why("a"))
		require.Equal(t, 1, all[4].CausesOmitted)
		require.Equal(t, time.Hour, ctl.Why("a")[2].RequeueAfter)

		results, failures = append(results, controller.Result{}), append(failures, nil)
		f.add("a", because("one more"))
		pass(time.Minute)
		why := ctl.Why("a")
		require.Len(t, why, 4, "the history drops the oldest")
		require.Equal(t, []string{"one more"}, eventsOf(why[0]))
		require.Equal(t, textOnly(all[1]), why[3])
	})
}

// textOnly returns a report as the history stores it.
func textOnly(r controller.Report) controller.Report {
	if r.Err != nil {
		r.Err = errors.New(r.Err.Error())
	}
	return r
}

func TestWhyForgetsTheKeysOfLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{Tuning: controller.Tuning{History: 3}})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		known := func() (keys string) {
			for _, key := range strings.Split("abcde", "") {
				if len(ctl.Why(key)) > 0 {
					keys += key
				}
			}
			return keys
		}
		for _, step := range []struct{ key, known string }{
			{"a", "a"}, {"b", "ab"}, {"c", "abc"}, {"a", "abc"}, {"d", "acd"}, {"c", "acd"}, {"b", "bcd"}, {"d", "bcd"}, {"e", "bde"}, {"a", "ade"},
		} {
			f.add(step.key, workqueue.Item{})
			synctest.Wait()
			require.Equal(t, step.known, known(), "after %s", step.key)
		}
		require.Len(t, ctl.Why("a"), 1, "the reconciles of its first page are gone")
		require.Len(t, ctl.Why("d"), 2)
		require.Equal(t, []string{"request"}, eventsOf(ctl.Why("a")[0]), "and no other data of it is left")
	})
	synctest.Test(t, func(t *testing.T) {
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{Tuning: controller.Tuning{History: -1}})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		synctest.Wait()
		require.EqualValues(t, 1, ctl.Stats().Succeeded)
		require.Empty(t, ctl.Why("a"))
	})
}

type oddError struct{}

func (oddError) Error() string { panic("a bug") }

func TestErrorsOfAnyLengthAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := map[string]error{"long": errors.New(strings.Repeat("ä€", 10_000)), "odd": oddError{}}
		ctl := controller.New("test", reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
			return controller.Result{}, controller.TerminalError(failures[key])
		}), controller.Options{})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("long", workqueue.Item{})
		synctest.Wait()
		text := ctl.Why("long")[0].Err.Error()
		require.Less(t, len(text), 600)
		require.True(t, utf8.ValidString(text), "the text is not cut inside a character")
		require.True(t, strings.HasPrefix(text, "terminal error: ä€ä€"))
		f.add("odd", workqueue.Item{})
		synctest.Wait()
		require.ErrorContains(t, ctl.Why("odd")[0].Err, "panics")
	})
}

// TestHistoryIsBounded fills a history more than once and measures its memory.
func TestHistoryIsBounded(t *testing.T) {
	const keys = 300
	weigh := func(t *testing.T, causes int, err error) (bytesAKey uint64) {
		ctl := controller.New("test", controller.Func[int](func(context.Context, int) (controller.Result, error) {
			return controller.Result{}, controller.TerminalError(err)
		}), controller.Options{Tuning: controller.Tuning{History: keys}})
		start(t, ctl.Run)
		round := func(n int) {
			for i := range 4 * n { // each key four times in a row
				for c := range causes {
					ctl.Add(i/4, workqueue.Item{Cause: workqueue.Cause{Source: "pods", Event: "update", Object: fmt.Sprint("default/web-", i, "-", c)}, After: 1})
				}
				pass(time.Second)
			}
		}
		round(10) // the queue has allocated its memory
		before := heap()
		round(2 * keys)
		round(2 * keys)
		weight := heap() - before
		require.Len(t, ctl.Why(2*keys-1), 4)
		require.Len(t, ctl.Why(2*keys - 1)[3].Causes, causes)
		return weight / keys
	}
	synctest.Test(t, func(t *testing.T) {
		usual, worst := weigh(t, 1, nil), weigh(t, 4, errors.New(strings.Repeat("x", 10_000)))
		t.Logf("usual %d B, worst %d B a key", usual, worst)
		require.Less(t, usual, uint64(1600))
		require.Less(t, worst, uint64(5500))
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ask sends a request to a handler and returns the decoded JSON.
func ask(t *testing.T, h http.Handler, path string) (code int, body map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code == http.StatusOK {
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	}
	return w.Code, body
}

func TestDebugOfAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(cluster).collection(things)
		server.fail(errors.New("no such road"))
		leave := make(chan struct{})
		ctl := controller.New("test", controller.Func[api.Key](func(_ context.Context, key api.Key) (controller.Result, error) {
			<-leave
			return controller.Result{}, nil
		}), controller.Options{Workers: 3, CacheSyncTimeout: -1})
		h := ctl.DebugHandler()
		ctl.Watch(controller.For(server.running(t)))
		start(t, ctl.Run)
		pass(time.Second)

		_, state := ask(t, h, "/debug/controllers/test")
		require.Equal(t, "test", state["Name"])
		require.Equal(t, false, state["Synced"])
		source := state["Sources"].([]any)[0].(map[string]any)
		require.Equal(t, "things", source["Name"])
		require.Contains(t, source["NotSynced"], "no such road")

		server.fail(nil)
		server.apply(named("a"))
		pass(time.Hour)
		server.apply(named("b"))
		pass(time.Minute)
		_, state = ask(t, h, "/debug/controllers/test")
		require.Equal(t, true, state["Synced"])
		require.NotContains(t, state["Sources"].([]any)[0], "NotSynced")
		require.EqualValues(t, 2, state["Queue"].(map[string]any)["Processing"])
		running := state["Running"].([]any)
		require.Len(t, running, 2)
		longest := running[0].(map[string]any)
		require.Equal(t, "default/a", longest["Key"])
		require.EqualValues(t, state["Queue"].(map[string]any)["LongestRunning"], longest["Took"])
		require.Len(t, longest["Causes"], 1)
		require.EqualValues(t, time.Minute, running[1].(map[string]any)["Took"])

		close(leave)
		synctest.Wait()
		_, state = ask(t, h, "/")
		require.Empty(t, state["Running"])
		require.EqualValues(t, 2, state["Succeeded"])

		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	})
}

func TestDebugOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan error)
		shut, again := false, func() {}
		gate := keyGate(func(_ api.Key, f func()) bool {
			again = f
			return !shut
		})
		ctl := controller.New("test", controller.Gated(controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			return controller.Result{}, <-leave
		}), gate), controller.Options{})
		h := ctl.DebugHandler()
		start(t, ctl.Run)
		<-ctl.Synced()

		const path = "/debug/why/default/a"
		code, _ := ask(t, h, path)
		require.Equal(t, http.StatusNotFound, code)

		ctl.Add(keyOf("a"), because("first"))
		synctest.Wait()
		code, why := ask(t, h, path)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "first", firstEvent(why["Running"]))
		require.NotContains(t, why, "Gated")
		require.Empty(t, why["Reconciles"])
		code, _ = ask(t, h, "/debug/why/default/other")
		require.Equal(t, http.StatusNotFound, code)

		shut = true
		leave <- controller.TerminalError(errors.New("no luck"))
		ctl.Add(keyOf("a"), because("second"))
		synctest.Wait()
		_, why = ask(t, h, path)
		require.NotContains(t, why, "Running")
		require.Equal(t, "second", firstEvent(why["Gated"]))
		past := why["Reconciles"].([]any)
		require.Len(t, past, 1)
		require.Equal(t, "first", firstEvent(past[0]))
		require.Equal(t, "terminal error: no luck", past[0].(map[string]any)["Err"])
		require.Equal(t, string(controller.Terminal), past[0].(map[string]any)["Outcome"])

		shut = false
		again()
		leave <- nil
		synctest.Wait()
		_, why = ask(t, h, "/debug/controllers/test/why/default/a")
		require.Len(t, why["Reconciles"], 2)
		require.NotContains(t, why, "Gated")
		require.NotContains(t, why["Reconciles"].([]any)[0], "Err")
	})
}

// TestDebugWhileWorking sends requests all the time, for the race detector.
func TestDebugWhileWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		ctl := controller.New("test", controller.Gated(reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
			linger(time.Millisecond)
			d.close(key)
			if len(key)%2 == 0 {
				return controller.Result{}, errors.New("no luck")
			}
			return controller.Result{}, nil
		}), d), controller.Options{Workers: 4, MaxRetries: 1, Tuning: controller.Tuning{History: 8}})
		start(t, ctl.Run)
		h := ctl.DebugHandler()
		most := 0
		for i := range 100 {
			key := fmt.Sprint(i * i % 37)
			ctl.Add(key, because("add"))
			_, state := ask(t, h, "/debug/controllers/test")
			running := state["Running"].([]any)
			most = max(most, len(running))
			require.LessOrEqual(t, len(running), 4)
			code, why := ask(t, h, "/debug/why/"+key)
			require.Equal(t, code == http.StatusOK, why != nil)
			linger(100 * time.Microsecond)
			if i%3 == 0 {
				d.open(key)
			}
		}
		require.Equal(t, 4, most)
	})
}

func firstEvent(report any) any {
	return report.(map[string]any)["Causes"].([]any)[0].(map[string]any)["Event"]
}

type keyGate func(key api.Key, again func()) bool

func (f keyGate) Ready(key api.Key, again func()) bool { return f(key, again) }

func (keyGate) Begin(ctx context.Context, _ api.Key) context.Context { return ctx }
