package testserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestFail(t *testing.T) {
	for name, row := range map[string]struct {
		fail   faults.Fail
		code   int
		reason metav1.StatusReason
		after  string
	}{
		"zero":      {faults.Fail{}, 500, metav1.StatusReasonInternalError, ""},
		"throttled": {faults.Fail{Code: 429, RetryAfter: 2 * time.Second}, 429, metav1.StatusReasonTooManyRequests, "2"},
		"gone":      {faults.Fail{Code: 410, Reason: metav1.StatusReasonExpired}, 410, metav1.StatusReasonExpired, ""},
		"forbidden": {faults.Fail{Code: 403, Message: "go away"}, 403, metav1.StatusReasonForbidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{}, func(b *bench) {
				i := b.Inject(faults.Fault{
					Match: faults.Match{Verbs: []string{"list"}, Resource: "pods"}, Skip: 1, Times: 2, Effect: row.fail,
				})
				b.list(podsPath)
				b.do(http.MethodGet, mapsPath, nil)
				require.Zero(b, i.Seen())
				for range 2 {
					a := b.do(http.MethodGet, podsPath, nil)
					require.Equal(b, row.code, a.code)
					require.Equal(b, row.after, a.header.Get("Retry-After"))
					status := a.status(t)
					require.Equal(b, row.reason, status.Reason)
					if row.fail.Message != "" {
						require.Equal(b, row.fail.Message, status.Message)
					}
				}
				require.Equal(b, 2, i.Seen())
				b.list(podsPath)
				require.Equal(b, 2, i.Seen())
			})
		})
	}
}

func TestFailWithGarbage(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		i := b.Inject(faults.Fault{Effect: faults.Fail{
			Code: 200, Body: []byte("<html>"), Header: http.Header{"Content-Type": {"text/html"}}, RetryAfter: time.Second,
		}})
		a := b.do(http.MethodGet, podsPath, nil)
		require.Equal(b, "<html>", string(a.body))
		require.Equal(b, "text/html", a.header.Get("Content-Type"))
		require.Equal(b, "1", a.header.Get("Retry-After"))
		i.Remove()
		i.Remove()
		b.list(podsPath)

		// A Content-Length that is too large looks like a truncated answer.
		b.Inject(faults.Fault{Times: 1, Effect: faults.Fail{
			Code: 200, Body: []byte("{}"), Header: http.Header{"Content-Length": {"100"}},
		}})
		res, err := b.client.Do(b.request(http.MethodGet, podsPath, nil))
		require.NoError(b, err)
		_, err = io.ReadAll(res.Body)
		require.ErrorIs(b, err, io.ErrUnexpectedEOF)
		require.NoError(b, res.Body.Close())
	})
}

func TestMatch(t *testing.T) {
	for name, row := range map[string]struct {
		match faults.Match
		hits  bool
	}{
		"everything":      {faults.Match{}, true},
		"verb":            {faults.Match{Verbs: []string{"watch", "get"}}, true},
		"other verb":      {faults.Match{Verbs: []string{"watch"}}, false},
		"resource":        {faults.Match{Resource: "deployments.apps"}, true},
		"other group":     {faults.Match{Resource: "deployments"}, false},
		"no subresource":  {faults.Match{Resource: "deployments.apps/status"}, false},
		"agent":           {faults.Match{UserAgent: "leat"}, true},
		"other agent":     {faults.Match{UserAgent: "kubectl"}, false},
		"namespace":       {faults.Match{Namespace: "default"}, true},
		"other namespace": {faults.Match{Namespace: "kube-system"}, false},
		"name":            {faults.Match{Name: "d"}, true},
		"other name":      {faults.Match{Name: "e"}, false},
		"func":            {faults.Match{Func: func(r *http.Request) bool { return r.URL.Query().Has("x") }}, true},
		"other func":      {faults.Match{Func: func(r *http.Request) bool { return r.URL.Query().Has("y") }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{}, func(b *bench) {
				i := b.Inject(faults.Fault{Match: row.match, Effect: faults.Fail{Code: 503}})
				a := b.do(http.MethodGet, deploymentsPath+"/d?x=1", nil, "User-Agent", "leat/1")
				require.Equal(b, row.hits, a.code == 503)
				require.Equal(b, row.hits, i.Seen() == 1)
			})
		})
	}
}

