package apiclient_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

type pageOptions = apiclient.PageOptions[*corev1.Pod]

// limit sets the size of a page.
func limit(n int64) pageOptions {
	return pageOptions{Options: api.Options[*corev1.Pod]{ListOptions: metav1.ListOptions{Limit: n}}}
}

// withPods serves n pods with the names p00, p01 and so on.
func withPods(t *testing.T, n int, test func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod])) {
	t.Helper()
	withServer(t, testserver.Options{ImmediateDeletion: true}, func(t *testing.T, s *testserver.Server, c *apiclient.Client) {
		for i := range n {
			must.Get(s.Create(podResource, newPod(fmt.Sprintf("p%02d", i))))(t)
		}
		test(t, s, apiclient.NewTyped[*corev1.Pod](c, podResource, "default"))
	})
}

// names runs a loop to its end and calls between after each object.
func names(all iter.Seq2[*corev1.Pod, error], between func(name string)) (string, error) {
	var out []string
	for pod, err := range all {
		if err != nil {
			return strings.Join(out, " "), err
		}
		out = append(out, pod.Name)
		between(pod.Name)
	}
	return strings.Join(out, " "), nil
}

func nothing(string) {}

// asked returns the queries of the lists that a server got.
func asked(s *testserver.Server) []string {
	var out []string
	for _, r := range s.Requests() {
		token := ""
		if r.Query.Has("continue") {
			token = "+continue"
		}
		out = append(out, fmt.Sprintf("limit=%s rv=%s match=%s%s", r.Query.Get("limit"), r.Query.Get("resourceVersion"), r.Query.Get("resourceVersionMatch"), token))
	}
	return out
}

func TestPagesAreOneList(t *testing.T) {
	withPods(t, 5, func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod]) {
		all := apiclient.All(t.Context(), pods, limit(2))
		got := must.Get(names(all, func(name string) {
			if name == "p01" { // changes between pages are not in this list
				require.NoError(t, s.Delete(podResource, api.Key{Namespace: "default", Name: "p03"}))
				must.Get(s.Create(podResource, newPod("p035")))(t)
			}
		}))(t)
		require.Equal(t, "p00 p01 p02 p03 p04", got)
		require.Equal(t, []string{"limit=2 rv= match=", "limit=2 rv= match=+continue", "limit=2 rv= match=+continue"}, asked(s))

		got = must.Get(names(all, nothing))(t)
		require.Equal(t, "p00 p01 p02 p035 p04", got, "each loop is a list of its own")

		s.ForgetRequests()
		must.Get(names(apiclient.All(t.Context(), pods, pageOptions{}), nothing))(t)
		require.Equal(t, []string{"limit=500 rv= match="}, asked(s))

		s.ForgetRequests()
		o := limit(4)
		o.ResourceVersion, o.ResourceVersionMatch = "105", metav1.ResourceVersionMatchExact
		got = must.Get(names(apiclient.All(t.Context(), pods, o), nothing))(t)
		require.Equal(t, "p00 p01 p02 p03 p04", got)
		require.Equal(t, []string{"limit=4 rv=105 match=Exact", "limit=4 rv= match=+continue"}, asked(s), "the token names the state")
	})
}

func TestABreakEndsTheList(t *testing.T) {
	withPods(t, 5, func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod]) {
		for range apiclient.All(t.Context(), pods, limit(2)) {
			break
		}
		require.Len(t, asked(s), 1, "no page is requested in advance")
		synctest.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		got, err := names(apiclient.All(ctx, pods, limit(5)), func(name string) {
			if name == "p02" {
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "list pods: ")
		require.Equal(t, "p00 p01 p02", got, "objects that arrived before the failure are yielded")
	})
}

func TestATokenThatExpires(t *testing.T) {
	withPods(t, 6, func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod]) {
		forget := func(name string) {
			if name != "p01" {
				return
			}
			require.NoError(t, s.Delete(podResource, api.Key{Namespace: "default", Name: "p03"}))
			must.Get(s.Create(podResource, newPod("p005")))(t)
			s.Inject(faults.Fault{Effect: faults.Compact{}})
		}
		got, err := names(apiclient.All(t.Context(), pods, limit(2)), forget)
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		require.Equal(t, "p00 p01", got)
	})
	withPods(t, 6, func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod]) {
		o := limit(2)
		o.Inconsistent = true
		got := must.Get(names(apiclient.All(t.Context(), pods, o), func(name string) {
			if name == "p01" {
				require.NoError(t, s.Delete(podResource, api.Key{Namespace: "default", Name: "p03"}))
				must.Get(s.Create(podResource, newPod("p005")))(t)
				s.Inject(faults.Fault{Effect: faults.Compact{}})
			}
		}))(t)
		require.Equal(t, "p00 p01 p02 p04 p05", got, "the rest is of the current state, and no object comes twice")
	})
}

