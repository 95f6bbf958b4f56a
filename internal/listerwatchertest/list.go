package listerwatchertest

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
)

func listEmpty[T api.Object](b *bench[T]) {
	require.Equal(b, Pods, b.subject.Collection().Resource)
	names, meta, err := b.list(metav1.ListOptions{})
	require.NoError(b, err)
	require.Empty(b, names)
	require.Equal(b, b.server.ResourceVersion(), meta.ResourceVersion)
	require.Empty(b, meta.Continue)
	require.Equal(b, "list", b.requests(), "exactly one request")
}

func listWhole[T api.Object](b *bench[T]) {
	version := b.create("b", "a", "c")
	var keys []api.Key
	var versions []string
	meta, err := b.subject.List(b.Context(), api.Options[T]{}, func(obj T) error {
		keys = append(keys, api.KeyOf(obj))
		versions = append(versions, obj.GetResourceVersion())
		require.NotEmpty(b, obj.GetUID())
		return nil
	})
	require.NoError(b, err)
	require.Equal(b, []api.Key{key("a"), key("b"), key("c")}, keys)
	require.Equal(b, version, meta.ResourceVersion)
	require.Equal(b, version, versions[2])
	require.NotEqual(b, versions[0], versions[1])
}

func listPages[T api.Object](b *bench[T]) {
	version := b.create("a", "b", "c", "d", "e")
	names, meta, err := b.list(metav1.ListOptions{Limit: 2})
	require.NoError(b, err)
	require.Equal(b, []string{"a", "b"}, names)
	require.EqualValues(b, 3, *meta.RemainingItemCount)

	b.create("aa", "f") // a later page has the same state
	names, meta, err = b.list(metav1.ListOptions{Limit: 2, Continue: meta.Continue})
	require.NoError(b, err)
	require.Equal(b, []string{"c", "d"}, names)
	require.Equal(b, version, meta.ResourceVersion)

	names, meta, err = b.list(metav1.ListOptions{Limit: 2, Continue: meta.Continue})
	require.NoError(b, err)
	require.Equal(b, []string{"e"}, names)
	require.Empty(b, meta.Continue)
	require.Equal(b, version, meta.ResourceVersion)
	require.Equal(b, "list list list", b.requests(), "a page is a request")
}

func listExpiredPage[T api.Object](b *bench[T]) {
	b.create("a", "b", "c")
	_, meta, err := b.list(metav1.ListOptions{Limit: 2})
	require.NoError(b, err)
	b.create("d")
	b.server.Inject(faults.Fault{Effect: faults.Compact{}})
	_, _, err = b.list(metav1.ListOptions{Limit: 2, Continue: meta.Continue})
	require.True(b, apierrors.IsResourceExpired(err), "%v", err)
}

func listSelectors[T api.Object](b *bench[T]) {
	b.createWith("a", map[string]any{"app": "x"})
	b.createWith("b", map[string]any{"app": "y"})
	names, _, err := b.list(metav1.ListOptions{LabelSelector: "app in (y,z)"})
	require.NoError(b, err)
	require.Equal(b, []string{"b"}, names)
	names, _, err = b.list(metav1.ListOptions{FieldSelector: "metadata.name!=b"})
	require.NoError(b, err)
	require.Equal(b, []string{"a"}, names)
	_, _, err = b.list(metav1.ListOptions{LabelSelector: "app in"})
	require.True(b, apierrors.IsBadRequest(err), "%v", err)
}

