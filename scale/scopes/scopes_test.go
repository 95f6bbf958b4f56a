package scopes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestTwoNamespaces has two scopes of three namespaces. The cache has their objects only, and each has its own version.
func TestTwoNamespaces(t *testing.T) {
	inWorld(t, testserver.Options{BookmarkInterval: time.Hour}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		for _, namespace := range []string{"a", "b", "c"} {
			w.create(namespace, "one", "red")
		}
		r := w.record()
		require.NoError(t, w.set.Add(w.in("a", "")))
		require.NoError(t, w.set.Add(w.in("b", "")))
		w.sync()
		require.ElementsMatch(t, []string{"Added a/one initial", "Added b/one initial"}, r.Take())
		require.Equal(t, 2, w.set.Cache().Len())

		version := w.paint("a", "one", "blue")
		synctest.Wait()
		require.Equal(t, []string{"Updated a/one"}, r.Take())
		s := w.set.Snapshot()
		require.Equal(t, version, scopes.VersionIn(s, "a"))
		require.NotEqual(t, version, scopes.VersionIn(s, "b"), "no event and no bookmark came")
		require.Equal(t, scopes.VersionIn(s, "b"), s.ResourceVersion(), "the oldest")
		require.Empty(t, scopes.VersionIn(s, "c"))
		require.NoError(t, w.set.WaitForIn(t.Context(), "a", version))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, w.set.WaitFor(ctx, version), context.DeadlineExceeded, "b has not reached it")
		require.ErrorIs(t, w.set.WaitForIn(ctx, "c", "0"), context.DeadlineExceeded, "no scope has it")
		require.Equal(t, []string{"a", "b"}, w.set.Names())
		require.Nil(t, w.set.ScopeSynced("c"))
		require.True(t, runstate.IsClosed(w.set.ScopeSynced("b")))
	})
}

// TestAMoveIsAnUpdate moves an object between two selectors, and then out of both.
func TestAMoveIsAnUpdate(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		w.create("a", "one", "red")
		r := w.record()
		require.NoError(t, w.set.Add(w.in("", "color=red")))
		require.NoError(t, w.set.Add(w.in("", "color=blue")))
		w.sync()
		require.Equal(t, []string{"Added a/one initial"}, r.Take())
		for range 5 {
			w.paint("a", "one", "blue")
			synctest.Wait()
			w.paint("a", "one", "red")
			synctest.Wait()
		}
		for _, line := range r.Take() {
			require.Equal(t, "Updated a/one", line)
		}
		version := w.paint("a", "one", "green")
		require.NoError(t, w.set.WaitForIn(t.Context(), "a", version))
		synctest.Wait()
		require.Equal(t, []string{"Deleted a/one"}, r.Take())
		require.Zero(t, w.set.Cache().Len())
	})
}

// TestAddAndRemoveWhileRunning adds a scope and removes scopes, with and without notifications.
func TestAddAndRemoveWhileRunning(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		for _, namespace := range []string{"a", "b", "c"} {
			w.create(namespace, "one", "red")
		}
		r := w.record()
		require.NoError(t, w.set.Add(w.in("a", "")))
		w.sync()
		require.NoError(t, w.set.Add(w.in("b", "")))
		require.NoError(t, w.set.Add(w.in("c", "")))
		require.ErrorIs(t, w.set.Add(w.in("b", "")), scopes.ErrNameTaken)
		<-w.set.ScopeSynced("b")
		<-w.set.ScopeSynced("c")
		synctest.Wait()
		require.ElementsMatch(t, []string{"Added a/one initial", "Added b/one initial", "Added c/one initial"}, r.Take())

		<-w.set.Remove("a", scopes.Notify)
		<-w.set.Remove("b", scopes.Silent)
		synctest.Wait()
		require.Equal(t, []string{"Deleted a/one final state unknown"}, r.Take())
		require.Equal(t, 1, w.set.Cache().Len())
		require.Nil(t, w.set.Remove("a", scopes.Notify))
		require.Empty(t, scopes.VersionIn(w.set.Snapshot(), "a"))
		w.paint("a", "one", "blue")
		synctest.Wait()
		require.Empty(t, r.Take())

		late := w.record()
		synctest.Wait()
		require.Equal(t, []string{"Added c/one initial"}, late.Take())
	})
}

// TestHandOverBetweenScopes replaces one scope by two that together select the same objects. Handlers get nothing.
func TestHandOverBetweenScopes(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		for n := range 10 {
			w.create("a", fmt.Sprint("w", n), []string{"red", "blue"}[n%2])
		}
		r := w.record()
		require.NoError(t, w.set.Add(w.in("", "")))
		w.sync()
		require.Len(t, r.Take(), 10)
		before := w.set.Cache().List()
		require.NoError(t, w.set.Add(w.in("", "color=red")))
		require.NoError(t, w.set.Add(w.in("", "color=blue")))
		<-w.set.ScopeSynced("all, labels color=red")
		<-w.set.ScopeSynced("all, labels color=blue")
		<-w.set.Remove("all", scopes.Notify)
		synctest.Wait()
		require.Empty(t, r.Take())
		require.Equal(t, before, w.set.Cache().List())
		w.paint("a", "w0", "blue")
		synctest.Wait()
		require.Equal(t, []string{"Updated a/w0"}, r.Take())
	})
}