const expiredWithToken = `{"kind":"Status","apiVersion":"v1","metadata":{"continue":"again"},"status":"Failure","message":"too old","reason":"Expired","code":410}`

func TestServersWithEndlessPages(t *testing.T) {
	var requests int
	count := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			requests++
			h(w, r)
		}
	}
	o := limit(1)
	o.Inconsistent = true
	cfg := onLoopback(t, count(answer(410, jsonType, expiredWithToken)))
	_, err := names(apiclient.All(t.Context(), pods(t, cfg), o), nothing)
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	require.Equal(t, 2, requests)

	requests = 0
	cfg = onLoopback(t, count(answer(200, jsonType, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"same"},"items":[]}`)))
	_, err = names(apiclient.All(t.Context(), pods(t, cfg), limit(1)), nothing)
	require.EqualError(t, err, "list pods: apiclient: the server returned the same token for the next page again")
	require.Equal(t, 2, requests)
}

func TestBusyServersAreWaitedFor(t *testing.T) {
	busy := func(code, seconds, times, skip int) faults.Fault {
		return faults.Fault{Skip: skip, Times: times, Effect: faults.Fail{Code: code, RetryAfter: time.Duration(seconds) * time.Second}}
	}
	for _, tt := range []struct {
		name    string
		fault   faults.Fault
		maxWait time.Duration
		want    string
		took    time.Duration
		failed  bool
	}{
		{"between pages", busy(429, 7, 2, 1), 0, "p00 p01 p02", 14 * time.Second, false},
		{"before the first", busy(503, 3, 1, 0), 0, "p00 p01 p02", 3 * time.Second, false},
		{"too long in all", busy(429, 25, 9, 1), 0, "p00 p01", 50 * time.Second, true},
		{"too long at once", busy(429, 61, 1, 1), 0, "p00 p01", 0, true},
		{"as long as it takes", busy(429, 61, 1, 1), time.Hour, "p00 p01 p02", 61 * time.Second, false},
		{"not at all", busy(429, 1, 1, 1), -1, "p00 p01", 0, true},
		{"without a delay", busy(503, 0, 1, 1), 0, "p00 p01", 0, true},
		{"another failure", busy(500, 5, 1, 1), 0, "p00 p01", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withPods(t, 3, func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod]) {
				s.Inject(tt.fault)
				o := limit(2)
				o.MaxWait = tt.maxWait
				started := time.Now()
				got, err := names(apiclient.All(t.Context(), pods, o), nothing)
				require.Equal(t, tt.failed, err != nil, "%v", err)
				require.Equal(t, tt.want, got)
				require.Equal(t, tt.took, time.Since(started))
			})
		})
	}
	withPods(t, 3, func(t *testing.T, s *testserver.Server, pods *apiclient.TypedClient[*corev1.Pod]) {
		s.Inject(busy(429, 7, 1, 1))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := names(apiclient.All(ctx, pods, limit(2)), nothing)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "list pods: ")
	})
}

// TestNoPageIsHeld gets its first object from a page that never ends.
func TestNoPageIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			flushed(w, jsonType, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"web"}},`)
			hang(r)
		})
		for pod, err := range apiclient.All(t.Context(), pods(t, cfg), pageOptions{}) {
			require.NoError(t, err)
			require.Equal(t, "web", pod.Name)
			break
		}
	})
}

// halfPage is a source whose page ends with the error of a busy server after its first object.
type halfPage struct {
	api.ListerWatcher[*corev1.Pod]
	lists int
	err   error
}

func (h *halfPage) List(_ context.Context, _ api.Options[*corev1.Pod], each func(*corev1.Pod) error) (metav1.ListMeta, error) {
	h.lists++
	if err := each(newPod("web")); err != nil {
		return metav1.ListMeta{}, err
	}
	return metav1.ListMeta{}, h.err
}

// TestHalfAPageIsNotRepeated would otherwise see its first object twice.
func TestHalfAPageIsNotRepeated(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	expired.ErrStatus.Continue = "again"
	for _, failure := range []error{apierrors.NewTooManyRequests("busy", 1), expired} {
		source := &halfPage{err: failure}
		o := limit(2)
		o.Inconsistent = true
		got, err := names(apiclient.All(t.Context(), source, o), nothing)
		require.Equal(t, failure, err)
		require.Equal(t, "web", got)
		require.Equal(t, 1, source.lists)
	}
}

func TestANegativeWaitIsZero(t *testing.T) {
	lists := 0
	cfg := onLoopback(t, func(w http.ResponseWriter, r *http.Request) {
		lists++
		answer(429, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"details":{"retryAfterSeconds":-5}}`)(w, r)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := names(apiclient.All(ctx, pods(t, cfg), pageOptions{}), nothing)
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.Equal(t, 1, lists)
}
