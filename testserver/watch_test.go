package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestWatchStarts(t *testing.T) {
	// The test creates pods a, b and c at 101 to 103, deletes a at 104, opens the watch, and creates d at 105.
	const streamed = "sendInitialEvents=true resourceVersionMatch=NotOlderThan"
	const unstreamed = "sendInitialEvents=false resourceVersionMatch=NotOlderThan"
	for _, row := range []struct{ query, want string }{
		{"resourceVersion=102", "ADDED c@103, DELETED a@104, ADDED d@105"},
		{"resourceVersion=104", "ADDED d@105"},
		{"resourceVersion=100", "ADDED a@101, ADDED b@102, ADDED c@103, DELETED a@104, ADDED d@105"},
		{"resourceVersion=0", "ADDED b@102, ADDED c@103, ADDED d@105"},
		{"", "ADDED b@102, ADDED c@103, ADDED d@105"},
		{"resourceVersion=0 allowWatchBookmarks=true", "ADDED b@102, ADDED c@103, BOOKMARK@104 end, ADDED d@105"},
		{"allowWatchBookmarks=true " + streamed, "ADDED b@102, ADDED c@103, BOOKMARK@104 end, ADDED d@105"},
		{"resourceVersion=103 allowWatchBookmarks=1 " + streamed, "ADDED b@102, ADDED c@103, BOOKMARK@104 end, ADDED d@105"},
		{streamed, "ADDED b@102, ADDED c@103, ADDED d@105"}, // no bookmarks, so none ends the initial list
		{"resourceVersion=102 " + unstreamed, "ADDED c@103, DELETED a@104, ADDED d@105"},
		{unstreamed, "ADDED d@105"},
		{"resourceVersion=0 " + unstreamed, "ADDED d@105"},
		{"resourceVersion=99", "ERROR 410 Expired"},
		{"resourceVersion=99 " + unstreamed, "ERROR 410 Expired"},
		{"resourceVersion=200 " + streamed, "ERROR 504 Timeout"},
		{"labelSelector=app=x", "ADDED d@105"},
	} {
		t.Run(strings.ReplaceAll(row.query, "=", ":"), func(t *testing.T) {
			inBubble(t, testserver.Options{}, func(b *bench) {
				b.fill(3)
				require.NoError(b, b.Delete(pods, api.Key{Namespace: "default", Name: "a"}))
				w := b.watch(podsPath, strings.Fields(row.query)...)
				defer w.close()
				synctest.Wait()
				must.Get(b.Create(pods, pod("d", "app", "x")))(b)
				w.expect(strings.Split(row.want, ", ")...)
				if strings.HasPrefix(row.want, "ERROR") {
					w.expectEnd()
				}
			})
		})
	}
}