func TestDelayAndStall(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		started := time.Now()
		b.Inject(faults.Fault{Times: 1, Effect: faults.Delay{For: 5 * time.Second}})
		b.list(podsPath)
		require.Equal(b, 5*time.Second, time.Since(started))

		// The headers stall until the fault is removed.
		i := b.Inject(faults.Fault{Effect: faults.Stall{}})
		go func() {
			<-time.After(time.Minute)
			i.Remove()
		}()
		b.list(podsPath)
		require.Equal(b, 65*time.Second, time.Since(started))
		require.Equal(b, 1, i.Seen())

		// The body stalls after some bytes.
		i = b.Inject(faults.Fault{Effect: faults.Stall{After: 10}})
		res, err := b.client.Do(b.request(http.MethodGet, podsPath, nil))
		require.NoError(b, err)
		_, err = io.ReadFull(res.Body, make([]byte, 10))
		require.NoError(b, err)
		rest := make(chan string)
		go func() {
			all := must.Get(io.ReadAll(res.Body))(b)
			rest <- string(all)
		}()
		select {
		case <-rest:
			b.Fatal("the body did not stall")
		case <-time.After(time.Hour):
		}
		i.Remove()
		require.Contains(b, <-rest, `"items"`)
		require.NoError(b, res.Body.Close())

		// A client that gives up also releases the request.
		for _, after := range []int{0, 10} {
			i = b.Inject(faults.Fault{Effect: faults.Stall{After: after}})
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			res, err = b.client.Do(b.request(http.MethodGet, podsPath, nil).WithContext(ctx))
			if err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			require.ErrorIs(b, err, context.DeadlineExceeded)
			cancel()
			require.Equal(b, 1, i.Seen())
			i.Remove()
		}
		// A client that disconnects during a delay does the same.
		b.Inject(faults.Fault{Effect: faults.Delay{For: time.Hour}})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = b.client.Do(b.request(http.MethodGet, podsPath, nil).WithContext(ctx))
		require.ErrorIs(b, err, context.DeadlineExceeded)
	})
}

func TestCutAndReset(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(3)
		read := func() (string, error) {
			res, err := b.client.Do(b.request(http.MethodGet, podsPath, nil))
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			all, err := io.ReadAll(res.Body)
			return string(all), err
		}
		i := b.Inject(faults.Fault{Times: 1, Effect: faults.Cut{After: 20}})
		body, err := read()
		require.NoError(b, err, "the answer ends normally")
		require.Equal(b, `{"kind":"PodList","a`, body)
		require.Equal(b, 1, i.Seen())

		i = b.Inject(faults.Fault{Times: 1, Effect: faults.Cut{After: 20, Abrupt: true}})
		_, err = read()
		require.ErrorIs(b, err, syscall.ECONNRESET)
		require.Equal(b, 1, i.Seen())

		// An answer shorter than After arrives whole, and Seen does not count it.
		i = b.Inject(faults.Fault{Times: 1, Effect: faults.Cut{After: 1 << 20}})
		_, err = read()
		require.NoError(b, err)
		require.Zero(b, i.Seen())

		i = b.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}}, Effect: faults.Reset{}})
		_, err = b.client.Do(b.request(http.MethodPost, podsPath, pod("x")))
		require.ErrorIs(b, err, syscall.ECONNRESET)
		require.Equal(b, 1, i.Seen())
		require.Len(b, b.list(podsPath).Items, 3)
	})
}

