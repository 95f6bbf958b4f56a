package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// fill creates pods a, b, c… at versions 101, 102, 103…
func (b *bench) fill(n int) {
	b.Helper()
	for i := range n {
		must.Get(b.Create(pods, pod(string(rune('a'+i)))))(b)
	}
}

func TestLegacyExactWithLimit(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(3)
		l := b.list(podsPath, "resourceVersion=102", "limit=1")
		require.Equal(b, "102", l.Metadata.ResourceVersion)
		require.Equal(b, []string{"a"}, l.names())
		require.EqualValues(b, 1, *l.Metadata.RemainingItemCount)
		require.Equal(b, "103", b.list(podsPath, "resourceVersion=102").Metadata.ResourceVersion)
	})
}

func TestWithoutWatchCacheVersionZeroIsPaged(t *testing.T) {
	inBubble(t, testserver.Options{NoWatchCache: true}, func(b *bench) {
		b.fill(3)
		l := b.list(podsPath, "resourceVersion=0", "limit=2")
		require.Equal(b, []string{"a", "b"}, l.names())
		require.NotEmpty(b, l.Metadata.Continue)
	})
}

func TestTooLargeVersion(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		started := time.Now()
		a := b.do(http.MethodGet, podsPath+"?resourceVersion=105", nil)
		require.Equal(b, 3*time.Second, time.Since(started))
		require.Equal(b, http.StatusGatewayTimeout, a.code)
		require.Equal(b, "1", a.header.Get("Retry-After"))
		status := a.status(t)
		require.Equal(b, metav1.StatusReasonTimeout, status.Reason)
		require.EqualValues(b, 1, status.Details.RetryAfterSeconds)
		require.Equal(b, []metav1.StatusCause{
			{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
		}, status.Details.Causes)
		require.Equal(b, "Timeout: Too large resource version: 105, current: 101", status.Message)

		// A read waits for a version that the server reaches in time.
		go func() {
			<-time.After(time.Second)
			b.fill(0)
			for i := range 4 {
				must.Get(b.Create(configMaps, configMap(fmt.Sprint(i))))(b)
			}
		}()
		started = time.Now()
		require.Equal(b, "105", b.list(podsPath, "resourceVersion=105").Metadata.ResourceVersion)
		require.Equal(b, time.Second, time.Since(started))
	})
	inBubble(t, testserver.Options{VersionWait: -1}, func(b *bench) {
		started := time.Now()
		b.refused(http.StatusGatewayTimeout, http.MethodGet, podsPath+"/a?resourceVersion=105", nil)
		require.Zero(b, time.Since(started))
	})
}

func TestContinueTokensAreConsistent(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(5)
		var names []string
		query := []string{"limit=2"}
		for page := 0; ; page++ {
			l := b.list(podsPath, query...)
			require.Equal(b, "105", l.Metadata.ResourceVersion)
			names = append(names, l.names()...)
			// Writes between the pages have later versions, so they do not appear.
			b.ok(http.MethodPost, podsPath, pod(fmt.Sprintf("a%d", page)))
			if page == 0 {
				require.EqualValues(b, 3, *l.Metadata.RemainingItemCount)
				b.ok(http.MethodDelete, podsPath+"/d", nil)
			}
			if l.Metadata.Continue == "" {
				break
			}
			query = []string{"limit=2", "continue=" + l.Metadata.Continue}
		}
		require.Equal(b, []string{"a", "b", "c", "d", "e"}, names)
		require.Equal(b, []string{"a", "a0", "a1", "a2", "b", "c", "e"}, b.list(podsPath).names())
	})
}

func TestContinueTokenRules(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(4)
		// With selectors, the answer has no remainingItemCount.
		l := b.list(podsPath, "limit=1", "fieldSelector=metadata.name!=a")
		require.Equal(b, []string{"b"}, l.names())
		require.Nil(b, l.Metadata.RemainingItemCount)
		require.NotEmpty(b, l.Metadata.Continue)
		// A full page has a continue token even if the selectors match no later item.
		l = b.list(podsPath, "limit=1", "fieldSelector=metadata.name=a")
		require.Equal(b, []string{"a"}, l.names())
		l = b.list(podsPath, "limit=1", "fieldSelector=metadata.name=a", "continue="+l.Metadata.Continue)
		require.Empty(b, l.Items)
		require.Empty(b, l.Metadata.Continue)
	})
}