func TestWatchRefusals(t *testing.T) {
	for query, code := range map[string]int{
		"sendInitialEvents=true":                                          422,
		"sendInitialEvents=true resourceVersionMatch=Exact":               422,
		"sendInitialEvents=false":                                         422,
		"resourceVersionMatch=NotOlderThan":                               422,
		"resourceVersionMatch=NotOlderThan continue=x":                    422,
		"resourceVersion=x":                                               500, // kube-apiserver answers the same
		"continue=x":                                                      422,
		"fieldSelector=spec.color=red":                                    400,
		"timeoutSeconds=soon":                                             400,
		"sendInitialEvents=true resourceVersionMatch=NotOlderThan":        200,
		"sendInitialEvents=true resourceVersionMatch=NotOlderThan limit=": 200,
	} {
		t.Run(strings.ReplaceAll(query, "=", ":"), func(t *testing.T) {
			inBubble(t, testserver.Options{}, func(b *bench) {
				a := b.do(http.MethodGet, podsPath+queryOf(append(strings.Fields(query), "watch=1", "timeoutSeconds=1")...), nil)
				if strings.Contains(query, "timeoutSeconds") {
					a = b.do(http.MethodGet, podsPath+queryOf(append(strings.Fields(query), "watch=1")...), nil)
				}
				require.Equal(b, code, a.code, "%s", a.body)
			})
		})
	}
	inBubble(t, testserver.Options{NoWatchList: true}, func(b *bench) {
		b.fill(1)
		w := b.watch(podsPath, "resourceVersion=0", "allowWatchBookmarks=true")
		w.expect("ADDED a@101")
		b.ok(http.MethodPost, podsPath, pod("b"))
		w.expect("ADDED b@102", "BOOKMARK@102") // a minute later; it does not end an initial list
		status := b.refused(422, http.MethodGet, podsPath+queryOf("watch=1", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"), nil)
		require.Equal(b, metav1.StatusReasonInvalid, status.Reason)
		require.Equal(b, "sendInitialEvents", status.Details.Causes[0].Field)
	})
}

func TestWatchFromTheFuture(t *testing.T) {
	inBubble(t, testserver.Options{BookmarkInterval: time.Second}, func(b *bench) {
		w := b.watch(podsPath, "resourceVersion=102", "allowWatchBookmarks=true")
		defer w.close()
		b.fill(3)
		w.expect("ADDED c@103")
		w.expect("BOOKMARK@103")
	})
}

// TestWatchFromTheFutureIsSilent expects what kube-apiserver does: 200, and nothing until the version has passed or the
// watch times out.
func TestWatchFromTheFutureIsSilent(t *testing.T) {
	inBubble(t, testserver.Options{BookmarkInterval: time.Second}, func(b *bench) {
		started := time.Now()
		w := b.watch(podsPath, "resourceVersion=102", "allowWatchBookmarks=true", "timeoutSeconds=300")
		b.fill(2)
		w.expectEnd()
		require.Equal(b, 5*time.Minute, time.Since(started))
	})
}

func TestExpiredWatchAsStatus(t *testing.T) {
	inBubble(t, testserver.Options{ExpiredStatus: true}, func(b *bench) {
		status := b.refused(http.StatusGone, http.MethodGet, podsPath+"?watch=1&resourceVersion=1", nil)
		require.Equal(b, metav1.StatusReasonExpired, status.Reason)
		require.Equal(b, "too old resource version: 1 (100)", status.Message)
	})
}

func TestWatchTimeouts(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"timeoutSeconds=7":  7 * time.Second,
		"timeoutSeconds=0":  10 * time.Minute,
		"timeoutSeconds=-1": 0,
		"":                  10 * time.Minute,
	} {
		inBubble(t, testserver.Options{WatchTimeout: 10 * time.Minute}, func(b *bench) {
			started := time.Now()
			w := b.watch(podsPath, strings.Fields(query)...)
			w.expectEnd()
			require.Equal(b, want, time.Since(started), query)
			require.Empty(b, b.Watches())
		})
	}
}

func TestBookmarks(t *testing.T) {
	inBubble(t, testserver.Options{BookmarkInterval: 10 * time.Second}, func(b *bench) {
		started := time.Now()
		at := func() int { return int(time.Since(started) / time.Second) }
		w := b.watch(podsPath, "resourceVersion=100", "allowWatchBookmarks=true", "timeoutSeconds=35")
		plain := b.watch(podsPath, "resourceVersion=100", "timeoutSeconds=35")
		<-time.After(15 * time.Second) // there is no bookmark with the version that the client has
		must.Get(b.Create(configMaps, configMap("elsewhere")))(b)
		w.expect("BOOKMARK@101") // changes of other resources also move the version
		require.Equal(b, 20, at())
		w.expect("BOOKMARK@101")
		require.Equal(b, 30, at())
		w.expect("BOOKMARK@101") // shortly before the end
		require.Equal(b, 33, at())
		w.expectEnd()
		require.Equal(b, 35, at())
		plain.expectEnd()
	})
	inBubble(t, testserver.Options{BookmarkInterval: -1}, func(b *bench) {
		w := b.watch(podsPath, "resourceVersion=100", "allowWatchBookmarks=true", "timeoutSeconds=3600")
		w.expectEnd()
	})
}

func TestWatchSelectorsFollowChanges(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		watches := map[string]*stream{
			"all":   b.watch("/api/v1/pods", "resourceVersion=100"),
			"label": b.watch(podsPath, "resourceVersion=100", "labelSelector=app=x"),
			"field": b.watch(podsPath, "resourceVersion=100", "fieldSelector=status.phase=Running"),
			"name":  b.watch(podsPath, "resourceVersion=100", "fieldSelector=metadata.name=b"),
			"other": b.watch("/api/v1/namespaces/other/pods", "resourceVersion=100"),
			"old":   b.watch("/api/v1/watch/namespaces/default/pods/b", "resourceVersion=100"),
		}
		key := api.Key{Namespace: "default", Name: "a"}
		must.Get(b.Create(pods, pod("a", "app", "x")))(b)
		b.edit(pods, key, "metadata.labels.app", "y")        // 102: the label no longer matches
		b.edit(pods, key, "status.phase", "Running")         // 103: the field matches
		b.edit(pods, key, "metadata.labels.app", "x")        // 104: the label matches again
		b.edit(pods, key, "metadata.annotations.note", "hi") // 105
		require.NoError(b, b.Delete(pods, key))              // 106
		must.Get(b.Create(pods, pod("b")))(b)
		for name, want := range map[string][]string{
			"all":   {"ADDED a@101", "MODIFIED a@102", "MODIFIED a@103", "MODIFIED a@104", "MODIFIED a@105", "DELETED a@106", "ADDED b@107"},
			"label": {"ADDED a@101", "DELETED a@102", "ADDED a@104", "MODIFIED a@105", "DELETED a@106"},
			"field": {"ADDED a@103", "MODIFIED a@104", "MODIFIED a@105", "DELETED a@106"},
			"name":  {"ADDED b@107"},
			"old":   {"ADDED b@107"},
			"other": nil,
		} {
			watches[name].expect(want...)
		}
		b.Inject(faults.Fault{Effect: faults.Disconnect{}})
		for _, w := range watches {
			w.expectEnd()
		}
	})
}