func TestStaleReads(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		old := b.Snapshot()
		b.ok(http.MethodPost, podsPath, pod("b"))
		i := b.Inject(faults.Fault{Match: faults.Match{Resource: "pods"}, Effect: faults.Stale{At: old}})
		l := b.list(podsPath, "resourceVersion=0")
		require.Equal(b, "101", l.Metadata.ResourceVersion)
		require.Equal(b, []string{"a"}, l.names())
		require.Equal(b, []string{"a", "b"}, b.list(podsPath).names(), "a consistent read")
		b.refused(404, http.MethodGet, podsPath+"/b", nil)
		b.refused(504, http.MethodGet, podsPath+"?resourceVersion=102", nil)
		require.Equal(b, 3, i.Seen())
		require.Equal(b, "102", b.list(mapsPath).Metadata.ResourceVersion, "other resources are up to date")

		// A watch gets the old state, and nothing newer until the fault is removed.
		w := b.watch(podsPath, "resourceVersion=0")
		defer w.close()
		w.expect("ADDED a@101")
		b.ok(http.MethodPost, podsPath, pod("c"))
		later := b.watch(podsPath, "resourceVersion=102")
		defer later.close()
		synctest.Wait()
		go func() {
			<-time.After(time.Minute)
			i.Remove()
		}()
		started := time.Now()
		w.expect("ADDED b@102", "ADDED c@103")
		later.expect("ADDED c@103")
		require.Equal(b, time.Minute, time.Since(started))
		require.Equal(b, "103", b.list(podsPath).Metadata.ResourceVersion)
	})
}

func TestListFaults(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(4)
		i := b.Inject(faults.Fault{Effect: faults.IgnoreLimit{}})
		require.Len(b, b.list(podsPath, "limit=9").Items, 4)
		require.Zero(b, i.Seen(), "the list has no limit")
		l := b.list(podsPath, "limit=2")
		require.Len(b, l.Items, 4)
		require.Empty(b, l.Metadata.Continue)
		require.Equal(b, 1, i.Seen())
		b.Heal()

		item := []watch.EventType{faults.Item}
		i = b.Inject(faults.Fault{Match: faults.Match{Frames: item, Name: "b"}, Effect: faults.Drop{}})
		j := b.Inject(faults.Fault{Match: faults.Match{Frames: item, Name: "c"}, Effect: faults.Duplicate{}})
		require.Equal(b, []string{"a", "c", "c", "d"}, b.list(podsPath).names())
		require.Equal(b, 1, i.Seen())
		require.Equal(b, 1, j.Seen())
		b.Heal()

		i = b.Inject(faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.Malform{}})
		l = b.list(podsPath)
		require.Equal(b, []string{"a", "b", "c", "d"}, l.names(), "the metadata can be read")
		require.EqualValues(b, 7, l.Items[1]["spec"])
		require.IsType(b, doc{}, l.Items[2]["spec"])
		require.Equal(b, 1, i.Seen())
		b.Heal()

		i = b.Inject(faults.Fault{Effect: faults.EndlessList{}})
		require.Empty(b, b.list(mapsPath).Items)
		res := must.Get(b.client.Do(b.request(http.MethodGet, podsPath, nil)))(b)
		must.Get(io.CopyN(io.Discard, res.Body, 10<<20))(b)
		require.NoError(b, res.Body.Close())
		require.Equal(b, 1, i.Seen())
	})
}

func TestRefuseWatchList(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		i := b.Inject(faults.Fault{Effect: faults.RefuseWatchList{}})
		path := podsPath + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		b.refused(422, http.MethodGet, path, nil)
		require.Equal(b, 1, i.Seen())
		w := b.watch(podsPath)
		w.close()
		require.Equal(b, 1, i.Seen())
	})
}

