package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
)

const (
	lowHalf     = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	asTable     = "application/json;as=Table;g=meta.k8s.io;v=v1"
	asMetadata  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	shardObject = 40 // objects of each resource
)

// shardedRequests are the selectors, queries and Accept headers of lists.
var shardedRequests = []struct{ selector, query, accept string }{
	{selector: lowHalf},
	{selector: "( " + lowHalf + "\n) // the lower half"},
	{selector: strings.ReplaceAll(lowHalf, "'", `"`)},
	{selector: lowHalf + " || shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')"},
	{selector: lowHalf + "||" + lowHalf},
	{selector: "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"},
	{selector: "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')"},
	{selector: lowHalf, query: "limit=3"},
	{selector: lowHalf, query: "resourceVersion=0"},
	{selector: lowHalf, accept: asTable},
	{selector: lowHalf, accept: asMetadata},
	{selector: "nonsense"},
	{selector: "nonsense", query: "watch=true&timeoutSeconds=1"},
	{selector: " "},
	{selector: lowHalf + " && " + lowHalf},
	{selector: "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')"},
	{selector: "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')"},
	{selector: "shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')"},
}

// verdict is what a server makes of a shardSelector.
type verdict struct {
	Code           int
	Reason, Prefix string // of a Status, up to the cause
	ShardInfo      string
	Cut            bool // the list does not have all objects
	Remaining      bool // the list says how many remain
}

// judge reads the answer to a list.
func judge(t *testing.T, code int, body []byte) (v verdict) {
	t.Helper()
	var answer struct {
		Reason, Message string
		Metadata        metav1.ListMeta
		Items, Rows     []any
	}
	v.Code = code
	if code == http.StatusOK && len(body) == 0 {
		return v // a watch without events
	}
	require.NoError(t, json.Unmarshal(body, &answer), "%s", body)
	if info := answer.Metadata.ShardInfo; info != nil {
		v.ShardInfo = info.Selector
	}
	v.Reason, _, _ = strings.Cut(answer.Reason, ":")
	v.Prefix, _, _ = strings.Cut(answer.Message, ":")
	n := len(answer.Items) + len(answer.Rows)
	v.Cut = n != shardObject
	v.Remaining = answer.Metadata.RemainingItemCount != nil
	return v
}

// TestShardedLists sends the same lists to kube-apiserver and to the test server, with and without the feature gate,
// and follows shards of both kinds of resources. Only lists of built-in types, as whole objects, have a shardInfo.
func TestShardedLists(t *testing.T) {
	gadgets := customResource(t, "Shardling")
	maps := newCollection(t, configMaps, `{"data":{"a":"b"}}`)
	for n := range shardObject {
		for _, r := range []api.Resource{configMaps, gadgets} {
			body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"shard-%d","labels":{"test":"shards"}}}`, r.GroupVersion(), r.Kind, n)
			must.Get(server.Must(t.Context(), http.MethodPost, (&collection{resource: r, namespace: maps.namespace}).path(), []byte(body)))(t)
		}
	}
	t.Cleanup(func() { restart(t) })
	for _, gate := range []bool{false, true} {
		t.Run(fmt.Sprint("gate ", gate), func(t *testing.T) {
			require.NoError(t, server.RestartAPIServer(t.Context(), fmt.Sprintf("--feature-gates=ShardedListAndWatch=%v", gate)))
			require.NoError(t, eventually(t.Context(), func() error { // the cache of custom resources is late
				_, err := server.Must(t.Context(), http.MethodGet, (&collection{resource: gadgets, namespace: maps.namespace}).path(), nil)
				return err
			}))
			compareShardedLists(t, gate, gadgets, maps.namespace)
			for _, r := range []api.Resource{configMaps, gadgets} {
				followHalves(t, gate, r, maps.namespace)
			}
		})
	}
}

// compareShardedLists compares kube-apiserver with the test server.
func compareShardedLists(t *testing.T, gate bool, gadgets api.Resource, namespace string) {
	local := testserver.New(testserver.Options{ShardedLists: gate})
	local.Register(gadgets)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = local.Run(ctx) }()
	for n := range shardObject {
		for _, r := range []api.Resource{configMaps, gadgets} {
			must.Get(local.Create(r, map[string]any{"metadata": map[string]any{
				"name": fmt.Sprint("shard-", n), "namespace": namespace, "labels": map[string]any{"test": "shards"},
			}}))(t)
		}
	}
	for _, r := range []api.Resource{configMaps, gadgets} {
		for _, request := range shardedRequests {
			q := must.Get(url.ParseQuery(request.query))(t)
			q.Set("shardSelector", request.selector)
			q.Set("labelSelector", "test=shards")
			path := (&collection{resource: r, namespace: namespace}).path() + "?" + q.Encode()
			get := func(base string, client *http.Client) verdict {
				req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil))(t)
				req.Header.Set("Accept", request.accept)
				if request.accept == "" {
					req.Header.Set("Accept", "application/json")
				}
				resp := must.Get(client.Do(req))(t)
				defer resp.Body.Close()
				body := must.Get(io.ReadAll(resp.Body))(t)
				code := resp.StatusCode
				if q.Has("watch") && code == http.StatusOK {
					body = nil
				}
				return judge(t, code, body)
			}
			want := get(server.URL(), server.HTTPClient(cluster.AdminToken))
			got := get(local.URL(), local.Client())
			require.Equal(t, want, got, "%s %q %s %s", r.Plural, request.selector, request.query, request.accept)
			t.Logf("%s %.60q %s %.40s: %+v", r.Plural, request.selector, request.query, request.accept, want)
		}
	}
}

// followHalves follows both halves of a resource.
func followHalves(t *testing.T, gate bool, r api.Resource, namespace string) {
	client := newClient(t, adminConfig())
	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
	total := 0
	for _, hashes := range []hashrange.Set{half, hashrange.All().Minus(half)} {
		from := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, r, namespace)
		source := shardedsource.New(from, hashrange.UID, hashes, shardedsource.Options{})
		i := informer.New(source, informer.Options[*metav1.PartialObjectMetadata]{Selector: api.Selector{Labels: "test=shards"}})
		stop := fixture.Start(t, i.Run)
		select {
		case <-i.Synced():
		case <-t.Context().Done():
		}
		for _, o := range i.Cache().List() {
			require.True(t, hashes.Contains(hashrange.Hash(o.UID)))
		}
		total += i.Cache().Len()
		status := source.Shard()
		require.Equal(t, gate, status.By == shardedsource.Server, "%v", status.Reason)
		require.Equal(t, gate, status.Dropped == 0)
		stop()
	}
	require.Equal(t, shardObject, total)
}