// TestALateScopeDelaysNoOther refuses one of three namespaces. The others are readable, handlers get their objects, and
// the status says which scope is late and why. Removing it completes the set.
func TestALateScopeDelaysNoOther(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		for _, namespace := range []string{"a", "b", "c"} {
			w.create(namespace, "one", "red")
			require.NoError(t, w.set.Add(w.in(namespace, "")))
		}
		w.Server.Inject(faults.Fault{Match: faults.Match{Namespace: "b"}, Effect: faults.Fail{Code: 403}})
		r := w.record()
		require.Contains(t, w.set.Status().String(), "not running")
		w.Start(w.set.Run)
		fixture.Pass(time.Minute)
		require.ElementsMatch(t, []string{"Added a/one initial", "Added c/one initial"}, r.Take())
		require.False(t, runstate.IsClosed(w.set.Synced()))
		require.NoError(t, w.set.WaitForIn(t.Context(), "a", "0"))
		s := w.set.Status()
		require.False(t, s.Synced)
		require.Equal(t, 2, s.Objects)
		require.Len(t, s.Scopes, 3)
		require.True(t, s.Scopes[0].Synced)
		require.False(t, s.Scopes[1].Synced)
		require.Error(t, s.Reflector.Err)
		require.Contains(t, s.LateScopes, "1 of 3 scopes late: b: not synced, waiting after ")
		require.Contains(t, s.String(), s.LateScopes)
		late := w.record() // joins before the set is synced
		synctest.Wait()
		require.ElementsMatch(t, []string{"Added a/one initial", "Added c/one initial"}, late.Take())
		require.False(t, w.set.Status().Handlers[1].Synced)

		<-w.set.Remove("b", scopes.Notify)
		<-w.set.Synced()
		synctest.Wait()
		s = w.set.Status()
		require.True(t, s.Handlers[0].Synced)
		require.True(t, s.Handlers[1].Synced)
		require.Empty(t, s.LateScopes)
		require.NoError(t, s.Reflector.Err)
		require.Equal(t, 2, s.Reflector.Counters.Lists)
		require.False(t, s.HeardAt.IsZero())
	})
}

// TestFollow follows objects with a label. The set is synced when the first scopes are.
func TestFollow(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.create(name, "one", "red")
			w.Create(namespaces, fixture.Named("", name))
		}
		label := func(name, value string) {
			_, err := w.Server.Edit(namespaces, api.Key{Name: name}, func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"watched": value})
			})
			require.NoError(t, err)
		}
		label("a", "yes")
		label("b", "yes")
		teams := informer.New(apiclient.NewPartial[*widget](w.Client, namespaces, ""),
			informer.Options[*widget]{Selector: api.Selector{Labels: "watched=yes"}})
		require.NoError(t, scopes.Follow(w.set, teams, func(n *widget) (scopes.Scope[*widget], bool) {
			return w.in(n.Name, ""), n.Name != "b"
		}))
		r := w.record()
		w.Start(w.set.Run)
		synctest.Wait()
		require.False(t, runstate.IsClosed(w.set.Synced()), "the teams are not known")
		stop := w.Start(teams.Run)
		<-w.set.Synced()
		synctest.Wait()
		require.Equal(t, []string{"a"}, w.set.Names())
		label("c", "yes")
		synctest.Wait()
		label("a", "no")
		synctest.Wait()
		require.Equal(t, []string{"Added a/one initial", "Added c/one initial", "Deleted a/one final state unknown"}, r.Take())
		require.Equal(t, []string{"c"}, w.set.Names())
		require.ErrorIs(t, scopes.Follow(w.set, teams, nil), informer.ErrRunning)
		stop()
	})
}