// TestFrameFaults opens a watch from 100 with a bookmark each second, injects the fault of the row, and creates a, b
// and c at 101 to 103.
func TestFrameFaults(t *testing.T) {
	added := []watch.EventType{watch.Added}
	gone := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
	for name, row := range map[string]struct {
		fault faults.Fault
		want  string // events, then EOF, reset or unexpected if the watch ends so
		seen  int
	}{
		"none":      {faults.Fault{Effect: faults.Reset{}}, "ADDED a@101, ADDED b@102, ADDED c@103, BOOKMARK@103", 0},
		"drop":      {faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.Drop{}}, "ADDED a@101, ADDED c@103, BOOKMARK@103", 1},
		"drop nth":  {faults.Fault{Skip: 1, Times: 1, Effect: faults.Drop{}}, "ADDED a@101, ADDED c@103, BOOKMARK@103", 1},
		"duplicate": {faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.Duplicate{}}, "ADDED a@101, ADDED b@102, ADDED b@102, ADDED c@103", 1},
		"hold": {
			faults.Fault{Match: faults.Match{Name: "a"}, Effect: faults.Hold{Frames: 1}},
			"ADDED b@102, ADDED a@101, ADDED c@103", 1,
		},
		"hold longer": {
			faults.Fault{Match: faults.Match{Name: "a"}, Effect: faults.Hold{Frames: 2}},
			"ADDED b@102, ADDED c@103, ADDED a@101, BOOKMARK@103", 1,
		},
		"cut": {faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.CutFrame{At: 30}}, "ADDED a@101, EOF", 1},
		"cut abruptly": {
			faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.CutFrame{At: 30, Abrupt: true}}, "ADDED a@101, reset", 1,
		},
		"cut at the end": {faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.CutFrame{At: 1 << 20}}, "ADDED a@101, ADDED b@102, EOF", 1},
		"end":            {faults.Fault{Skip: 2, Effect: faults.EndWatch{}}, "ADDED a@101, ADDED b@102, EOF", 1},
		"end abruptly":   {faults.Fault{Skip: 1, Effect: faults.EndWatch{Abrupt: true}}, "ADDED a@101, reset", 1},
		"error":          {faults.Fault{Skip: 1, Effect: faults.EndWatch{Error: gone}}, "ADDED a@101, ERROR 410 Expired, EOF", 1},
		"no bookmarks": {
			faults.Fault{Match: faults.Match{Frames: []watch.EventType{watch.Bookmark}}, Effect: faults.Drop{}},
			"ADDED a@101, ADDED b@102, ADDED c@103, EOF", 9,
		},
		"one bookmark late": {
			faults.Fault{Match: faults.Match{Frames: []watch.EventType{watch.Bookmark}}, Times: 1, Effect: faults.Hold{Frames: 1}},
			"ADDED a@101, ADDED b@102, ADDED c@103, BOOKMARK@103, BOOKMARK@103", 1,
		},
		"malformed":  {faults.Fault{Match: faults.Match{Frames: added, Name: "b"}, Effect: faults.Malform{}}, "ADDED a@101, ADDED b@102 malformed, ADDED c@103", 1},
		"items only": {faults.Fault{Match: faults.Match{Frames: []watch.EventType{faults.Item}}, Effect: faults.Drop{}}, "ADDED a@101, ADDED b@102, ADDED c@103", 0},
		"mangled": {
			faults.Fault{Match: faults.Match{Name: "b"}, Effect: faults.Malform{Mangle: func(in []byte) []byte {
				return []byte(strings.Replace(string(in), `"name":"b"`, `"name":"z"`, 1))
			}}},
			"ADDED a@101, ADDED z@102, ADDED c@103", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{BookmarkInterval: time.Second}, func(b *bench) {
				w := b.watch(podsPath, "resourceVersion=100", "allowWatchBookmarks=true", "timeoutSeconds=10")
				defer w.close()
				i := b.Inject(row.fault)
				b.fill(3)
				for _, want := range strings.Split(row.want, ", ") {
					e, err := w.next()
					switch want {
					case "EOF":
						require.ErrorIs(b, err, io.EOF)
						require.NotErrorIs(b, err, io.ErrUnexpectedEOF)
					case "reset":
						require.ErrorIs(b, err, syscall.ECONNRESET)
					default:
						require.NoError(b, err, want)
						got := e.String()
						if e.Object["spec"] == 7.0 {
							got += " malformed"
						}
						require.Equal(b, want, got)
					}
				}
				require.Equal(b, row.seen, i.Seen())
			})
		})
	}
}

