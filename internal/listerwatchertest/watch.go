package listerwatchertest

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
)

func watchFromVersion[T api.Object](b *bench[T]) {
	version := b.create("a")
	next, _ := b.watch(metav1.ListOptions{ResourceVersion: version})
	created := b.create("b")
	labelled := b.label("b", "x")
	removed := b.remove("a")
	require.Equal(b, "ADDED b "+created, next())
	require.Equal(b, "MODIFIED b "+labelled, next())
	require.Equal(b, "DELETED a "+removed, next(), "the last state, at the version of the deletion")
	go func() {
		<-time.After(10 * time.Minute)
		b.create("c")
	}()
	start := time.Now()
	require.Contains(b, next(), "ADDED c ")
	require.Equal(b, 10*time.Minute, time.Since(start), "an event comes when it happens")
	require.Equal(b, "watch", b.requests(), "exactly one request")
}

func watchHistory[T api.Object](b *bench[T]) {
	first := b.create("a")
	second := b.create("b")
	third := b.label("a", "x")
	next, _ := b.watch(metav1.ListOptions{ResourceVersion: first})
	require.Equal(b, "ADDED b "+second, next())
	require.Equal(b, "MODIFIED a "+third, next())
}

func watchFromNothing[T api.Object](b *bench[T]) {
	first := b.create("a")
	for _, version := range []string{"", "0"} {
		next, stop := b.watch(metav1.ListOptions{ResourceVersion: version})
		require.Equal(b, "ADDED a "+first, next())
		stop()
	}
}

func watchSelector[T api.Object](b *bench[T]) {
	version := b.create("a")
	next, _ := b.watch(metav1.ListOptions{ResourceVersion: version, LabelSelector: "app=x"})
	b.create("b")
	require.Equal(b, "ADDED a "+b.label("a", "x"), next())
	require.Equal(b, "DELETED a "+b.label("a", "y"), next(), "it left the selection")
}