func TestExpiredContinueToken(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(4)
		token := b.list(podsPath, "limit=2").Metadata.Continue
		b.ok(http.MethodPost, podsPath, pod("z"))
		b.Inject(faults.Fault{Effect: faults.Compact{}})
		status := b.refused(http.StatusGone, http.MethodGet, podsPath+queryOf("limit=2", "continue="+token), nil)
		require.Equal(b, metav1.StatusReasonExpired, status.Reason)
		require.NotEmpty(b, status.Continue)
		// The token in the answer continues in the present state.
		l := b.list(podsPath, "continue="+status.Continue)
		require.Equal(b, []string{"c", "d", "z"}, l.names())
		require.Equal(b, "105", l.Metadata.ResourceVersion)
	})
}

func TestHistoryIsBounded(t *testing.T) {
	inBubble(t, testserver.Options{History: 3}, func(b *bench) {
		b.fill(6)
		exact := func(version string) []string {
			return []string{"resourceVersion=" + version, "resourceVersionMatch=Exact"}
		}
		require.Equal(b, []string{"a", "b", "c"}, b.list(podsPath, exact("103")...).names())
		status := b.refused(http.StatusGone, http.MethodGet, podsPath+queryOf(exact("102")...), nil)
		require.Equal(b, metav1.StatusReasonExpired, status.Reason)
		// Each resource has its own history.
		require.Empty(b, b.list(mapsPath, exact("102")...).Items)
	})
}

func TestSelectors(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		create := func(namespace, name, node string, labels ...string) {
			p := pod(name, labels...)
			p["metadata"].(doc)["namespace"] = namespace
			p["spec"].(doc)["nodeName"] = node
			p["status"] = doc{"phase": "Running"}
			must.Get(b.Create(pods, p))(b)
		}
		create("a", "one", "n1", "app", "x")
		create("a", "two", "n2", "app", "y", "tier", "back")
		create("a-b", "three", "n1")
		create("b", "four", "", "app", "x")
		for _, row := range []struct{ path, query, want string }{
			{"/api/v1/pods", "", "three one two four"}, // "a-b/" sorts before "a/", as the keys in etcd
			{"/api/v1/namespaces/a/pods", "", "one two"},
			{"/api/v1/namespaces/c/pods", "", ""},
			{"/api/v1/pods", "labelSelector=app=x", "one four"},
			{"/api/v1/pods", "labelSelector=app in (x,y),tier", "two"},
			{"/api/v1/pods", "labelSelector=!app", "three"},
			{"/api/v1/pods", "fieldSelector=spec.nodeName=n1", "three one"},
			{"/api/v1/pods", "fieldSelector=spec.nodeName=", "four"},
			{"/api/v1/pods", "fieldSelector=status.phase!=Running", ""},
			{"/api/v1/pods", "fieldSelector=metadata.namespace=a,metadata.name!=one", "two"},
			{"/api/v1/namespaces/a/pods", "fieldSelector=spec.nodeName=n1&labelSelector=app=x", "one"},
		} {
			query := []string{}
			if row.query != "" {
				query = strings.Split(row.query, "&")
			}
			require.Equal(b, row.want, strings.Join(b.list(row.path, query...).names(), " "), "%s?%s", row.path, row.query)
		}
	})
}

// TestFieldsOfKinds compares missing fields with the values that kube-apiserver uses for selectors.
func TestFieldsOfKinds(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		for _, row := range []struct {
			path   string
			object doc
			fields string
		}{
			{"/api/v1/nodes", doc{}, "spec.unschedulable=false"},
			{podsPath, doc{"spec": doc{"hostNetwork": true}}, "spec.hostNetwork=true,status.phase=Pending"},
			{"/api/v1/namespaces/default/secrets", doc{}, "type=Opaque"},
			{"/api/v1/namespaces/default/services", doc{"spec": doc{"type": "NodePort"}}, "spec.type=NodePort,spec.clusterIP="},
			{"/apis/apps/v1/namespaces/default/replicasets", doc{}, "status.replicas=0"},
			{"/apis/batch/v1/namespaces/default/jobs", doc{}, "status.successful=0"},
			{
				"/api/v1/namespaces/default/events",
				doc{"source": doc{"component": "mill"}, "involvedObject": doc{"kind": "Pod"}, "reason": "Turned"},
				"source=mill,involvedObject.kind=Pod,reason=Turned",
			},
			{"/api/v1/namespaces/default/events", doc{"reportingComponent": "sluice"}, "source=sluice,reportingComponent=sluice"},
		} {
			row.object["metadata"] = doc{"generateName": "x-"}
			name := b.ok(http.MethodPost, row.path, row.object).GetName()
			require.Equal(b, []string{name}, b.list(row.path, "fieldSelector="+row.fields).names(), row.fields)
		}
		require.Len(b, b.list("/api/v1/namespaces", "fieldSelector=status.phase=Active").Items, 4)

		const jobs = "/apis/batch/v1/namespaces/default/jobs"
		b.ok(http.MethodPost, jobs, doc{"metadata": meta("j")})
		b.ok(http.MethodPatch, jobs+"/j/status", `{"status":{"succeeded":3}}`, "Content-Type", mergePatch)
		require.Equal(b, []string{"j"}, b.list(jobs, "fieldSelector=status.successful=3").names())
	})
}