func TestHoldUntilRemoved(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		w := b.watch(podsPath, "resourceVersion=100")
		defer w.close()
		i := b.Inject(faults.Fault{Match: faults.Match{Name: "a"}, Effect: faults.Hold{}})
		b.fill(2)
		w.expect("ADDED b@102")
		go func() {
			<-time.After(time.Minute)
			i.Remove()
		}()
		started := time.Now()
		w.expect("ADDED a@101")
		require.Equal(b, time.Minute, time.Since(started))
	})
}

func TestDropEndOfInitialEvents(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		i := b.Inject(faults.Fault{
			Match: faults.Match{Frames: []watch.EventType{faults.InitialEventsEnd}}, Effect: faults.Drop{},
		})
		w := b.watch(podsPath, "allowWatchBookmarks=true", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan")
		defer w.close()
		w.expect("ADDED a@101")
		b.ok(http.MethodPost, podsPath, pod("b"))
		// The next bookmark comes a minute later and does not end an initial list.
		w.expect("ADDED b@102", "BOOKMARK@102")
		require.Equal(b, 1, i.Seen())
	})
}

func TestStalledStream(t *testing.T) {
	for name, release := range map[string]func(b *bench, i *testserver.Injection, w *stream) (ends bool){
		"removed": func(_ *bench, i *testserver.Injection, _ *stream) bool { i.Remove(); return false },
		"disconnected": func(b *bench, _ *testserver.Injection, _ *stream) bool {
			b.Inject(faults.Fault{Effect: faults.Disconnect{}})
			return true
		},
		"client gone": func(_ *bench, _ *testserver.Injection, w *stream) bool { w.close(); return true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{}, func(b *bench) {
				w := b.watch(podsPath, "resourceVersion=100")
				defer w.close()
				i := b.Inject(faults.Fault{Skip: 1, Times: 1, Effect: faults.StallEvents{}})
				b.fill(3)
				w.expect("ADDED a@101")
				require.NoError(b, i.Wait(b.Context(), 1))
				<-time.After(time.Minute)
				require.Len(b, b.Watches(), 1)
				if release(b, i, w) {
					synctest.Wait()
					require.Empty(b, b.Watches())
					return
				}
				w.expect("ADDED b@102", "ADDED c@103")
			})
		})
	}
}

func TestDisconnect(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		one := b.watch(podsPath)
		two := b.watch(podsPath)
		other := b.watch(mapsPath)
		i := b.Inject(faults.Fault{Match: faults.Match{Resource: "pods"}, Times: 1, Effect: faults.Disconnect{}})
		one.expectEnd() // the oldest watch
		require.Equal(b, 1, i.Seen())
		i = b.Inject(faults.Fault{Match: faults.Match{Resource: "pods"}, Effect: faults.Disconnect{Abrupt: true}})
		_, err := two.next()
		require.ErrorIs(b, err, syscall.ECONNRESET)
		require.Equal(b, 1, i.Seen())
		b.Inject(faults.Fault{Effect: faults.Disconnect{
			Error: &metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError},
		}})
		other.expect("ERROR 500 InternalError")
		other.expectEnd()
		// The fault ends at once: later watches are not affected.
		w := b.watch(podsPath)
		synctest.Wait()
		require.Len(b, b.Watches(), 1)
		w.close()
	})
}

func TestShortWatch(t *testing.T) {
	for _, abrupt := range []bool{false, true} {
		inBubble(t, testserver.Options{}, func(b *bench) {
			i := b.Inject(faults.Fault{Times: 2, Effect: faults.ShortWatch{For: time.Second, Abrupt: abrupt}})
			j := b.Inject(faults.Fault{Times: 1, Effect: faults.ShortWatch{}})
			for range 2 {
				started := time.Now()
				w := b.watch(podsPath)
				_, err := w.next()
				if abrupt {
					require.ErrorIs(b, err, syscall.ECONNRESET)
				} else {
					require.ErrorIs(b, err, io.EOF)
				}
				require.Equal(b, time.Second, time.Since(started))
			}
			require.Equal(b, 2, i.Seen())
			started := time.Now()
			w := b.watch(podsPath)
			w.expectEnd()
			require.Zero(b, time.Since(started))
			require.Equal(b, 1, j.Seen())
		})
	}
}

