package apiclient

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
)

type sharedPod struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

var sharedPods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

func newClient(t *testing.T) *Client {
	t.Helper()
	return must.Get(New(Config{Host: "http://h"}))(t)
}

// TestBytesOfAClientOfANamespace makes a client for each of 1,000 namespaces. A client with its own codec would take
// 10 KB and more.
func TestBytesOfAClientOfANamespace(t *testing.T) {
	const n = 1000
	c := newClient(t)
	views := make([]*PartialClient[*sharedPod], n+1)
	views[n] = NewPartial[*sharedPod](c, sharedPods, "")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		views[i] = NewPartial[*sharedPod](c, sharedPods, fmt.Sprint("namespace-", i))
	}
	runtime.ReadMemStats(&after)
	bytes := (after.TotalAlloc - before.TotalAlloc) / n
	t.Logf("%d bytes a view", bytes)
	require.Less(t, bytes, uint64(1<<10))
	runtime.KeepAlive(views)
}

func TestOneCodecForEachTypeAndResource(t *testing.T) {
	c := newClient(t)
	pods := NewPartial[*sharedPod](c, sharedPods, "a")
	require.Same(t, pods.codec, NewTyped[*sharedPod](c, sharedPods, "b").codec)
	others := sharedPods
	others.Plural = "others"
	require.NotSame(t, pods.codec, NewPartial[*sharedPod](c, others, "a").codec)
	require.NotSame(t, pods.codec, NewPartial[*sharedPod](newClient(t), sharedPods, "a").codec, "another client may have other limits")
	require.NotNil(t, NewPartial[*metav1.PartialObjectMetadata](c, sharedPods, "a").codec)
}

// TestACodecIsFreedWithItsLastClient drops all clients and then makes another one.
func TestACodecIsFreedWithItsLastClient(t *testing.T) {
	c := newClient(t)
	former := weak.Make(NewPartial[*sharedPod](c, sharedPods, "a").codec)
	for range 10 {
		runtime.GC()
	}
	require.Nil(t, former.Value(), "the client holds a codec that nothing uses")
	again := NewPartial[*sharedPod](c, sharedPods, "a")
	require.Same(t, again.codec, NewPartial[*sharedPod](c, sharedPods, "b").codec)
}

func TestClientsAreMadeConcurrently(t *testing.T) {
	c := newClient(t)
	views := make([]*PartialClient[*sharedPod], 8)
	var all sync.WaitGroup
	for i := range views {
		all.Go(func() { views[i] = NewPartial[*sharedPod](c, sharedPods, "a") })
	}
	all.Wait()
	for _, v := range views {
		require.Same(t, views[0].codec, v.codec)
	}
}

// TestManyCodecsShareTables makes codecs until they have no tables of their own.
func TestManyCodecsShareTables(t *testing.T) {
	c := newClient(t)
	for range ownTables {
		require.Nil(t, c.codecOptions().Tables)
	}
	shared := c.codecOptions().Tables
	require.NotNil(t, shared)
	require.Same(t, shared, c.codecOptions().Tables)
	require.Nil(t, newClient(t).codecOptions().Tables)
}
