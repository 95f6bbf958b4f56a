package testserver_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// requireGrace checks the grace period of an object, and the time from start until its end.
func requireGrace(b *bench, u *unstructured.Unstructured, start time.Time, grace int64, end time.Duration) {
	b.Helper()
	require.NotNil(b, u.GetDeletionGracePeriodSeconds(), "%v", u.Object)
	require.Equal(b, grace, *u.GetDeletionGracePeriodSeconds())
	require.Equal(b, end, u.GetDeletionTimestamp().Sub(start))
}

// inTermination runs test with the pod p on a node.
func inTermination(t *testing.T, test func(b *bench, deleted func(query string) *unstructured.Unstructured)) {
	t.Helper()
	inBubble(t, testserver.Options{}, func(b *bench) {
		must.Get(b.Create(pods, runningPod("p", "True")))(t)
		test(b, func(query string) *unstructured.Unstructured {
			b.Helper()
			return b.ok(http.MethodDelete, podsPath+"/p"+query, nil)
		})
	})
}

// TestASecondDeletionOnlyShortensTheGracePeriod checks that the new period begins with the first deletion.
func TestASecondDeletionOnlyShortensTheGracePeriod(t *testing.T) {
	inTermination(t, func(b *bench, deleted func(query string) *unstructured.Unstructured) {
		start := time.Now()
		first := deleted("?gracePeriodSeconds=100")
		requireGrace(b, first, start, 100, 100*time.Second)
		for _, query := range []string{"", "?gracePeriodSeconds=100", "?gracePeriodSeconds=200", "?propagationPolicy=Foreground"} {
			require.Equal(b, first.Object, deleted(query).Object, query)
		}
		<-time.After(4 * time.Second)
		requireGrace(b, deleted("?gracePeriodSeconds=20"), start, 20, 20*time.Second)
		requireGrace(b, deleted("?gracePeriodSeconds=4"), start, 4, 4*time.Second)
		u := deleted("?gracePeriodSeconds=2&propagationPolicy=Foreground")
		requireGrace(b, u, start, 1, 4*time.Second)
		require.Equal(b, []string{"foregroundDeletion"}, u.GetFinalizers())
		<-time.After(time.Minute)
		require.Equal(b, u.Object, deleted("?gracePeriodSeconds=1").Object)

		b.ok(http.MethodPatch, podsPath+"/p", `{"metadata":{"finalizers":null}}`, "Content-Type", mergePatch)
		requireGrace(b, deleted("?gracePeriodSeconds=0&dryRun=All"), start, 0, 64*time.Second)
		requireGrace(b, b.ok(http.MethodGet, podsPath+"/p", nil), start, 1, 4*time.Second)
		requireGrace(b, deleted("?gracePeriodSeconds=0"), start, 0, 64*time.Second)
		b.refused(404, http.MethodGet, podsPath+"/p", nil)
	})
}

// TestANegativeGracePeriodIsOneSecond checks deletions, evictions and the grace period in the spec of a pod.
func TestANegativeGracePeriodIsOneSecond(t *testing.T) {
	inTermination(t, func(b *bench, deleted func(query string) *unstructured.Unstructured) {
		requireGrace(b, deleted("?gracePeriodSeconds=-5"), time.Now(), 1, time.Second)
		requireGrace(b, b.ok(http.MethodGet, podsPath+"/p", nil), time.Now(), 1, time.Second)
	})
	inTermination(t, func(b *bench, deleted func(query string) *unstructured.Unstructured) {
		requireGrace(b, deleted("?gracePeriodSeconds=9"), time.Now(), 9, 9*time.Second)
		requireGrace(b, deleted("?gracePeriodSeconds=-5"), time.Now(), 1, time.Second)
	})
	inTermination(t, func(b *bench, _ func(query string) *unstructured.Unstructured) {
		b.ok(http.MethodPost, evictPath, eviction("p", "deleteOptions", doc{"gracePeriodSeconds": -3}))
		requireGrace(b, b.ok(http.MethodGet, podsPath+"/p", nil), time.Now(), 1, time.Second)
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		p := runningPod("p", "True")
		p["spec"].(doc)["terminationGracePeriodSeconds"] = -1
		must.Get(b.Create(pods, p))(b)
		requireGrace(b, b.ok(http.MethodDelete, podsPath+"/p", nil), time.Now(), 1, time.Second)
	})
}