func TestCompact(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(3)
		i := b.Inject(faults.Fault{Effect: faults.Compact{}})
		require.Zero(b, i.Seen())
		w := b.watch(podsPath, "resourceVersion=102")
		w.expect("ERROR 410 Expired")
		w.expectEnd()
		b.refused(410, http.MethodGet, podsPath+"?resourceVersion=102&resourceVersionMatch=Exact", nil)
		require.Equal(b, 2, i.Seen())
		w = b.watch(podsPath, "resourceVersion=103")
		defer w.close()
		b.ok(http.MethodPost, podsPath, pod("d"))
		w.expect("ADDED d@104")
		require.Equal(b, 2, i.Seen())
	})
}

func TestRestoreGoesBack(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		old := b.Snapshot()
		u := b.ok(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(doc{"name": "v1", "served": true, "storage": true}))
		b.ok(http.MethodPost, podsPath, pod("b"))
		w := b.watch(podsPath, "resourceVersion="+u.GetResourceVersion())
		w.expect("ADDED b@103")
		i := b.Inject(faults.Fault{Effect: faults.Restore{To: old}})
		_, err := w.next()
		require.ErrorIs(b, err, syscall.ECONNRESET)
		l := b.list(podsPath)
		require.Equal(b, "101", l.Metadata.ResourceVersion)
		require.Equal(b, []string{"a"}, l.names())
		require.Equal(b, 1, i.Seen())
		require.Equal(b, 404, b.do(http.MethodGet, "/apis/leat.example/v1/wheels", nil).code)

		// A client with a version from before the Restore gets nothing until the server passes that version.
		w = b.watch(podsPath, "resourceVersion=103", "allowWatchBookmarks=true")
		defer w.close()
		<-time.After(5 * time.Minute)
		require.Equal(b, "102", b.ok(http.MethodPost, podsPath, pod("c")).GetResourceVersion())
		b.ok(http.MethodPost, podsPath, pod("d"))
		b.ok(http.MethodPost, podsPath, pod("e"))
		w.expect("ADDED e@104", "BOOKMARK@104")
		b.list(podsPath)
		require.Equal(b, 1, i.Seen(), "the server has passed its former version")
	})
}

func TestOutage(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		w := b.watch(podsPath)
		i := b.Inject(faults.Fault{Effect: faults.Outage{}})
		_, err := w.next()
		require.ErrorIs(b, err, syscall.ECONNRESET)
		_, err = b.client.Do(b.request(http.MethodGet, podsPath, nil))
		require.ErrorIs(b, err, syscall.ECONNREFUSED)
		require.Equal(b, 2, i.Seen())
		i.Remove()
		b.list(podsPath)
	})
}

func TestInjectionWaits(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		i := b.Inject(faults.Fault{Effect: faults.Fail{}})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		require.ErrorIs(b, i.Wait(ctx, 1), context.DeadlineExceeded)
		answered := make(chan error, 1)
		go func() {
			res, err := b.client.Do(b.request(http.MethodGet, podsPath, nil))
			if err == nil {
				err = res.Body.Close()
			}
			answered <- err
		}()
		require.NoError(b, i.Wait(b.Context(), 1))
		require.NoError(b, i.Wait(b.Context(), 0))
		require.NoError(b, <-answered)
		require.PanicsWithValue(b, "testserver: inject: Fault.Effect is nil", func() { b.Inject(faults.Fault{}) })
	})
}