func watchBookmarks[T api.Object](b *bench[T]) {
	version := b.create("a")
	next, _ := b.watch(metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	start := time.Now()
	added := b.create("b")
	require.Equal(b, "ADDED b "+added, next())
	require.Equal(b, "BOOKMARK "+added, next())
	require.Equal(b, time.Minute, time.Since(start))
}

func watchWatchList[T api.Object](b *bench[T]) {
	first := b.create("a")
	second := b.create("b")
	initial := true
	next, _ := b.watch(metav1.ListOptions{
		SendInitialEvents: &initial, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.Equal(b, "ADDED a "+first, next())
	require.Equal(b, "ADDED b "+second, next())
	require.Equal(b, "SYNCED "+second, next())
	require.Equal(b, "MODIFIED a "+b.label("a", "x"), next(), "and the same stream goes on")
}

func watchKnown[T api.Object](b *bench[T]) {
	b.create("a")
	var held T
	_, err := b.subject.List(b.Context(), api.Options[T]{}, func(obj T) error {
		held = obj
		return nil
	})
	require.NoError(b, err)
	o := api.Options[T]{Known: func(_, name []byte) (T, bool) { return held, string(name) == "a" }}
	for event, err := range b.subject.Watch(b.Context(), o) {
		require.NoError(b, err)
		require.Same(b, held, event.Object)
		break
	}
}

func watchTimeout[T api.Object](b *bench[T]) {
	seconds := int64(42)
	start := time.Now()
	require.NoError(b, b.failure(metav1.ListOptions{TimeoutSeconds: &seconds}), "the end in good order is none")
	require.Equal(b, 42*time.Second, time.Since(start))
}

// watchLongSilence keeps a watch open without events for longer than any keep-alive.
func watchLongSilence[T api.Object](b *bench[T]) {
	seconds := int64((3 * time.Hour).Seconds())
	next, _ := b.watch(metav1.ListOptions{ResourceVersion: b.create("a"), TimeoutSeconds: &seconds})
	go func() {
		<-time.After(2 * time.Hour)
		b.create("b")
	}()
	require.Contains(b, next(), "ADDED b ")
	start := time.Now()
	require.Equal(b, "END", next())
	require.Equal(b, time.Hour, time.Since(start))
}

func watchBreakCloses[T api.Object](b *bench[T]) {
	b.create("a", "b")
	for range b.subject.Watch(b.Context(), api.Options[T]{}) {
		require.Len(b, b.server.Watches(), 1)
		break
	}
	synctest.Wait()
	require.Empty(b, b.server.Watches())
	require.Equal(b, "watch", b.requests())
}

func watchCancelled[T api.Object](b *bench[T]) {
	b.create("a")
	ctx, cancel := context.WithCancel(b.Context())
	seen := make(chan struct{})
	failed := make(chan error)
	go func() {
		var last error
		for _, err := range b.subject.Watch(ctx, api.Options[T]{}) {
			last = err
			if err == nil {
				close(seen)
			}
		}
		failed <- last
	}()
	<-seen
	synctest.Wait()
	start := time.Now()
	cancel()
	require.ErrorIs(b, <-failed, context.Canceled)
	require.Zero(b, time.Since(start), "at once")
	synctest.Wait()
	require.Empty(b, b.server.Watches())
}

func watchCancelledWhileItOpens[T api.Object](b *bench[T]) {
	b.server.Inject(faults.Fault{Effect: faults.Stall{}})
	ctx, cancel := context.WithCancel(b.Context())
	failed := make(chan error)
	go func() {
		var last error
		for _, err := range b.subject.Watch(ctx, api.Options[T]{}) {
			last = err
		}
		failed <- last
	}()
	synctest.Wait()
	start := time.Now()
	cancel()
	require.ErrorIs(b, <-failed, context.Canceled)
	require.Zero(b, time.Since(start), "at once")
}

func watchCancelledBefore[T api.Object](b *bench[T]) {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	count := 0
	for _, err := range b.subject.Watch(ctx, api.Options[T]{}) {
		require.ErrorIs(b, err, context.Canceled)
		count++
	}
	require.Equal(b, 1, count)
	require.Empty(b, b.requests(), "nothing was sent")
}

// watchOpen checks when OnOpen is called: before the first event, and not if the server rejects the watch.
func watchOpen[T api.Object](b *bench[T]) {
	version := b.create("a")
	opened := 0
	o := api.Options[T]{ListOptions: metav1.ListOptions{ResourceVersion: version}, OnOpen: func() { opened++ }}
	next, stop := b.pull(b.subject.Watch(b.Context(), o))
	event := make(chan string)
	go func() { event <- next() }()
	synctest.Wait()
	require.Equal(b, 1, opened, "the watch is open and silent")
	require.Equal(b, "ADDED b "+b.create("b"), <-event)
	stop()
	require.Equal(b, 1, opened)

	refusal := b.server.Inject(faults.Fault{Effect: faults.Fail{Code: 403}})
	next, _ = b.pull(b.subject.Watch(b.Context(), o))
	require.Contains(b, next(), "ERROR")
	require.Equal(b, 1, opened, "a watch that is refused is not open")
	refusal.Remove()
	_, err := b.subject.List(b.Context(), o, func(T) error { return nil })
	require.NoError(b, err)
	require.Equal(b, 1, opened)
}

// watchWait checks that OnWait is called before each wait, if it is called at all.
func watchWait[T api.Object](b *bench[T]) {
	version := b.create("a")
	waits := 0
	o := api.Options[T]{ListOptions: metav1.ListOptions{ResourceVersion: version}, OnWait: func() { waits++ }}
	next, stop := b.pull(b.subject.Watch(b.Context(), o))
	defer stop()
	for i := range 3 {
		before := waits
		event := make(chan string)
		go func() { event <- next() }()
		synctest.Wait()
		if i > 0 && before > 0 {
			require.Greater(b, waits, before, "the watch waits")
		}
		name := string(rune('b' + i))
		require.Equal(b, "ADDED "+name+" "+b.create(name), <-event)
	}
	before := waits
	_, err := b.subject.List(b.Context(), o, func(T) error { return nil })
	require.NoError(b, err)
	require.Equal(b, before, waits)
}

func watchExpired[T api.Object](b *bench[T]) {
	version := b.create("a")
	b.create("b")
	b.server.Inject(faults.Fault{Effect: faults.Compact{}})
	err := b.failure(metav1.ListOptions{ResourceVersion: version})
	require.True(b, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)
}

func watchErrorEvent[T api.Object](b *bench[T]) {
	version := b.create("a")
	next, _ := b.watch(metav1.ListOptions{ResourceVersion: version})
	added := b.create("b")
	require.Equal(b, "ADDED b "+added, next())
	status := apierrors.NewTooManyRequests("slow down", 3).Status()
	b.server.Inject(faults.Fault{Effect: faults.Disconnect{Error: &status}})
	require.Contains(b, next(), "slow down")
	require.Equal(b, "END", next(), "nothing follows an error")
}

func watchErrors[T api.Object](b *bench[T]) {
	for _, k := range kinds {
		i := b.server.Inject(faults.Fault{Effect: k.fail})
		err := b.failure(metav1.ListOptions{})
		i.Remove()
		requireKind(b, k.fail, k.is, err)
	}
	require.Equal(b, len(kinds), len(b.server.Requests()), "exactly one request each")
}

func watchDisconnected[T api.Object](b *bench[T]) {
	for _, abrupt := range []bool{false, true} {
		next, stop := b.watch(metav1.ListOptions{})
		version := b.create("a")
		require.Equal(b, "ADDED a "+version, next())
		b.server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: abrupt}})
		if abrupt {
			require.Contains(b, next(), "ERROR ")
		} else {
			require.Equal(b, "END", next(), "the end in good order is none")
		}
		stop()
		b.remove("a")
	}
	i := b.server.Inject(faults.Fault{Effect: faults.EndWatch{Abrupt: true}})
	b.create("b")
	err := b.failure(metav1.ListOptions{})
	i.Remove()
	require.True(b, broken(err), "%v", err)
}