// TestDeletedBySelectorCarriesOldState checks that the DELETED event of an object that leaves a selection has the last
// selected state, and the version of the change.
func TestDeletedBySelectorCarriesOldState(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		must.Get(b.Create(pods, pod("a", "app", "x")))(b)
		w := b.watch(podsPath, "resourceVersion=101", "labelSelector=app=x")
		defer w.close()
		for range 900 { // until the version has one more digit
			must.Get(b.Create(configMaps, doc{"metadata": doc{"generateName": "m-", "namespace": "default"}}))(b)
		}
		b.edit(pods, api.Key{Namespace: "default", Name: "a"}, "metadata.labels.app", "y")
		e := must.Get(w.next())(b)
		require.Equal(b, "DELETED a@1002", e.String())
		require.Equal(b, doc{"app": "x"}, e.Object["metadata"].(doc)["labels"])
		require.Equal(b, "Pod", e.Object["kind"])
		require.NotNil(b, e.Object["spec"])
	})
}

// edit sets one field, with a dotted path, by Server.Edit.
func (b *bench) edit(r api.Resource, key api.Key, path string, value any) {
	b.Helper()
	current := must.Get(b.Get(r, key))(b)
	at := current.Object
	parts := strings.Split(path, ".")
	for _, p := range parts[:len(parts)-1] {
		child, ok := at[p].(doc)
		if !ok {
			child = doc{}
			at[p] = child
		}
		at = child
	}
	at[parts[len(parts)-1]] = value
	must.Get(b.Update(r, current))(b)
}

func TestCompactionSparesOpenWatches(t *testing.T) {
	inBubble(t, testserver.Options{History: 2}, func(b *bench) {
		w := b.watch(podsPath, "resourceVersion=100")
		defer w.close()
		b.fill(10) // the watch has no time to read, and the history has two changes
		b.Inject(faults.Fault{Effect: faults.Compact{}})
		b.edit(pods, api.Key{Namespace: "default", Name: "a"}, "spec.nodeName", "n")
		for i := range 10 {
			w.expect(fmt.Sprintf("ADDED %c@%d", 'a'+i, 101+i))
		}
		w.expect("MODIFIED a@111")
	})
}

func TestSlowWatchIsClosed(t *testing.T) {
	inBubble(t, testserver.Options{WatchBacklog: 50}, func(b *bench) {
		w := b.watch(mapsPath, "resourceVersion=100")
		defer w.close()
		big := strings.Repeat("x", 16<<10)
		for i := range 200 { // first more than the pipe can buffer, so that the watch blocks, then more than the backlog
			must.Get(b.Create(configMaps, configMap(fmt.Sprintf("m%03d", i), "text", big)))(b)
			synctest.Wait()
		}
		received := 0
		for {
			if _, err := w.next(); err != nil {
				break
			}
			received++
		}
		require.GreaterOrEqual(b, received, 4)
		require.Less(b, received, 50)
		require.Empty(b, b.Watches())
	})
}

func TestWatchesAreListed(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		one := b.watch(podsPath)
		two := b.watch("/api/v1/namespaces/kube-system/configmaps")
		var seen []string
		for _, r := range b.Watches() {
			seen = append(seen, r.Verb+" "+r.Resource+" in "+r.Namespace)
		}
		require.Equal(b, []string{"watch pods in default", "watch configmaps in kube-system"}, seen)
		one.close()
		two.close()
		synctest.Wait()
		require.Empty(b, b.Watches())
	})
}

// TestAClientThatDoesNotReadDelaysNoOther fills the buffers of a watch, whose goroutine then blocks in a write.
func TestAClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		stuck := must.Get(b.client.Do(b.request(http.MethodGet, mapsPath+"?watch=1&resourceVersion=100", nil)))(b)
		defer stuck.Body.Close()
		w := b.watch(mapsPath, "resourceVersion=100")
		defer w.close()
		for i := range 10 {
			synctest.Wait()
			name := fmt.Sprint("m", i)
			must.Get(b.Create(configMaps, configMap(name, "text", strings.Repeat("x", 100<<10))))(b)
			w.expect(fmt.Sprintf("ADDED %s@%d", name, 101+i))
		}
	})
}
