package testserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

const (
	aggregatedV2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// everyDiscovery is the Accept header of common clients: both versions of aggregated discovery, and the plain
	// documents.
	everyDiscovery = aggregatedV2 + ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)

// TestAggregatedDiscovery compares with the answers of kube-apiserver 1.37. There, built-in resources omit the group
// and version of their own kind.
func TestAggregatedDiscovery(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.Define(testserver.Definition{
			Resource: mills, Versions: []string{"v1beta1"}, Singular: "grinder", ShortNames: []string{"ml"}, Categories: []string{"all"},
		})
		get := func(path string) doc {
			a := b.do(http.MethodGet, path, nil, "Accept", everyDiscovery)
			require.Equal(b, 200, a.code)
			require.Equal(b, aggregatedV2, a.header.Get("Content-Type"))
			require.Equal(b, "Accept", a.header.Get("Vary"))
			return a.json(t)
		}
		core := get("/api")
		require.Equal(b, "APIGroupDiscoveryList apidiscovery.k8s.io/v2", core["kind"].(string)+" "+core["apiVersion"].(string))
		require.Len(b, core["items"], 1)
		require.Equal(b, doc{}, core["items"].([]any)[0].(doc)["metadata"])
		pods := resourceIn(core, "", "v1", "pods")
		require.Equal(b, doc{"group": "", "version": "", "kind": "Pod"}, pods["responseKind"])
		require.Equal(b, "Namespaced pod", pods["scope"].(string)+" "+pods["singularResource"].(string))
		require.Equal(b, []any{"po"}, pods["shortNames"])
		require.Equal(b, []any{"all"}, pods["categories"])
		require.Equal(b, doc{
			"subresource": "eviction", "responseKind": doc{"group": "policy", "version": "v1", "kind": "Eviction"}, "verbs": []any{"create"},
		}, subresourceIn(pods, "eviction"))
		require.Equal(b, "Cluster", resourceIn(core, "", "v1", "nodes")["scope"])
		require.NotContains(b, resourceIn(core, "", "v1", "configmaps"), "subresources")

		groups := get("/apis")
		require.Len(b, groups["items"], 6)
		grinder := resourceIn(groups, "leat.example", "v1beta1", "mills")
		require.Equal(b, doc{"group": "leat.example", "version": "v1beta1", "kind": "Mill"}, grinder["responseKind"])
		require.Equal(b, grinder["responseKind"], subresourceIn(grinder, "status")["responseKind"])
		require.Equal(b, "grinder", grinder["singularResource"])
		require.NotNil(b, resourceIn(groups, "leat.example", "v1", "mills"))
		require.Nil(b, resourceIn(groups, "apps", "v1", "mills"))
	})
}

func resourceIn(list doc, group, version, name string) doc {
	for _, g := range list["items"].([]any) {
		if have, _ := g.(doc)["metadata"].(doc)["name"].(string); have != group {
			continue
		}
		for _, v := range g.(doc)["versions"].([]any) {
			for _, r := range v.(doc)["resources"].([]any) {
				if v.(doc)["version"] == version && v.(doc)["freshness"] == "Current" && r.(doc)["resource"] == name {
					return r.(doc)
				}
			}
		}
	}
	return nil
}

func subresourceIn(resource doc, name string) doc {
	for _, s := range resource["subresources"].([]any) {
		if s.(doc)["subresource"] == name {
			return s.(doc)
		}
	}
	return nil
}

func TestAggregatedDiscoveryIsSentOnce(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		first := b.do(http.MethodGet, "/apis", nil, "Accept", everyDiscovery)
		tag := first.header.Get("ETag")
		require.Regexp(b, `^"[0-9A-F]{128}"$`, tag)
		again := b.do(http.MethodGet, "/apis", nil, "Accept", everyDiscovery, "If-None-Match", tag)
		require.Equal(b, 304, again.code)
		require.Empty(b, again.body)
		require.Equal(b, tag, again.header.Get("ETag"))

		b.Register(mills)
		changed := b.do(http.MethodGet, "/apis", nil, "Accept", everyDiscovery, "If-None-Match", tag)
		require.Equal(b, 200, changed.code)
		require.NotEqual(b, tag, changed.header.Get("ETag"))
		core := b.do(http.MethodGet, "/api", nil, "Accept", everyDiscovery)
		require.NotEqual(b, tag, core.header.Get("ETag"))
	})
}

func TestAggregatedDiscoveryNeedsAccept(t *testing.T) {
	const old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	for _, tc := range []struct {
		accept string
		none   bool
		want   string // the kind of the answer of /apis, or a status code
	}{
		{everyDiscovery, false, "APIGroupDiscoveryList"},
		{everyDiscovery, true, "APIGroupList"},
		{aggregatedV2, false, "APIGroupDiscoveryList"},
		{aggregatedV2, true, "406"},
		{old + ",application/json", false, "APIGroupList"},
		{old, false, "406"},
		{"application/json", false, "APIGroupList"},
		{"application/json," + aggregatedV2, false, "APIGroupList"},
		{"application/json;q=0.5," + aggregatedV2, false, "APIGroupDiscoveryList"},
		{"application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", false, "APIGroupList"},
		{"", false, "APIGroupList"},
	} {
		inBubble(t, testserver.Options{NoAggregatedDiscovery: tc.none}, func(b *bench) {
			a := b.do(http.MethodGet, "/apis", nil, "Accept", tc.accept)
			if tc.want == "406" {
				require.Equal(b, 406, a.code, tc.accept)
				return
			}
			require.Equal(b, tc.want, a.json(t)["kind"], tc.accept)
			require.Equal(b, tc.want == "APIGroupDiscoveryList", strings.Contains(a.header.Get("Content-Type"), "as="))
			require.Equal(b, "APIGroup", b.do(http.MethodGet, "/apis/apps", nil, "Accept", everyDiscovery).json(t)["kind"], "only the roots are aggregated")
			require.Contains(b, b.do(http.MethodGet, "/version", nil, "Accept", everyDiscovery).json(t), "gitVersion")
		})
	}
}