func TestListItemsLikeKubeAPIServer(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Register(mills)
		b.fill(1)
		must.Get(b.Create(mills, doc{"metadata": doc{"name": "m", "namespace": "default"}, "spec": doc{"wheels": 2}}))(b)
		item := b.list(podsPath).Items[0]
		require.NotContains(b, item, "kind", "built-in types leave it out")
		require.NotContains(b, item, "apiVersion")
		l := b.list("/apis/leat.example/v1/mills")
		require.Equal(b, "MillList", l.Kind)
		require.Equal(b, "Mill", l.Items[0]["kind"])
		require.Equal(b, "leat.example/v1", l.Items[0]["apiVersion"])

		// The metadata come first, in the order of the Go types, so that a reader can stop early.
		body := string(b.do(http.MethodGet, podsPath+"/a", nil).body)
		require.Regexp(b, `^\{"kind":"Pod","apiVersion":"v1","metadata":\{"name":"a","namespace":"default","uid":"[^"]+",`+
			`"resourceVersion":"101","generation":1,"creationTimestamp":"2000-01-01T00:00:00Z"\},"spec":.*\}\n$`, body)

		// Custom resources and their lists are maps with sorted keys, so the version comes last.
		body = string(b.do(http.MethodGet, millsPath+"?limit=1", nil).body)
		require.Regexp(b, `^\{"apiVersion":"leat.example/v1","items":\[\{"apiVersion":"leat.example/v1","kind":"Mill","metadata":\{`+
			`"creationTimestamp":"2000-01-01T00:00:00Z","generation":1,"name":"m","namespace":"default","resourceVersion":"102","uid":"[^"]+"\},`+
			`"spec":\{"wheels":2\}\}\],"kind":"MillList","metadata":\{"continue":"","resourceVersion":"102"\}\}\n$`, body)
		must.Get(b.Create(mills, doc{"metadata": doc{"name": "n", "namespace": "default"}}))(b)
		l = b.list(millsPath, "limit=1")
		require.EqualValues(b, 1, *l.Metadata.RemainingItemCount)
		require.Equal(b, []string{"n"}, b.list(millsPath, "continue="+l.Metadata.Continue).names())
	})
}

func TestMetadataOnly(t *testing.T) {
	const one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	const many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	inBubble(t, testserver.Options{}, func(b *bench) {
		must.Get(b.Create(pods, pod("a", "app", "x")))(b)
		u := b.ok(http.MethodGet, podsPath+"/a", nil, "Accept", one)
		require.Equal(b, "PartialObjectMetadata", u.GetKind())
		require.Equal(b, "meta.k8s.io/v1", u.GetAPIVersion())
		require.Equal(b, map[string]string{"app": "x"}, u.GetLabels())
		require.Len(b, u.Object, 3)

		l := b.ok(http.MethodGet, podsPath, nil, "Accept", many+",application/json")
		require.Equal(b, "PartialObjectMetadataList", l.GetKind())
		require.Equal(b, "101", l.GetResourceVersion())
		item := l.Object["items"].([]any)[0].(doc)
		require.Equal(b, "PartialObjectMetadata", item["kind"])
		require.NotContains(b, item, "spec")

		// PartialObjectMetadata of the wrong shape is rejected even if plain JSON is the second choice.
		b.refused(http.StatusNotAcceptable, http.MethodGet, podsPath, nil, "Accept", one+",application/json")
		b.refused(http.StatusNotAcceptable, http.MethodGet, podsPath+"/a", nil, "Accept", many)

		w := b.watchAs(one, podsPath, "resourceVersion=0", "allowWatchBookmarks=true")
		defer w.close()
		e := must.Get(w.next())(b)
		require.Equal(b, "PartialObjectMetadata", e.Object["kind"])
		require.NotContains(b, e.Object, "spec")
		e = must.Get(w.next())(b)
		require.Equal(b, "PartialObjectMetadata", e.Object["kind"], "of the bookmark")
	})
}