func listVersions[T api.Object](b *bench[T]) {
	first := b.create("a")
	b.create("b")
	names, meta, err := b.list(metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	require.NoError(b, err)
	require.Equal(b, []string{"a"}, names)
	require.Equal(b, first, meta.ResourceVersion)
	names, _, err = b.list(metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(b, err)
	require.Equal(b, []string{"a", "b"}, names)

	_, _, err = b.list(metav1.ListOptions{ResourceVersion: "999999"})
	require.True(b, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	require.True(b, ok)
	require.Equal(b, 1, seconds)
}

func listMany[T api.Object](b *bench[T]) {
	const many = 2_000
	for i := range many {
		b.create(fmt.Sprintf("p%05d", i))
	}
	names, _, err := b.list(metav1.ListOptions{})
	require.NoError(b, err)
	require.Len(b, names, many)
	require.Equal(b, "p01999", names[many-1])
}

func listEachFails[T api.Object](b *bench[T]) {
	b.create("a", "b", "c")
	enough := errors.New("enough")
	count := 0
	_, err := b.subject.List(b.Context(), api.Options[T]{}, func(T) error {
		if count++; count == 2 {
			return enough
		}
		return nil
	})
	require.ErrorIs(b, err, enough)
	require.Equal(b, 2, count)
}

func listKnown[T api.Object](b *bench[T]) {
	b.create("a", "b")
	known := map[api.Key]T{}
	o := api.Options[T]{Known: func(namespace, name []byte) (T, bool) {
		obj, ok := known[api.Key{Namespace: string(namespace), Name: string(name)}]
		return obj, ok
	}}
	list := func() map[api.Key]T {
		got := map[api.Key]T{}
		_, err := b.subject.List(b.Context(), o, func(obj T) error {
			got[api.KeyOf(obj)] = obj
			return nil
		})
		require.NoError(b, err)
		return got
	}
	known = list()
	version := b.label("b", "new")
	again := list()
	require.Same(b, known[key("a")], again[key("a")], "what did not change is the object that the caller holds")
	require.NotSame(b, known[key("b")], again[key("b")])
	require.Equal(b, version, again[key("b")].GetResourceVersion())
}

func listCancelled[T api.Object](b *bench[T]) {
	b.create("a")
	b.server.Inject(faults.Fault{Effect: faults.Stall{After: 30}, Match: faults.Match{Verbs: []string{"list"}}})
	ctx, cancel := context.WithCancel(b.Context())
	failed := make(chan error)
	go func() {
		_, err := b.subject.List(ctx, api.Options[T]{}, func(T) error { return nil })
		failed <- err
	}()
	synctest.Wait()
	start := time.Now()
	cancel()
	require.ErrorIs(b, <-failed, context.Canceled)
	require.Zero(b, time.Since(start))
}

// kinds are the errors that a caller can distinguish.
var kinds = []struct {
	fail faults.Fail
	is   func(error) bool
}{
	{faults.Fail{Code: 400}, apierrors.IsBadRequest},
	{faults.Fail{Code: 401}, apierrors.IsUnauthorized},
	{faults.Fail{Code: 403, Message: "no"}, apierrors.IsForbidden},
	{faults.Fail{Code: 404}, apierrors.IsNotFound},
	{faults.Fail{Code: 410, Reason: metav1.StatusReasonExpired}, apierrors.IsResourceExpired},
	{faults.Fail{Code: 410, Reason: metav1.StatusReasonGone}, apierrors.IsGone},
	{faults.Fail{Code: 422, Reason: metav1.StatusReasonInvalid}, apierrors.IsInvalid},
	{faults.Fail{Code: 429, RetryAfter: 7 * time.Second}, apierrors.IsTooManyRequests},
	{faults.Fail{Code: 500}, apierrors.IsInternalError},
	{faults.Fail{Code: 503, RetryAfter: 2 * time.Second}, apierrors.IsServiceUnavailable},
	{faults.Fail{Code: 504, Reason: metav1.StatusReasonTimeout}, apierrors.IsTimeout},
	{faults.Fail{Code: 502, Body: []byte("<html>bad gateway</html>"), Header: map[string][]string{"Content-Type": {"text/html"}}}, apierrors.IsInternalError},
}

func listErrors[T api.Object](b *bench[T]) {
	for _, k := range kinds {
		i := b.server.Inject(faults.Fault{Effect: k.fail})
		_, _, err := b.list(metav1.ListOptions{})
		i.Remove()
		requireKind(b, k.fail, k.is, err)
	}
	_, _, err := b.list(metav1.ListOptions{})
	require.NoError(b, err, "an error leaves nothing behind")
}

func requireKind[T api.Object](b *bench[T], f faults.Fail, is func(error) bool, err error) {
	b.Helper()
	require.True(b, is(err), "%d: %v", f.Code, err)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	require.Equal(b, f.RetryAfter > 0, ok)
	require.EqualValues(b, f.RetryAfter/time.Second, seconds)
}

// refused uses a server that is not running.
func refused[T api.Object](b *bench[T]) {
	b.create("a")
	_, _, err := b.list(metav1.ListOptions{})
	require.NoError(b, err)
	b.stop()
	synctest.Wait() // until the client has noticed that its idle connection is closed
	_, _, err = b.list(metav1.ListOptions{})
	require.ErrorIs(b, err, syscall.ECONNREFUSED)
	require.ErrorIs(b, b.failure(metav1.ListOptions{}), syscall.ECONNREFUSED)
}

func listUndecodable[T api.Object](b *bench[T]) {
	b.create("a", "b", "c")
	b.server.Inject(faults.Fault{Match: faults.Match{Name: "b", Frames: []watch.EventType{faults.Item}}, Effect: faults.Malform{}})
	var reported []*api.UndecodableError
	var names []string
	o := api.Options[T]{OnUndecodable: func(e *api.UndecodableError) error {
		reported = append(reported, e)
		return nil
	}}
	_, err := b.subject.List(b.Context(), o, func(obj T) error {
		names = append(names, obj.GetName())
		return nil
	})
	require.NoError(b, err)
	require.Equal(b, []string{"a", "c"}, names)
	require.Len(b, reported, 1)
	require.Equal(b, key("b"), reported[0].Key)
	require.NotEmpty(b, reported[0].ResourceVersion)

	_, _, err = b.list(metav1.ListOptions{})
	var undecodable *api.UndecodableError
	require.ErrorAs(b, err, &undecodable)
}
