package reflector_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// counting has a transform that records its calls.
type counting struct {
	states []string
	copies bool // it returns copies and does not change its argument
}

func (c *counting) transform(t *thing) (*thing, error) {
	c.states = append(c.states, t.String())
	if c.copies {
		fresh := *t
		t = &fresh
	}
	t.transformed++
	return t, nil
}

// The transform is called exactly once for each stored state; client-go calls it 5 times for 3 objects of a WatchList.
func TestTransformOnce(t *testing.T) {
	for name, begin := range map[string]script{
		"watchlist": {watchList(added(at("a", "1")), added(at("b", "2")), added(at("c", "3")), initialEnd("5"), time.Second)},
		"list":      {watchList(errInvalid), list("5", at("a", "1"), at("b", "2"), at("c", "3")), watch(time.Second)},
	} {
		bubble(t, name, func(t *testing.T) {
			c := &counting{}
			run(t, options{Transform: c.transform}, begin...)
			require.Equal(t, []string{"a@1", "b@2", "c@3"}, c.states)
		})
		bubble(t, name+", then a watch and a relist", func(t *testing.T) {
			c := &counting{copies: name == "list"}
			relist := watchList(added(at("a", "6")), added(at("b", "7")), added(at("d", "8")), initialEnd("9"), stay)
			if name == "list" {
				relist = list("9", at("a", "6"), at("b", "7"), at("d", "8"))
			}
			s := append(script{}, begin...)
			s = append(s, watch(modified(at("a", "6")), modified(at("a", "6")), added(at("a", "1")), time.Second, errExpired), relist)
			b := run(t, options{Transform: c.transform}, s...)
			b.pass(time.Minute)
			require.Equal(t, []string{"a@1", "b@2", "c@3", "a@6", "b@7", "d@8"}, c.states)
			for _, name := range []string{"a", "b", "d"} {
				require.Equal(t, 1, b.known(name).transformed, name)
			}
		})
	}
}

// Handlers get the last state of a deleted object transformed, like the states before.
func TestTransformOfDeletions(t *testing.T) {
	for _, copies := range []bool{false, true} {
		bubble(t, fmt.Sprintf("copies=%t", copies), func(t *testing.T) {
			c := &counting{copies: copies}
			b := run(t, options{Transform: c.transform}, watchList(
				added(at("a", "1")), added(at("b", "2")), added(at("c", "3")), initialEnd("5"),
				deleted(at("a", "6")), deleted(at("b", "2")), deleted(at("unknown", "7")), stay,
			))
			require.Equal(t, []string{"a@1", "b@2", "c@3", "a@6"}, c.states, "a known state is already transformed")
			require.Zero(t, b.Status().Counters.Stale)
			changes := b.changes()
			require.Len(t, changes, 3)
			require.Equal(t, "[Added a@1 Deleted a@6]", fmt.Sprint(changes["a"]))
			for name, want := range map[string]string{"a": "a@6", "b": "b@2"} {
				last := b.last[name]
				require.Equal(t, want, last.String())
				require.Equal(t, 1, last.transformed, name)
			}
		})
	}
}