// TestListsAreBounded has 40 scopes whose lists take a second each, and at most 4 at once.
func TestListsAreBounded(t *testing.T) {
	for _, paged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, testserver.Options{}, scopes.Options[*widget]{
				Options:  informer.Options[*widget]{Tuning: reflector.Tuning{NoWatchList: paged, PageSize: 2, Rand: func() float64 { return 0 }}},
				MaxLists: 4,
			})
			lists := w.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"list"}}, Effect: faults.Delay{For: time.Second}})
			if !paged {
				lists = w.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}}, Effect: faults.Delay{For: time.Second}})
			}
			for n := range 40 {
				w.create(fmt.Sprint("ns", n), "one", "red")
				require.NoError(t, w.set.Add(w.in(fmt.Sprint("ns", n), "")))
			}
			w.Start(w.set.Run)
			fixture.Pass(500 * time.Millisecond)
			require.Equal(t, 4, lists.Seen())
			queued := 0
			for _, s := range w.set.Status().Scopes {
				if s.Reflector.Phase == reflector.Queued {
					queued++
				}
			}
			require.Equal(t, 36, queued)
			require.Contains(t, w.set.Status().LateScopes, "40 of 40 scopes late: ns0: not synced, ")
			started := time.Now()
			<-w.set.Synced()
			require.InDelta(t, 9500, time.Since(started).Milliseconds(), 600)
		})
	}
}

// TestAFatalScopeEndsTheSet has a scope whose object ends Run, with the name of the scope.
func TestAFatalScopeEndsTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fatal := errors.New("fatal")
		w := newWorld(t, testserver.Options{}, scopes.Options[*widget]{Options: informer.Options[*widget]{
			Transform: func(o *widget) (*widget, error) {
				if o.Namespace == "b" {
					return nil, errors.New("refused")
				}
				return o, nil
			},
			Hooks: reflector.Hooks{OnUndecodable: func(*api.UndecodableError) error { return fatal }},
		}})
		w.create("a", "one", "red")
		w.create("b", "one", "red")
		require.NoError(t, w.set.Add(w.in("a", "")))
		require.NoError(t, w.set.Add(w.in("b", "")))
		err := w.set.Run(t.Context())
		require.ErrorIs(t, err, fatal)
		require.ErrorContains(t, err, "scope b")
		require.ErrorIs(t, w.set.Add(w.in("c", "")), informer.ErrStopped)
		require.Nil(t, w.set.Remove("a", scopes.Notify))
	})
}

// TestWrongUse has arguments that cannot work.
func TestWrongUse(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		require.ErrorContains(t, w.set.Add(scopes.Scope[*widget]{}), "Source is nil")
		require.ErrorContains(t, w.set.Add(scopes.Scope[*widget]{Source: apiclient.NewPartial[*widget](w.Client, namespaces, "")}),
			"the scope is of teams.leat.test, and the set is of widgets.leat.test")
		require.Panics(t, func() {
			scopes.New(widgets, scopes.Options[*widget]{Options: informer.Options[*widget]{Selector: api.Selector{Labels: "a=b"}}})
		})
		_, err := w.set.ListerWatcher().List(t.Context(), api.Options[*widget]{}, nil)
		require.ErrorContains(t, err, "use the source of a scope")
	})
}

// TestRemoveBeforeRun removes a scope that never ran, and runs a set without scopes.
func TestRemoveBeforeRun(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		require.NoError(t, w.set.Add(w.in("a", "")))
		gone := w.set.Remove("a", scopes.Notify)
		w.Start(w.set.Run)
		<-gone
		<-w.set.Synced()
		require.Zero(t, w.set.Cache().Len())
	})
}

// TestANewScopeDoesNotMakeTheCacheOld adds a scope that gets no list. HeardAt is about what the cache has.
func TestANewScopeDoesNotMakeTheCacheOld(t *testing.T) {
	inWorld(t, testserver.Options{}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		require.NoError(t, w.set.Add(w.in("a", "")))
		w.sync()
		listed := time.Now()
		w.Server.Inject(faults.Fault{Match: faults.Match{Namespace: "b"}, Effect: faults.Fail{Code: 403}})
		require.NoError(t, w.set.Add(w.in("b", "")))
		fixture.Pass(time.Second)
		require.Contains(t, w.set.Status().LateScopes, "b: not synced")
		require.Equal(t, listed, w.set.Status().HeardAt)
	})
}

// TestAnUnconfirmedScopeIsNamed has two scopes. The connection of one breaks, and its probes fail.
func TestAnUnconfirmedScopeIsNamed(t *testing.T) {
	inWorld(t, testserver.Options{BookmarkInterval: -1}, scopes.Options[*widget]{}, func(t *testing.T, w *world) {
		for _, namespace := range []string{"a", "b"} {
			w.create(namespace, "one", "red")
			require.NoError(t, w.set.Add(w.in(namespace, "")))
		}
		w.sync()
		w.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"list"}, Namespace: "b"}, Effect: faults.Fail{Code: 500}})
		w.Server.Inject(faults.Fault{Match: faults.Match{Namespace: "b"}, Effect: faults.Disconnect{Abrupt: true}})
		<-time.After(5 * time.Second)
		s := w.set.Status()
		require.ErrorContains(t, s.Reflector.ProbeErr, "scope b: ")
		require.WithinDuration(t, time.Now(), s.Reflector.UnconfirmedSince, 5*time.Second)
		require.Contains(t, s.String(), ", unconfirmed since ")
	})
}
