package server

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/leatproject/leat/internal/fixture/must"
)

const uidField = "object.metadata.uid"

// shardOf returns a shardSelector of some ranges, as text and for a query.
func shardOf(bounds ...string) (s sharding.Selector, query string) {
	var ranges []sharding.ShardRangeRequirement
	for i := 0; i < len(bounds); i += 2 {
		ranges = append(ranges, sharding.ShardRangeRequirement{Key: uidField, Start: bounds[i], End: bounds[i+1]})
	}
	s = sharding.NewSelector(ranges...)
	return s, "&shardSelector=" + url.QueryEscape(s.String())
}

// matching returns the names of the pods that Kubernetes' own selector selects.
func matching(t *testing.T, s sharding.Selector, pods []corev1.Pod) (names []string) {
	t.Helper()
	for i := range pods {
		match := must.Get(s.Matches(&pods[i]))(t)
		if match {
			names = append(names, pods[i].Name)
		}
	}
	return names
}

func namesOf(pods []corev1.Pod) (names []string) {
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func TestShards(t *testing.T) {
	s := startWith(t, Options{Objects: objects, Shards: true})
	for _, contentType := range []string{jsonType, protobufType} {
		whole := relisted(t, s, contentType)
		require.Len(t, whole.Items, objects)
		require.Nil(t, whole.ShardInfo)
		for _, bounds := range [][]string{
			{"0x0000000000000000", "0x3333333333333333"},
			{"0x3333333333333333", "0x10000000000000000"},
			{"0x0000000000000000", "0x2000000000000000", "0xe000000000000000", "0x10000000000000000"},
			{"0x0000000000000000", "0x0000000000000001"},
		} {
			selector, query := shardOf(bounds...)
			want := matching(t, selector, whole.Items)
			require.Less(t, len(want), objects)
			list := func(query string) *corev1.PodList {
				content := must.Get(io.ReadAll(get(t, s, query, contentType).Body))(t)
				return decode(t, contentType, content).(*corev1.PodList)
			}
			part := list(query)
			require.Equal(t, want, namesOf(part.Items))
			require.Equal(t, whole.ResourceVersion, part.ResourceVersion)
			require.Equal(t, &metav1.ShardInfo{Selector: selector.String()}, part.ShardInfo)

			var paged []string
			for token := "0"; token != ""; {
				part := list("limit=3&continue=" + token + query)
				require.NotNil(t, part.ShardInfo)
				require.Nil(t, part.RemainingItemCount, "as in kube-apiserver")
				paged, token = append(paged, namesOf(part.Items)...), part.Continue
			}
			require.Equal(t, want, paged)

			content := must.Get(io.ReadAll(get(t, s, query, contentType+metadataList).Body))(t)
			metadata := decode(t, contentType, content).(*metav1.PartialObjectMetadataList)
			require.Len(t, metadata.Items, len(want))
			require.Nil(t, metadata.ShardInfo, "as in kube-apiserver")
		}
	}
	whole := slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.Cut })
	require.Len(t, whole, 2, "the requests without a shardSelector")
}

func TestWatchesOfShards(t *testing.T) {
	s := startWith(t, Options{Objects: objects, Shards: true})
	selector, query := shardOf("0x0000000000000000", "0x3333333333333333")
	for _, contentType := range []string{jsonType, protobufType} {
		whole := relisted(t, s, contentType)
		want := matching(t, selector, whole.Items)
		require.NotEmpty(t, want)
		r := bufio.NewReader(get(t, s, "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"+query, contentType).Body)
		for _, name := range want {
			e := read(t, r, contentType)
			require.Equal(t, "ADDED", e.kind)
			require.Equal(t, name, e.object.(metav1.Object).GetName())
		}
		e := read(t, r, contentType)
		require.Equal(t, "BOOKMARK", e.kind)
		require.Equal(t, whole.ResourceVersion, versionOf(t, e.object))

		plain := bufio.NewReader(get(t, s, "watch=true&resourceVersion="+whole.ResourceVersion+query, contentType).Body)
		everything := make([]int, objects)
		for i := range everything {
			everything[i] = i
		}
		s.Change(everything...)
		changed := relisted(t, s, contentType)
		byVersion := map[string]string{}
		for _, pod := range changed.Items {
			byVersion[pod.ResourceVersion] = pod.Name
		}
		for range want {
			for _, watch := range []*bufio.Reader{r, plain} {
				e := read(t, watch, contentType)
				require.Equal(t, "MODIFIED", e.kind)
				require.Contains(t, want, e.object.(metav1.Object).GetName())
				require.Equal(t, byVersion[versionOf(t, e.object)], e.object.(metav1.Object).GetName())
			}
		}
		s.Expire()
		for _, watch := range []*bufio.Reader{r, plain} {
			e := read(t, watch, contentType)
			require.Equal(t, "ERROR", e.kind, "no event of another shard precedes it")
			require.IsType(t, &metav1.Status{}, e.object)
		}
	}
}

func TestShardSelectorsThatAreNotObeyed(t *testing.T) {
	_, query := shardOf("0x0000000000000000", "0x0000000000000001")
	ignoring := start(t)
	content := must.Get(io.ReadAll(get(t, ignoring, query, protobufType).Body))(t)
	pods := decode(t, protobufType, content).(*corev1.PodList)
	require.Len(t, pods.Items, objects)
	require.Nil(t, pods.ShardInfo)
	require.False(t, ignoring.Requests()[0].Cut)

	s := startWith(t, Options{Objects: objects, Shards: true})
	for _, selector := range []string{
		"nonsense", "shardRange(object.metadata.namespace, '0x0000000000000000', '0x0000000000000001')",
		"shardRange(object.metadata.uid, '0x0000000000000001', '0x0000000000000001')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000')",
	} {
		answer := must.Get(http.Get(s.URL() + "/api/v1/pods?shardSelector=" + url.QueryEscape(selector)))(t)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusNotFound, answer.StatusCode, selector)
	}
}