// A failed transform affects one object only, whose last good state stays.
func TestTransformContained(t *testing.T) {
	fail := errors.New("will not")
	for name, c := range map[string]struct {
		transform func(*thing) (*thing, error)
		want      string
	}{
		"error":                {func(*thing) (*thing, error) { return nil, fail }, "decode things.test a: transform: will not"},
		"panic":                {func(*thing) (*thing, error) { panic("ouch") }, "decode things.test a: transform: panic: ouch"},
		"panic of its own":     {func(t *thing) (*thing, error) { return at(t.name, []string{}[len(t.name)]), nil }, "decode things.test a: transform: panic: runtime error: index out of range [1] with length 0"},
		"nil":                  {func(*thing) (*thing, error) { return nil, nil }, "decode things.test a: transform: panic: runtime error: invalid memory address or nil pointer dereference"},
		"another name":         {func(t *thing) (*thing, error) { t.name = "z"; return t, nil }, "decode things.test a: transform: it changed the namespace, the name, the UID or the version"},
		"another UID":          {func(t *thing) (*thing, error) { t.uid = "z"; return t, nil }, "decode things.test a: transform: it changed the namespace, the name, the UID or the version"},
		"another version":      {func(t *thing) (*thing, error) { t.version = "7"; return t, nil }, "decode things.test a: transform: it changed the namespace, the name, the UID or the version"},
		"an object of its own": {func(*thing) (*thing, error) { return at("a", "1"), nil }, "decode things.test a: transform: it changed the namespace, the name, the UID or the version"},
	} {
		transform := func(o *thing) (*thing, error) {
			if o.name == "a" && o.version != "1" {
				return c.transform(o)
			}
			return o, nil
		}
		bubble(t, name+" in a watch", func(t *testing.T) {
			b := run(t, options{Transform: transform}, watchList(
				added(at("a", "1")), added(at("b", "1")), initialEnd("5"), modified(at("a", "6")), modified(at("b", "7")), stay,
			))
			b.expectStore("replace [a@1 b@1] at 5", "bookmark 6", "put b@7 at 7")
			require.Len(t, b.Undecodable(), 1)
			require.EqualError(t, b.Undecodable()[0], c.want)
			require.Equal(t, apiwatch.Modified, b.Undecodable()[0].Type)
			require.Equal(t, "6", b.Undecodable()[0].ResourceVersion)
		})
		bubble(t, name+" in a deletion", func(t *testing.T) {
			b := run(t, options{Transform: transform}, watchList(added(at("a", "1")), initialEnd("5"), deleted(at("a", "6")), stay))
			b.expectStore("replace [a@1] at 5", "delete key a at 6")
			require.Empty(t, b.Undecodable(), "a deleted object is no longer undecodable")
			require.Equal(t, 1, b.Status().Counters.Undecodable)
		})
		bubble(t, name+" in a list", func(t *testing.T) {
			b := run(t, options{Transform: transform, Tuning: reflector.Tuning{NoWatchList: true}},
				list("5", at("a", "1"), at("b", "1")), watch(errExpired), list("9", at("a", "8"), at("b", "8"), at("c", "8")), watch(stay))
			b.expectStore("replace [a@1 b@1] at 5", "replace [a@1 b@8 c@8] at 9")
			require.EqualError(t, b.Undecodable()[0], c.want)
		})
		bubble(t, name+" in a WatchList", func(t *testing.T) {
			b := run(t, options{Transform: transform},
				watchList(added(at("a", "1")), added(at("b", "1")), modified(at("a", "3")), modified(at("b", "4")), initialEnd("5"), stay))
			b.expectStore("replace [a@1 b@4] at 5")
			require.EqualError(t, b.Undecodable()[0], c.want)
		})
	}
}