// TestFinalizersThatALaterDeletionChangesKeepTheTime checks an object without a grace period.
func TestFinalizersThatALaterDeletionChangesKeepTheTime(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		start := time.Now()
		b.ok(http.MethodPost, mapsPath, doc{"metadata": meta("a", "finalizers", []string{"x/y"})})
		b.ok(http.MethodDelete, mapsPath+"/a", nil)
		<-time.After(time.Minute)
		u := b.ok(http.MethodDelete, mapsPath+"/a?propagationPolicy=Orphan", nil)
		require.Equal(b, []string{"x/y", "orphan"}, u.GetFinalizers())
		requireGrace(b, u, start, 0, 0)
	})
}

// TestClientsSeeAPodWithoutANodeBeforeItGoes deletes such pods, and sends a request between both writes of a deletion.
func TestClientsSeeAPodWithoutANodeBeforeItGoes(t *testing.T) {
	at := func(b *bench, send func() answer, between func(*bench)) answer {
		b.Helper()
		done := make(chan answer, 1)
		go func() { done <- send() }()
		synctest.Wait()
		p := b.ok(http.MethodGet, podsPath+"/p", nil)
		require.NotNil(b, p.GetDeletionTimestamp())
		require.Zero(b, *p.GetDeletionGracePeriodSeconds())
		require.Empty(b, done)
		if between != nil {
			between(b)
		}
		return <-done
	}
	deletion := func(b *bench, query string, body any) func() answer {
		return func() answer { return b.do(http.MethodDelete, podsPath+query, body) }
	}
	for name, c := range map[string]struct {
		send    func(*bench) func() answer
		between func(b *bench)
		code    int
	}{
		"alone":      {send: func(b *bench) func() answer { return deletion(b, "/p", nil) }, code: 200},
		"collection": {send: func(b *bench) func() answer { return deletion(b, "", nil) }, code: 200},
		"eviction": {send: func(b *bench) func() answer {
			return func() answer { return b.do(http.MethodPost, evictPath, eviction("p")) }
		}, code: 201},
		"an update": {
			send: func(b *bench) func() answer { return deletion(b, "/p", nil) },
			between: func(b *bench) {
				b.ok(http.MethodPatch, podsPath+"/p", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", mergePatch)
			}, code: 200,
		},
		"another deletion": {
			send:    func(b *bench) func() answer { return deletion(b, "/p", nil) },
			between: func(b *bench) { b.ok(http.MethodDelete, podsPath+"/p", nil) }, code: 200,
		},
		"another pod": {
			send: func(b *bench) func() answer { return deletion(b, "/p", nil) },
			between: func(b *bench) {
				b.ok(http.MethodDelete, podsPath+"/p", nil)
				b.ok(http.MethodPost, podsPath, pod("p", "second", "yes"))
			}, code: 200,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{DeletionPause: time.Millisecond}, func(b *bench) {
				b.ok(http.MethodPost, podsPath, pod("p"))
				a := at(b, c.send(b), c.between)
				require.Equal(b, c.code, a.code, "%s", a.body)
				if name == "another pod" {
					b.ok(http.MethodGet, podsPath+"/p", nil)
					return
				}
				b.refused(404, http.MethodGet, podsPath+"/p", nil)
			})
		})
	}
	inBubble(t, testserver.Options{DeletionPause: time.Millisecond}, func(b *bench) {
		version := b.ok(http.MethodPost, podsPath, pod("p")).GetResourceVersion()
		o := doc{"preconditions": doc{"resourceVersion": version}}
		require.Equal(b, 200, at(b, deletion(b, "/p", o), nil).code, "the precondition is that of the first write")
	})
}

// TestAListenerPausesDeletions requires the default of a server on a listener.
func TestAListenerPausesDeletions(t *testing.T) {
	pods := "http://" + onLoopback(t, testserver.Options{}).address + podsPath
	send := func(method, url, body string) {
		r := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		a := must.Get(http.DefaultClient.Do(r))(t)
		require.NoError(t, a.Body.Close())
		require.Less(t, a.StatusCode, 300)
	}
	send(http.MethodPost, pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	start := time.Now()
	send(http.MethodDelete, pods+"/p", "")
	require.GreaterOrEqual(t, time.Since(start), time.Millisecond)
}