func watchCut[T api.Object](b *bench[T]) {
	first := b.create("a")
	b.create("b")
	for _, abrupt := range []bool{false, true} {
		i := b.server.Inject(faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.CutFrame{At: 100, Abrupt: abrupt}})
		var names []string
		var last error
		for event, err := range b.subject.Watch(b.Context(), api.Options[T]{}) {
			if last = err; err == nil {
				names = append(names, show(event))
			}
		}
		i.Remove()
		if abrupt {
			require.True(b, broken(last), "%v", last)
			require.NotContains(b, strings.Join(names, ","), " b ", "nothing of half an event")
			continue
		}
		require.ErrorIs(b, last, io.ErrUnexpectedEOF)
		require.Equal(b, []string{"ADDED a " + first}, names, "all before it, and nothing of half an event")
	}
}

// broken reports whether an error is that of a broken stream. Each transport has its own error.
func broken(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		err != nil && strings.Contains(err.Error(), "stream error: ") // the error of HTTP/2 has a type that net/http does not export
}

func watchOutage[T api.Object](b *bench[T]) {
	version := b.create("a")
	next, _ := b.watch(metav1.ListOptions{})
	require.Equal(b, "ADDED a "+version, next())
	outage := b.server.Inject(faults.Fault{Effect: faults.Outage{}})
	require.Contains(b, next(), "ERROR ")
	require.ErrorIs(b, b.failure(metav1.ListOptions{}), syscall.ECONNREFUSED)
	outage.Remove()
	next, _ = b.watch(metav1.ListOptions{})
	require.Equal(b, "ADDED a "+version, next(), "and the same subject serves on")
}

func watchUndecodable[T api.Object](b *bench[T]) {
	b.create("a", "b", "c")
	b.server.Inject(faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.Malform{}})
	var reported []*api.UndecodableError
	var names []string
	o := api.Options[T]{OnUndecodable: func(e *api.UndecodableError) error {
		reported = append(reported, e)
		return nil
	}}
	for event, err := range b.subject.Watch(b.Context(), o) {
		require.NoError(b, err)
		names = append(names, event.Object.GetName())
		if len(names) == 2 {
			break
		}
	}
	require.Equal(b, []string{"a", "c"}, names)
	require.Len(b, reported, 1)
	require.Equal(b, key("b"), reported[0].Key)
	require.EqualValues(b, "ADDED", reported[0].Type)
	require.NotEmpty(b, reported[0].ResourceVersion)

	var undecodable *api.UndecodableError
	require.ErrorAs(b, b.failure(metav1.ListOptions{}), &undecodable)
}