func TestUndecodable(t *testing.T) {
	bubble(t, "in a watch: the version advances, the last good state stays", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"),
			bad(apiwatch.Modified, at("a", "6")), bad(apiwatch.Added, at("n", "7")), time.Second), watch(stay))
		b.pass(2 * time.Second)
		b.expectRequests(firstWatchList, "1s watch rv=7")
		b.expectStore("replace [a@1] at 5", "bookmark 6", "bookmark 7")
		require.ElementsMatch(t, []string{"a 6", "n 7"}, undecodable(b))
		require.Equal(t, 2, b.Status().Counters.Undecodable)
	})
	bubble(t, "a good state or a deletion resolves it", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), added(at("b", "1")), added(at("c", "1")), initialEnd("5"),
			bad(apiwatch.Modified, at("a", "6")), bad(apiwatch.Modified, at("b", "7")), bad(apiwatch.Modified, at("c", "8")), time.Second,
			modified(at("a", "9")), deleted(at("b", "10")), bad(apiwatch.Deleted, at("c", "11")), stay))
		require.Len(t, undecodable(b), 3)
		b.pass(2 * time.Second)
		require.Empty(t, undecodable(b))
		b.expectStore("replace [a@1 b@1 c@1] at 5", "bookmark 6", "bookmark 7", "bookmark 8", "put a@9 at 9", "delete b@10 at 10", "delete key c at 11")
	})
	bubble(t, "late events are dropped, and contradictions are found", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "5")), watch(bad(apiwatch.Modified, at("a", "4")), bad(apiwatch.Added, at("deleted", "3")), stay), list("6"), watch(stay))
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "0s list rv= limit=500", "0s watch rv=6")
		require.Equal(t, 1, b.Status().Counters.Stale)
		require.Zero(t, b.Status().Counters.Undecodable)
	})
	bubble(t, "an event that is not newer than an undecodable state is dropped", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "5")), watch(
			bad(apiwatch.Modified, at("a", "8")), modified(at("a", "7")), bad(apiwatch.Modified, at("a", "8")),
			bad(apiwatch.Added, at("n", "9")), modified(at("n", "8")), bad(apiwatch.Modified, at("n", "9")),
			bookmark("12"), modified(at("a", "10")), stay,
		))
		b.expectStore("replace [a@5] at 5", "bookmark 8", "bookmark 9", "bookmark 12", "put a@10 at 12")
		require.Equal(t, 4, b.Status().Counters.Stale)
		require.Equal(t, 2, b.Status().Counters.Undecodable)
	})
	bubble(t, "a state without a UID keeps the last good state", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "1"), at("b", "1").as("")), watch(errExpired),
			list("9", bad("", at("a", "8").as("")), bad("", at("b", "8"))),
			watch(bad(apiwatch.Modified, at("a", "10").as("")), bad(apiwatch.Modified, at("b", "11")), stay))
		b.expectStore("replace [a@1 b@1] at 5", "replace [a@1 b@1] at 9", "bookmark 10", "bookmark 11")
	})
	bubble(t, "a restore from a backup has undone the last good state", func(t *testing.T) {
		b := run(t, paged(), list("9", at("a", "9"), at("b", "3")), watch(bookmark("3"), stay), list("4"),
			list("4", bad("", at("a", "3")), bad("", at("b", "3"))), watch(stay))
		b.expectStore("replace [a@9 b@3] at 9", "replace [b@3] at 4")
	})
	bubble(t, "in a list: the last good state stays, and the other objects are stored", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "1"), at("b", "1"), at("gone", "1")), watch(errExpired),
			pageOf("9", "t", bad("", at("a", "8")), at("b", "8")), list("9", bad("", at("n", "8"))), watch(stay))
		b.expectStore("replace [a@1 b@1 gone@1] at 5", "replace [a@1 b@8] at 9")
		require.ElementsMatch(t, []string{"a 8", "n 8"}, undecodable(b))
	})
	bubble(t, "the next list decides which of them are left", func(t *testing.T) {
		b := run(t, paged(), list("5", bad("", at("a", "1")), bad("", at("b", "1")), bad("", at("gone", "1"))), watch(errExpired),
			pageOf("9", "t", at("a", "8"), bad("", at("b", "7"))), failedList(errReset), failedList(errReset),
			list("10", at("a", "8"), bad("", at("b", "7"))), watch(stay))
		b.pass(2 * time.Second)
		require.Empty(t, b.lw.asked().script[2:], "the second list has failed")
		require.ElementsMatch(t, []string{"a 1", "b 7", "gone 1"}, undecodable(b), "an incomplete list adds objects and removes none")
		b.pass(time.Minute)
		require.Equal(t, []string{"b 7"}, undecodable(b))
	})
	bubble(t, "the next WatchList decides which of them are left", func(t *testing.T) {
		b := run(t, options{}, watchList(bad(apiwatch.Added, at("a", "1")), bad(apiwatch.Added, at("gone", "1")), initialEnd("5"), errExpired),
			watchList(added(at("a", "8")), bad(apiwatch.Added, at("b", "7")), deleted(at("gone", "8")), time.Second, initialEnd("9"), stay))
		require.ElementsMatch(t, []string{"a 1", "b 7", "gone 1"}, undecodable(b))
		b.pass(time.Minute)
		require.Equal(t, []string{"b 7"}, undecodable(b))
	})
	bubble(t, "in a WatchList: the last good state of that list stays", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), added(at("b", "1")), initialEnd("2"), time.Second, errExpired),
			watchList(bad(apiwatch.Added, at("a", "3")), added(at("b", "3")), added(at("c", "3")), added(at("d", "3")),
				bad(apiwatch.Modified, at("b", "4")), bad(apiwatch.Deleted, at("c", "5")), modified(at("d", "6")), bad(apiwatch.Added, at("e", "7")),
				initialEnd("9"), stay))
		b.pass(2 * time.Second)
		b.expectStore("replace [a@1 b@1] at 2", "replace [a@1 b@3 d@6] at 9")
		require.ElementsMatch(t, []string{"a 3", "b 4", "e 7"}, undecodable(b))
	})

	bubble(t, "recreated and undecodable: the object of the old UID is deleted", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), added(at("b", "1")), added(at("c", "1")), initialEnd("2"), bad(apiwatch.Modified, at("a", "3").as("new")), time.Second, errExpired),
			watchList(bad(apiwatch.Added, at("b", "4").as("new")), added(at("c", "1")), bad(apiwatch.Modified, at("c", "5").as("new")), initialEnd("9"), stay))
		b.pass(2 * time.Second)
		b.expectStore("replace [a@1 b@1 c@1] at 2", "delete key a at 3", "replace [] at 9")
		require.ElementsMatch(t, []string{"b 4", "c 5"}, undecodable(b))
	})
	bubble(t, "OnUndecodable gets the error", func(t *testing.T) {
		var reported []*api.UndecodableError
		o := options{Hooks: reflector.Hooks{OnUndecodable: func(e *api.UndecodableError) error { reported = append(reported, e); return nil }}}
		run(t, o, watchList(bad(apiwatch.Added, at("a", "1")), initialEnd("2"), bad(apiwatch.Modified, at("a", "3")), stay))
		require.Len(t, reported, 2)
		require.ErrorIs(t, reported[0], errBad)
		require.Equal(t, "3", reported[1].ResourceVersion)
	})
}