// TestRunEndsInEveryState cancels the context of Run in every state of the server. Run must return at once and leave no
// goroutine.
func TestRunEndsInEveryState(t *testing.T) {
	for name, busy := range map[string]func(b *bench){
		"idle":      func(*bench) {},
		"connected": func(b *bench) { b.list(podsPath) },
		"watch":     func(b *bench) { b.watch(podsPath) },
		"two":       func(b *bench) { b.watch(podsPath); b.watch(mapsPath) },
		"stalled": func(b *bench) {
			b.Inject(faults.Fault{Effect: faults.Stall{}})
			go func() { _, _ = b.client.Do(b.request(http.MethodGet, podsPath, nil)) }()
		},
		"stalled body": func(b *bench) {
			b.Inject(faults.Fault{Effect: faults.Stall{After: 5}})
			go func() {
				res, err := b.client.Do(b.request(http.MethodGet, podsPath, nil))
				if err == nil {
					_, _ = io.ReadAll(res.Body)
				}
			}()
		},
		"stalled stream": func(b *bench) {
			b.watch(podsPath, "resourceVersion=100")
			b.Inject(faults.Fault{Effect: faults.StallEvents{}})
			b.fill(1)
		},
		"delayed": func(b *bench) {
			b.Inject(faults.Fault{Effect: faults.Delay{For: time.Hour}})
			go func() { _, _ = b.client.Do(b.request(http.MethodGet, podsPath, nil)) }()
		},
		"waiting for a version": func(b *bench) {
			go func() { _, _ = b.client.Do(b.request(http.MethodGet, podsPath+"?resourceVersion=900", nil)) }()
		},
		"endless list nobody reads": func(b *bench) {
			b.fill(1)
			b.Inject(faults.Fault{Effect: faults.EndlessList{}})
			res := must.Get(b.client.Do(b.request(http.MethodGet, podsPath, nil)))(b)
			b.open = append(b.open, res.Body)
		},
		"watch nobody reads": func(b *bench) {
			b.watch(mapsPath, "resourceVersion=100")
			for i := range 50 {
				must.Get(b.Create(configMaps, configMap(fmt.Sprint("m", i), "text", strings.Repeat("x", 16<<10))))(b)
			}
		},
		"websocket": func(b *bench) { b.dialWebSocket(podsPath) },
		"half a request": func(b *bench) {
			c := must.Get(b.Dial(b.Context()))(b)
			b.open = append(b.open, c)
			must.Get(c.Write([]byte("GET / HTTP/1.1\r\n")))(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := testserver.New(testserver.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- srv.Run(ctx) }()
				b := &bench{T: t, Server: srv, client: srv.Client()}
				busy(b)
				synctest.Wait()
				started := time.Now()
				cancel()
				require.NoError(t, <-done)
				require.Zero(t, time.Since(started), "fake time must not pass")
				require.Empty(t, srv.Watches())
				b.release()
				_, err := srv.Dial(t.Context())
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			})
		})
	}
}

// TestRunAgain runs a server a second time. The storage is intact, the connections are new.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.New(testserver.Options{})
		client := srv.Client()
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- srv.Run(ctx) }()
			synctest.Wait()
			require.ErrorIs(t, srv.Run(ctx), testserver.ErrRunning)
			b := &bench{T: t, Server: srv, client: client}
			b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"generateName": "m-"}})
			cancel()
			require.NoError(t, <-done)
		}
		all := must.Get(srv.List(configMaps, "default"))(t)
		require.Len(t, all, 3)
	})
}

func TestServeReportsBrokenListeners(t *testing.T) {
	l := brokenListener{}
	require.ErrorIs(t, testserver.New(testserver.Options{}).Serve(t.Context(), l), errBroken)
}

var errBroken = errors.New("broken")

func TestProbability(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		affected := func(seed uint64) (out []int) {
			i := b.Inject(faults.Fault{Skip: 5, Times: 20, Probability: 0.5, Seed: seed, Effect: faults.Fail{}})
			defer i.Remove()
			for n := range 200 {
				if b.do(http.MethodGet, podsPath, nil).code != 200 {
					out = append(out, n)
				}
			}
			require.Equal(b, len(out), i.Seen())
			return out
		}
		first := affected(1)
		require.Len(b, first, 20, "Times counts what was affected")
		require.GreaterOrEqual(b, first[0], 5)
		require.InDelta(b, 45, first[19], 20, "about every second one")
		require.Equal(b, first, affected(1))
		require.NotEqual(b, first, affected(2))
	})
}
