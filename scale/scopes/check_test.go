package scopes_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/driftcheck"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// checkedOptions has a check in 57 minutes, at the same time in all scopes. Watches end at other times.
func checkedOptions(log *zap.Logger) scopes.Options[*widget] {
	return scopes.Options[*widget]{Options: informer.Options[*widget]{
		Check: driftcheck.Every(time.Hour), Logger: log, Tuning: reflector.Tuning{Rand: func() float64 { return 0.4 }},
	}}
}

// ofChecks matches the requests of checks. Reflectors probe with lists of whole objects.
func ofChecks() faults.Match {
	return faults.Match{Verbs: []string{"list"}, Func: func(r *http.Request) bool {
		return strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	}}
}

// TestCheckOfOneScope lets the server drop an event in one of three scopes. The check of this scope finds it, and only
// this scope lists again.
func TestCheckOfOneScope(t *testing.T) {
	for _, tc := range []struct {
		kind   watch.EventType
		change func(w *world)
		want   string
	}{
		{watch.Added, func(w *world) { w.create("b", "two", "red") }, "Added b/two"},
		{watch.Modified, func(w *world) { w.paint("b", "one", "blue") }, "Updated b/one"},
		{watch.Deleted, func(w *world) {
			w.Delete(widgets, api.Key{Namespace: "b", Name: "one"})
		}, "Deleted b/one final state unknown"},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.WarnLevel)
				w := newWorld(t, testserver.Options{}, checkedOptions(zap.New(core)))
				for _, namespace := range []string{"a", "b", "c"} {
					w.create(namespace, "one", "red")
				}
				require.NoError(t, w.set.Add(w.in("a", "")))
				w.sync()
				require.NoError(t, w.set.Add(w.in("b", "")))
				require.NoError(t, w.set.Add(w.in("c", "")))
				synctest.Wait()
				r := w.record()
				synctest.Wait()
				r.Take()

				w.Server.Inject(faults.Fault{
					Match: faults.Match{Namespace: "b", Frames: []watch.EventType{tc.kind}}, Times: 1, Effect: faults.Drop{},
				})
				tc.change(w)
				fixture.Pass(50 * time.Minute)
				require.Empty(t, r.Take())
				fixture.Pass(15 * time.Minute)
				require.Equal(t, []string{tc.want}, r.Take())

				status := w.set.Status()
				require.Equal(t, 1, status.Check.Missed)
				require.Equal(t, 3, status.Check.Checks)
				require.NoError(t, status.Check.Err)
				require.Contains(t, status.String(), "1 missed and found by checks (scopes: b)")
				for _, s := range status.Scopes {
					missed, lists := 0, 1
					if s.Name == "b" {
						missed, lists = 1, 2
						require.ErrorIs(t, s.Reflector.LastError, reflector.ErrMissed)
					}
					require.Equal(t, missed, s.Check.Missed, s.Name)
					require.Equal(t, lists, s.Reflector.Counters.Lists, s.Name)
				}
				found := logs.FilterMessage("the cache missed changes; listing again").All()
				require.Len(t, found, 1)
				require.Equal(t, "b", found[0].ContextMap()["scope"])

				<-w.set.Remove("b", scopes.Notify)
				fixture.Pass(10 * time.Hour)
				require.Equal(t, 1, w.set.Status().Check.Missed, "a removed scope counts")
				require.Greater(t, w.set.Status().Check.Checks, 20)
			})
		})
	}
}

// TestCheckOfCommonObjects lets the server drop a deletion in one of two scopes that have the object. The cache keeps
// the object until the check of this scope.
func TestCheckOfCommonObjects(t *testing.T) {
	inWorld(t, testserver.Options{}, checkedOptions(nil), func(t *testing.T, w *world) {
		w.create("a", "one", "red")
		require.NoError(t, w.set.Add(w.in("", "")))
		require.NoError(t, w.set.Add(w.in("a", "")))
		w.sync()
		w.Server.Inject(faults.Fault{Match: faults.Match{Frames: []watch.EventType{watch.Deleted}}, Times: 1, Effect: faults.Drop{}})
		w.Delete(widgets, api.Key{Namespace: "a", Name: "one"})
		<-time.After(50 * time.Minute)
		require.Equal(t, 1, w.set.Cache().Len())
		fixture.Pass(15 * time.Minute)
		require.Zero(t, w.set.Cache().Len())
		require.Equal(t, 1, w.set.Status().Check.Missed)
		require.Equal(t, 3, w.set.Status().Reflector.Counters.Lists)
	})
}