func undecodable(b *bench) (all []string) {
	for _, e := range b.Undecodable() {
		all = append(all, e.Key.Name+" "+e.ResourceVersion)
	}
	return all
}

// Fail ends Run at the first object that cannot be used. The store gets nothing of the answer from there on.
func TestFail(t *testing.T) {
	good, later := at("x", "1"), at("later", "9")
	item := func(kind apiwatch.EventType, o *thing) any {
		if kind == "" {
			return o
		}
		return event(kind, o)
	}
	objects := map[string]struct {
		item func(kind apiwatch.EventType) any
		want error
	}{
		"undecodable":           {func(kind apiwatch.EventType) any { return bad(kind, at("x", "3")) }, errBad},
		"untransformable":       {func(kind apiwatch.EventType) any { return item(kind, at("x", "3")) }, errBad},
		"malformed":             {func(kind apiwatch.EventType) any { return item(kind, at("x/y", "3")) }, reflector.ErrMalformed},
		"malformed undecodable": {func(kind apiwatch.EventType) any { return bad(kind, at("x/y", "3")) }, reflector.ErrMalformed},
	}
	for place, make := range map[string]func(item func(kind apiwatch.EventType) any) script{
		"a list": func(item func(kind apiwatch.EventType) any) script {
			return script{watchList(errInvalid), list("5", item(""), later), watch(stay)}
		},
		"a WatchList": func(item func(kind apiwatch.EventType) any) script {
			return script{watchList(item(apiwatch.Added), added(later), initialEnd("9"), stay)}
		},
		"a WatchList after its first change": func(item func(kind apiwatch.EventType) any) script {
			return script{watchList(added(good), modified(at("x", "2")), item(apiwatch.Modified), added(later), initialEnd("9"), stay)}
		},
		"a watch": func(item func(kind apiwatch.EventType) any) script {
			return script{watchList(added(good), initialEnd("2"), item(apiwatch.Modified), added(later), stay)}
		},
		"the deletion of a watch": func(item func(kind apiwatch.EventType) any) script {
			return script{watchList(added(good), initialEnd("2"), item(apiwatch.Deleted), added(later), stay)}
		},
		"a resumed watch": func(item func(kind apiwatch.EventType) any) script {
			return script{watchList(initialEnd("2"), time.Second), watch(item(apiwatch.Added), added(later), stay)}
		},
	} {
		for name, object := range objects {
			bubble(t, name+" in "+place, func(t *testing.T) {
				o := options{Hooks: reflector.Hooks{OnUndecodable: reflector.Fail}, Transform: func(t *thing) (*thing, error) {
					if t.String() == "x@3" {
						return nil, errBad
					}
					return t, nil
				}}
				b := run(t, o, make(object.item)...)
				b.pass(2 * time.Second)
				err := b.wait()
				require.ErrorIs(t, err, object.want)
				var e *api.UndecodableError
				require.ErrorAs(t, err, &e)
				require.NotContains(t, fmt.Sprint(b.store.log()), "later")
				require.Equal(t, reflector.Stopped, b.Status().Phase)
			})
		}
	}
}