func TestAccept(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		for accept, code := range map[string]int{
			"":                                    200,
			"*/*":                                 200,
			"application/*":                       406, // custom resources accept it
			"application/json":                    200,
			"application/yaml":                    406,
			"text/html, */*;q=.1":                 200,
			"application/vnd.kubernetes.protobuf": 406,
			"application/vnd.kubernetes.protobuf,application/json":                       200,
			"application/json;as=Table;g=meta.k8s.io;v=v7":                               406,
			"application/json;as=Table;g=meta.k8s.io;v=v7,application/json":              200,
			"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v7":               406,
			"application/json;stream=watch":                                              200,
			"application/json;drop=metadata.managedFields":                               200,
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1, */*": 200,
			"application/json;stream=other":                                              406,
		} {
			a := b.do(http.MethodGet, podsPath, nil, "Accept", accept)
			require.Equal(b, code, a.code, "%q", accept)
			require.Equal(b, "application/json", a.header.Get("Content-Type"))
			if code == http.StatusNotAcceptable {
				require.Equal(b, metav1.StatusReasonNotAcceptable, a.status(t).Reason)
			} else {
				require.Equal(b, "PodList", a.json(t)["kind"])
			}
		}
		b.Register(mills)
		require.Equal(b, 200, b.do(http.MethodGet, millsPath, nil, "Accept", "application/*").code)
	})
}

func TestDropManagedFields(t *testing.T) {
	const accept = "application/json;drop=metadata.managedFields,application/json"
	for _, honoured := range []bool{false, true} {
		inBubble(t, testserver.Options{ManagedFields: true, DropFields: honoured}, func(b *bench) {
			b.Register(mills)
			b.ok(http.MethodPost, millsPath, custom("Mill", "m", "spec", doc{"wheels": 1}))
			m := b.ok(http.MethodGet, millsPath+"/m", nil, "Accept", accept)
			require.Equal(b, honoured, m.GetManagedFields() == nil)
			require.Equal(b, "101", m.GetResourceVersion())
			w := b.watchAs(accept, millsPath, "resourceVersion=101") // the object of a DELETED event has another version
			defer w.close()
			require.NoError(b, b.Delete(mills, api.Key{Namespace: "default", Name: "m"}))
			e := must.Get(w.next())(b)
			require.Equal(b, "DELETED m@102", e.String())
			_, has := e.Object["metadata"].(doc)["managedFields"]
			require.Equal(b, honoured, !has)

			must.Get(b.Create(pods, pod("a", "app", "x")))(b)
			u := b.ok(http.MethodGet, podsPath+"/a", nil, "Accept", accept)
			require.Equal(b, honoured, u.GetManagedFields() == nil)
			require.Equal(b, "a", u.GetName())
			require.NotNil(b, u.Object["spec"])
			require.NotNil(b, b.ok(http.MethodGet, podsPath+"/a", nil).GetManagedFields())
			item := b.do(http.MethodGet, podsPath, nil, "Accept", accept).json(t)["items"].([]any)[0].(doc)
			_, has = item["metadata"].(doc)["managedFields"]
			require.Equal(b, honoured, !has)
		})
	}
}

func TestCompression(t *testing.T) {
	inBubble(t, testserver.Options{Compress: true}, func(b *bench) {
		for i := range 20 {
			must.Get(b.Create(configMaps, configMap(fmt.Sprintf("m%02d", i), "text", strings.Repeat("x", 8<<10))))(b)
		}
		raw := b.do(http.MethodGet, mapsPath, nil, "Accept-Encoding", "gzip")
		require.Equal(b, "gzip", raw.header.Get("Content-Encoding"))
		require.Less(b, len(raw.body), 100<<10)
		require.Len(b, b.list(mapsPath).Items, 20, "the client's transport decompresses")
		small := b.do(http.MethodGet, mapsPath+"?limit=1", nil, "Accept-Encoding", "gzip")
		require.Empty(b, small.header.Get("Content-Encoding"))
		must.Get(b.Create(configMaps, configMap("big", "text", strings.Repeat("x", 200<<10))))(b)
		one := b.do(http.MethodGet, mapsPath+"/big", nil, "Accept-Encoding", "gzip")
		require.Equal(b, "gzip", one.header.Get("Content-Encoding"))
		require.Less(b, len(one.body), 100<<10)

		w := b.watch(mapsPath)
		defer w.close()
		require.False(b, w.res.Uncompressed, "kube-apiserver compresses no watch")
		w.expect("ADDED big@121")
	})
}

func TestCompressedWatches(t *testing.T) {
	inBubble(t, testserver.Options{CompressWatches: true}, func(b *bench) {
		must.Get(b.Create(configMaps, configMap("m", "text", strings.Repeat("x", 200<<10))))(b)
		require.Empty(b, b.do(http.MethodGet, mapsPath, nil, "Accept-Encoding", "gzip").header.Get("Content-Encoding"))
		w := b.watch(mapsPath)
		defer w.close()
		require.True(b, w.res.Uncompressed, "the client's transport decompresses")
		w.expect("ADDED m@101")
		b.ok(http.MethodDelete, mapsPath+"/m", nil)
		w.expect("DELETED m@102")
	})
}

func TestListVersions(t *testing.T) {
	// The test creates pods a to e at 101 to 105 and deletes a at 106.
	const all, limited = "b c d e", "b c"
	for _, row := range []struct {
		query   string // without limit
		code    int
		version string
		items   string
		limited string // items with limit=2; empty means that the status code differs
	}{
		{"", 200, "106", all, limited},
		{"resourceVersion=0", 200, "106", all, all}, // the watch cache ignores the limit
		{"resourceVersion=0 resourceVersionMatch=NotOlderThan", 200, "106", all, all},
		{"resourceVersion=103 resourceVersionMatch=NotOlderThan", 200, "106", all, limited},
		{"resourceVersion=103 resourceVersionMatch=Exact", 200, "103", "a b c", "a b"},
		{"resourceVersion=100 resourceVersionMatch=Exact", 200, "100", "", ""},
		{"resourceVersion=106", 200, "106", all, limited},
		{"resourceVersion=99 resourceVersionMatch=Exact", 410, "", "", ""},
		{"resourceVersion=107", 504, "", "", ""},
		{"resourceVersion=107 resourceVersionMatch=Exact", 504, "", "", ""},
		{"resourceVersion=x", 400, "", "", ""},
		{"resourceVersionMatch=Exact", 422, "", "", ""},
		{"resourceVersion=0 resourceVersionMatch=Exact", 422, "", "", ""},
		{"resourceVersion=1 resourceVersionMatch=Sometimes", 422, "", "", ""},
		{"sendInitialEvents=true", 422, "", "", ""},
		{"limit=x", 400, "", "", ""},
		{"timeoutSeconds=x", 400, "", "", ""},
		{"continue=nonsense", 400, "", "", ""},
		{"fieldSelector=spec.color=red", 400, "", "", ""},
		{"fieldSelector=a", 400, "", "", ""},
		{"labelSelector=!!", 400, "", "", ""},
	} {
		t.Run(strings.ReplaceAll(row.query, "=", ":"), func(t *testing.T) {
			inBubble(t, testserver.Options{}, func(b *bench) {
				b.fill(5)
				require.NoError(b, b.Delete(pods, api.Key{Namespace: "default", Name: "a"}))
				query := strings.Fields(row.query)
				a := b.do(http.MethodGet, podsPath+queryOf(query...), nil)
				require.Equal(b, row.code, a.code, "%s", a.body)
				if row.code != http.StatusOK {
					a.status(t)
					return
				}
				l := b.list(podsPath, query...)
				require.Equal(b, "PodList", l.Kind)
				require.Equal(b, "v1", l.APIVersion)
				require.Equal(b, row.version, l.Metadata.ResourceVersion)
				require.Equal(b, row.items, strings.Join(l.names(), " "))
				require.Empty(b, l.Metadata.Continue)
				require.Nil(b, l.Metadata.RemainingItemCount)
				l = b.list(podsPath, append(query, "limit=2")...)
				require.Equal(b, row.limited, strings.Join(l.names(), " "))
				require.Equal(b, row.limited != row.items, l.Metadata.Continue != "")
			})
		})
	}
}
