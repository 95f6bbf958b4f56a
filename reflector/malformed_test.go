package reflector_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// malformed returns objects that cannot belong to a cluster-scoped collection.
func malformed() map[string]*thing {
	return map[string]*thing{
		"without a name":   at("", "8").as("u"),
		"of nothing":       {},
		"not UTF-8":        at("a\xff", "8"),
		"replaced bytes":   at("a\uFFFD", "8"),
		"with a slash":     at("a/b", "8"),
		"with a namespace": {namespace: "default", name: "a", uid: "a", version: "8"},
	}
}

func TestMalformedObjectsAreNotStored(t *testing.T) {
	for name, m := range malformed() {
		bubble(t, name+" in a list", func(t *testing.T) {
			b := run(t, paged(), list("5", at("a", "1"), m, at("b", "2")), watch(stay))
			b.expectStore("replace [a@1 b@2] at 5")
			require.Equal(t, 1, b.Status().Counters.Malformed)
			require.Zero(t, b.Status().Counters.Undecodable)
			require.ErrorIs(t, b.Status().LastMalformed, reflector.ErrMalformed)
		})
		bubble(t, name+" in a WatchList", func(t *testing.T) {
			b := run(t, options{}, watchList(added(at("a", "1")), added(m), added(at("b", "2")), modified(m), initialEnd("5"), stay))
			b.expectStore("replace [a@1 b@2] at 5")
			require.Equal(t, 2, b.Status().Counters.Malformed)
		})
		// The reflector cannot know which object this state belongs to. The store keeps its objects, and the version
		// stays.
		bubble(t, name+" in a watch", func(t *testing.T) {
			b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"), added(m), modified(m), deleted(m), bad(apiwatch.Modified, m), modified(at("a", "6")), stay))
			b.expectStore("replace [a@1] at 5", "put a@6 at 6")
			require.Equal(t, 4, b.Status().Counters.Malformed)
			require.Equal(t, 2, b.Status().Counters.Events)
			require.Empty(t, b.Undecodable())
		})
		bubble(t, name+" and undecodable in a list", func(t *testing.T) {
			b := run(t, paged(), list("5", at("a", "1"), bad("", m)), watch(stay))
			b.expectStore("replace [a@1] at 5")
			require.Equal(t, 1, b.Status().Counters.Malformed)
			require.Empty(t, b.Undecodable())
		})
	}
}

// A listed object without a valid key may be any object that the list lacks.
func TestAListWithoutAKeyDeletesNothing(t *testing.T) {
	for name, m := range malformed() {
		bubble(t, name+", in pages", func(t *testing.T) {
			b := run(t, paged(), list("5", at("a", "1"), at("b", "2"), at("c", "3")), watch(errExpired),
				list("9", at("b", "2"), at("c", "7"), m), watch(errReset), watch(errExpired), list("12", at("c", "11")), watch(stay))
			b.expectStore("replace [a@1 b@2 c@3] at 5", "put c@7 at ", "bookmark 9")
			b.pass(5e9)
			require.Equal(t, []string{"replace [c@11] at 12"}, b.store.log()[3:], "the next complete list deletes")
		})
		bubble(t, name+", in a WatchList", func(t *testing.T) {
			b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"), errExpired), watchList(added(at("b", "8")), added(m), initialEnd("9"), stay))
			b.expectStore("replace [a@1] at 5", "put b@8 at ", "bookmark 9")
			require.Equal(t, "9", b.Status().ResourceVersion)
		})
	}
}

// confined is a source of one namespace.
type confined struct{ *fake }

func (confined) Collection() api.Collection {
	c := api.Collection{Resource: things, Namespace: "mine"}
	c.Resource.Namespaced = true
	return c
}

// An object of another namespace is skipped. It cannot be an object that the list lacks, so the list deletes.
func TestObjectsOfAnotherNamespace(t *testing.T) {
	mine := func(name string) *thing { return &thing{namespace: "mine", name: name, uid: name, version: "1"} }
	foreign := &thing{namespace: "other", name: "f", uid: "f", version: "1"}
	for name, c := range map[string]struct {
		items   []any
		want    string
		skipped int // of both lists
	}{
		"alone":                      {[]any{mine("b"), foreign}, "replace [b@1] at 9", 2},
		"with an object without key": {[]any{mine("b"), at("", "1"), foreign}, "bookmark 9", 3},
	} {
		bubble(t, name, func(t *testing.T) {
			b := runAs(t, paged(), func(lw *fake) api.ListerWatcher[*thing] { return confined{lw} },
				list("5", mine("a"), mine("b"), foreign), watch(errExpired), list("9", c.items...), watch(stay))
			b.expectStore("replace [a@1 b@1] at 5", c.want)
			require.Equal(t, c.skipped, b.Status().Counters.Malformed)
		})
	}
}

func TestMalformedObjectsAreReported(t *testing.T) {
	bubble(t, "the log has the first ten of a request", func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		o := paged()
		o.Logger = zap.New(core)
		var items []any
		for range 50 {
			items = append(items, at("a/b", "8"))
		}
		b := run(t, o, pageOf("5", "t", items...), list("5", items...), watch(modified(at("a/b", "9")), stay))
		require.Equal(t, 101, b.Status().Counters.Malformed)
		require.Equal(t, 11, logs.FilterMessage("malformed object").Len())
		require.Equal(t, "a/b", logs.All()[0].ContextMap()["key"])
	})
	bubble(t, "OnUndecodable gets the error", func(t *testing.T) {
		var reported []*api.UndecodableError
		run(t, options{Hooks: reflector.Hooks{OnUndecodable: func(e *api.UndecodableError) error { reported = append(reported, e); return nil }}},
			watchList(initialEnd("5"), modified(at("a/b", "8")), deleted(at("", "9")), stay))
		require.Len(t, reported, 2)
		require.Equal(t, api.UndecodableError{
			Resource: things, Key: api.Key{Name: "a/b"}, UID: "a/b", ResourceVersion: "8", Type: apiwatch.Modified, Err: reported[0].Err,
		}, *reported[0])
		require.EqualError(t, reported[0], "decode things.test a/b: reflector: the object cannot belong to the collection: its name contains a slash or is not UTF-8")
		require.EqualError(t, reported[1], "decode things.test object without a name: reflector: the object cannot belong to the collection: it has no name")
	})
	bubble(t, "Fail ends Run", func(t *testing.T) {
		lw := &fake{t: t, inquiry: inquiry{script: script{watchList(added(at("a/b", "8")))}}}
		r := reflector.New[*thing](lw, newRecorder(), options{Hooks: reflector.Hooks{OnUndecodable: reflector.Fail}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, r.Run(ctx), reflector.ErrMalformed)
	})
	bubble(t, "the error does not contain the object", func(t *testing.T) {
		large := at("a/"+strings.Repeat("x", 2<<20), strings.Repeat("9", 2<<20)).as(strings.Repeat("u", 2<<20))
		b := run(t, options{}, watchList(initialEnd("5"), modified(large), stay))
		require.Less(t, len(b.Status().LastMalformed.Error()), 500)
		var e *api.UndecodableError
		require.ErrorAs(t, b.Status().LastMalformed, &e)
		require.Less(t, len(e.UID), 300)
		require.Less(t, len(e.ResourceVersion), 300)
	})
}
