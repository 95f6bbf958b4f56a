package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// thirds are three disjoint sets that together have all hashes.
var thirds = [...]hashrange.Set{
	hashrange.NewSet(hashrange.Range{To: 0x5555 << 48}),
	hashrange.NewSet(hashrange.Range{From: 0x5555 << 48, To: 0xaaaa << 48}),
	hashrange.NewSet(hashrange.Range{From: 0xaaaa << 48}),
}

// TestShards lists, watches and deletes one of three shards, by UID and by namespace. Together the shards have each
// object once. Only lists of built-in types say what they were cut by.
func TestShards(t *testing.T) {
	for _, field := range []hashrange.Field{hashrange.UID, hashrange.Namespace} {
		inBubble(t, testserver.Options{ShardedLists: true, BookmarkInterval: -1}, func(b *bench) {
			b.Register(mills)
			var everything []string
			for n := range 60 {
				for r, object := range map[api.Resource]doc{pods: pod(fmt.Sprint("p", n)), mills: custom("Mill", fmt.Sprint("m", n))} {
					object["metadata"].(doc)["namespace"] = fmt.Sprint("n", n%7, "-of-many")
					must.Get(b.Create(r, object))(b)
				}
				everything = append(everything, fmt.Sprint("p", n))
			}
			var all []string
			for _, part := range thirds {
				selector := part.Selector(field)
				shard := "shardSelector=" + selector
				l := b.list("/api/v1/pods", shard)
				require.NotEmpty(b, l.Items)
				require.Equal(b, &metav1.ShardInfo{Selector: selector}, shardInfo(b, "/api/v1/pods", shard, ""))
				all = append(all, l.names()...)

				path := "/apis/" + mills.Group + "/" + mills.Version + "/" + mills.Plural
				require.Less(b, len(b.list(path, shard).Items), 60)
				require.Nil(b, shardInfo(b, path, shard, ""))
				require.Nil(b, shardInfo(b, "/api/v1/pods", shard, "application/json;as=Table;g=meta.k8s.io;v=v1"))
				require.Nil(b, shardInfo(b, "/api/v1/pods", shard, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"))

				first := b.list("/api/v1/pods", shard, "limit=1")
				require.Len(b, first.Items, 1)
				require.NotEmpty(b, first.Metadata.Continue)
				require.Nil(b, first.Metadata.RemainingItemCount, "it is not known")
				rest := b.list("/api/v1/pods", shard, "continue="+first.Metadata.Continue)
				require.Equal(b, l.names(), append(first.names(), rest.names()...))

				w := b.watch("/api/v1/pods", shard, "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true")
				for range l.Items {
					e := must.Get(w.next())(b)
					require.Contains(b, l.names(), e.Object["metadata"].(doc)["name"])
				}
				e := must.Get(w.next())(b)
				require.Equal(b, "BOOKMARK", e.Type)
				w.close()
			}
			require.ElementsMatch(b, everything, all)

			third := "shardSelector=" + thirds[1].Selector(field)
			gone := b.list("/api/v1/pods", third).names()
			for n := range 7 {
				b.ok(http.MethodDelete, fmt.Sprint("/api/v1/namespaces/n", n, "-of-many/pods")+queryOf(third), doc{"gracePeriodSeconds": 0})
			}
			require.Len(b, b.list("/api/v1/pods").Items, 60-len(gone))
		})
	}
}

// shardInfo returns what the list at a path says about its shardSelector.
func shardInfo(b *bench, path, shard, accept string) *metav1.ShardInfo {
	b.Helper()
	var headers []string
	if accept != "" {
		headers = []string{"Accept", accept}
	}
	metadata := b.do(http.MethodGet, path+queryOf(shard), nil, headers...).json(b.T)["metadata"].(doc)
	info, ok := metadata["shardInfo"].(doc)
	if !ok {
		return nil
	}
	return &metav1.ShardInfo{Selector: info["selector"].(string)}
}

// TestShardWatch follows a shard. An object keeps its UID, so it never moves.
func TestShardWatch(t *testing.T) {
	inBubble(t, testserver.Options{ShardedLists: true, BookmarkInterval: -1}, func(b *bench) {
		half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
		w := b.watch("/api/v1/pods", "shardSelector="+half.Selector(hashrange.UID), "resourceVersion=100")
		defer w.close()
		var want []string
		for n := range 20 {
			name := fmt.Sprint("p", n)
			created := must.Get(b.Create(pods, pod(name)))(b)
			if half.Contains(hashrange.Hash(created.GetUID())) {
				want = append(want, name)
			}
		}
		require.NotEmpty(b, want)
		require.Less(b, len(want), 20)
		for _, name := range want {
			e := must.Get(w.next())(b)
			require.Equal(b, name, e.Object["metadata"].(doc)["name"])
		}
	})
}

// TestInvalidShardSelectors compares answers with those that kube-apiserver gives; e2e compares the texts.
func TestInvalidShardSelectors(t *testing.T) {
	inBubble(t, testserver.Options{ShardedLists: true}, func(b *bench) {
		for _, query := range []string{"", "watch=true"} {
			status := b.refused(500, http.MethodGet, "/api/v1/pods"+queryOf(strings.Fields("shardSelector=nonsense "+query)...), nil)
			require.Empty(b, status.Reason)
			require.Contains(b, status.Message, "invalid shard selector: ")
		}
		b.list("/api/v1/pods", "shardSelector=")
	})
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(3)
		require.Len(b, b.list("/api/v1/pods", "shardSelector=nonsense").Items, 3, "it is ignored")
		require.Nil(b, shardInfo(b, "/api/v1/pods", "shardSelector=nonsense", ""))
	})
}