// TestAScopeIsRemovedDuringItsCheck removes a scope whose check waits for the server. Another check gets its place, the
// scope is gone at once, and no goroutine of it is left: the bubble would not end.
func TestAScopeIsRemovedDuringItsCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := checkedOptions(nil)
		o.MaxLists = 1
		w := newWorld(t, testserver.Options{}, o)
		w.create("a", "one", "red")
		require.NoError(t, w.set.Add(w.in("a", "")))
		w.sync()
		stalled := w.Server.Inject(faults.Fault{Match: ofChecks(), Times: 1, Effect: faults.Stall{}})
		<-time.After(30 * time.Minute)
		require.NoError(t, w.set.Add(w.in("b", "")))
		<-time.After(28 * time.Minute)
		require.Equal(t, 1, stalled.Seen())
		started := time.Now()
		<-w.set.Remove("a", scopes.Notify)
		synctest.Wait()
		require.Zero(t, time.Since(started))
		fixture.Pass(31 * time.Minute)
		status := w.set.Status()
		require.Equal(t, informer.CheckStatus{Checks: 1, At: status.Check.At}, status.Check)
		require.Equal(t, status.Check, status.Scopes[0].Check)
	})
}

// TestChecksOfScopesAreBounded has 10 checks that begin at once and whose lists take a second each, two at once. A
// scope that lists then does not wait for them.
func TestChecksOfScopesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := checkedOptions(nil)
		o.MaxLists = 2
		w := newWorld(t, testserver.Options{}, o)
		for n := range 10 {
			require.NoError(t, w.set.Add(w.in(fmt.Sprint("ns", n), "")))
		}
		w.sync()
		lists := w.Server.Inject(faults.Fault{Match: ofChecks(), Effect: faults.Delay{For: time.Second}})
		fixture.Pass(57*time.Minute + 500*time.Millisecond)
		for n := range 5 {
			require.Equal(t, 2+2*n, lists.Seen())
			if n == 1 {
				require.NoError(t, w.set.Add(w.in("late", "")))
				synctest.Wait()
				<-w.set.ScopeSynced("late")
			}
			fixture.Pass(time.Second)
		}
		require.Equal(t, 10, w.set.Status().Check.Checks)
		require.NoError(t, w.set.Status().Check.Err)
	})
}

// TestChecksOfScopesThatFail has one scope whose source has no metadata, and one that the server refuses.
func TestChecksOfScopesThatFail(t *testing.T) {
	inWorld(t, testserver.Options{}, checkedOptions(nil), func(t *testing.T, w *world) {
		require.NoError(t, w.set.Add(scopes.Scope[*widget]{Name: "z", Source: quiet{namespace: "z"}}))
		require.NoError(t, w.set.Add(w.in("a", "")))
		w.sync()
		require.ErrorContains(t, w.set.Status().Check.Err, "scope z: driftcheck: informer.Options.Check has no effect")
		w.Server.Inject(faults.Fault{Match: ofChecks(), Times: 1, Effect: faults.Fail{Code: 403}})
		fixture.Pass(61 * time.Minute)
		require.ErrorContains(t, w.set.Status().Check.Err, "scope a: driftcheck: list metadata: ")
		fixture.Pass(60 * time.Minute)
		require.NoError(t, w.set.Status().Scopes[0].Check.Err)
	})
}

// TestChecksOfScopesFindNothingInChurn changes objects all the time, even between the pages of the checks, whose
// answers are slow. Objects move between selectors, and a scope comes and goes. No event is lost, so no check may find
// anything.
func TestChecksOfScopesFindNothingInChurn(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, testserver.Options{}, scopes.Options[*widget]{Options: informer.Options[*widget]{
				Check: driftcheck.Every(time.Minute), Tuning: reflector.Tuning{PageSize: 2},
			}})
			for _, scope := range []scopes.Scope[*widget]{w.in("", "color=red"), w.in("", "color=blue"), w.in("a", "")} {
				require.NoError(t, w.set.Add(scope))
			}
			w.sync()
			w.Server.Inject(faults.Fault{Match: ofChecks(), Effect: faults.Delay{For: 700 * time.Millisecond}})
			random := rand.New(rand.NewPCG(seed, 1))
			for n := range 2000 {
				color := []string{"red", "blue", "green"}[random.IntN(3)]
				o := &widget{ObjectMeta: metav1.ObjectMeta{
					Namespace: []string{"a", "b"}[random.IntN(2)], Name: fmt.Sprint("w", random.IntN(6)), Labels: map[string]string{"color": color},
				}}
				switch random.IntN(3) {
				case 0:
					_, _ = w.Server.Create(widgets, o)
				case 1:
					_, _ = w.Server.Update(widgets, o)
				default:
					_ = w.Server.Delete(widgets, api.KeyOf(o))
				}
				switch n % 500 {
				case 100:
					require.NoError(t, w.set.Add(w.in("b", "")))
				case 400:
					w.set.Remove("b", scopes.Notify)
				}
				<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
			}
			status := w.set.Status()
			require.Greater(t, status.Check.Checks, 10)
			require.NoError(t, status.Check.Err)
			require.Zero(t, status.Check.Missed)
		})
	}
}
