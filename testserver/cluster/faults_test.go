package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/faults"
)

var mapsResource = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// seen returns what a client with a content type lists, and what its watch then gets for three new objects and a
// change of the first, while a fault is active. The last line says how the watch ended or that it was still open.
func seen(t *testing.T, contentType string, fault faults.Fault) []string {
	var out []string
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{})
		writer := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps("default")
		config := c.Config()
		config.ContentType, config.UserAgent = contentType, "reader"
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		put := func(name string) {
			must.Get(writer.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"mill": "x"}}, Data: map[string]string{"k": name},
			}, metav1.CreateOptions{}))(t)
		}
		put("a")
		put("b")
		fault.Match.Resource, fault.Match.UserAgent = "configmaps", "reader"
		i := c.Server.Inject(fault)
		list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "mill"})
		if err != nil {
			out = append(out, "the list cannot be decoded")
		} else {
			for _, m := range list.Items {
				out = append(out, fmt.Sprint("item ", m.Name, m.Data))
			}
		}
		events, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "mill", ResourceVersion: c.Server.ResourceVersion()})
		require.NoError(t, err)
		defer events.Stop()
		for _, name := range []string{"c", "d", "e"} {
			put(name)
		}
		_, err = c.Server.Edit(mapsResource, api.Key{Namespace: "default", Name: "c"}, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"mill": "y"}) })
		require.NoError(t, err)
		for open := true; open; {
			select {
			case event, ok := <-events.ResultChan():
				if m, isMap := event.Object.(*corev1.ConfigMap); isMap {
					out = append(out, fmt.Sprint(event.Type, " ", m.Name, m.Data))
				} else if ok {
					out = append(out, string(event.Type))
				}
				open = ok
				if !ok {
					out = append(out, "ended")
				}
			case <-time.After(time.Second):
				out, open = append(out, "open"), false
			}
		}
		out = append(out, fmt.Sprint("seen ", i.Seen()))
	})
	return out
}

// TestFaultsInProtobuf requires that each fault on a frame or an item does the same to a client of protobuf as to one
// of JSON.
func TestFaultsInProtobuf(t *testing.T) {
	items := faults.Match{Frames: []watch.EventType{faults.Item}}
	for _, fault := range []faults.Fault{
		{Effect: faults.Drop{}, Skip: 1, Times: 1},
		{Effect: faults.Drop{}, Match: items, Times: 1},
		{Effect: faults.Duplicate{}, Skip: 1, Times: 1},
		{Effect: faults.Duplicate{}, Match: items},
		{Effect: faults.Hold{Frames: 2}, Times: 1},
		{Effect: faults.Malform{}, Match: faults.Match{Frames: []watch.EventType{watch.Added}}, Skip: 1, Times: 1},
		{Effect: faults.Malform{}, Match: items, Skip: 1},
		{Effect: faults.CutFrame{At: 20}, Skip: 1},
		{Effect: faults.EndWatch{Error: &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}}, Skip: 2},
	} {
		t.Run(fmt.Sprintf("%T%v", fault.Effect, fault.Match.Frames), func(t *testing.T) {
			want := seen(t, jsonType, fault)
			require.NotContains(t, want, "seen 0")
			require.Equal(t, want, seen(t, protobufType, fault))
		})
	}
}

// TestMalformInProtobuf requires that a Mangle function gets the message of the object, and that its result is sent.
func TestMalformInProtobuf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{})
		config := c.Config()
		config.ContentType = protobufType
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		rename := func(encoded []byte) []byte {
			var m corev1.ConfigMap
			require.NoError(t, m.Unmarshal(encoded))
			m.Data = map[string]string{"k": "mangled"}
			encoded = must.Get(m.Marshal())(t)
			return encoded
		}
		events, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: c.Server.ResourceVersion(), FieldSelector: "metadata.name=a"})
		require.NoError(t, err)
		defer events.Stop()
		c.Server.Inject(faults.Fault{Match: faults.Match{Resource: "configmaps", Name: "a"}, Effect: faults.Malform{Mangle: rename}})
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		event := <-events.ResultChan()
		require.Equal(t, "mangled", event.Object.(*corev1.ConfigMap).Data["k"])
		c.Server.Heal()
		c.Server.Inject(faults.Fault{
			Match:  faults.Match{Resource: "configmaps", Name: "a", Frames: []watch.EventType{faults.Item}},
			Effect: faults.Malform{Mangle: rename},
		})
		list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a"})
		require.NoError(t, err)
		require.Equal(t, "mangled", list.Items[0].Data["k"])
	})
}

// TestEndlessListsInProtobuf reads more than the list has.
func TestEndlessListsInProtobuf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{})
		c.Server.Inject(faults.Fault{Match: faults.Match{Resource: "namespaces"}, Effect: faults.EndlessList{}})
		for _, kind := range []string{protobufType, "application/yaml"} {
			r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, c.Server.URL()+"/api/v1/namespaces", nil))(t)
			r.Header.Set("Accept", kind)
			answer := must.Get(c.Server.Client().Do(r))(t)
			must.Get(io.ReadFull(answer.Body, make([]byte, 1<<20)))(t)
			require.NoError(t, answer.Body.Close())
		}
	})
}

// TestDropManagedFields asks for objects without managedFields in every media type and form.
func TestDropManagedFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{Server: testserver.Options{DropFields: true}})
		must.Get(kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{}))(t)
		get := func(path, accept string) []byte {
			r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, c.Server.URL()+path, nil))(t)
			r.Header.Set("Accept", accept)
			answer := must.Get(c.Server.Client().Do(r))(t)
			defer answer.Body.Close()
			body := must.Get(io.ReadAll(answer.Body))(t)
			require.Equal(t, 200, answer.StatusCode, "%s", body)
			return body
		}
		const object, list = "/api/v1/namespaces/default/configmaps/a", "/api/v1/namespaces/default/configmaps"
		for _, kind := range []string{jsonType, protobufType, "application/yaml"} {
			for _, path := range []string{object, list, list + "?watch=1&timeoutSeconds=1"} {
				if kind == "application/yaml" && len(path) > len(object) {
					continue // YAML is not streamed
				}
				require.False(t, bytes.Contains(get(path, kind+";drop=metadata.managedFields"), []byte("f:data")), "%s %s", kind, path)
				require.True(t, bytes.Contains(get(path, kind), []byte("f:data")), "%s %s", kind, path)
			}
		}
		var table metav1.Table
		require.NoError(t, json.Unmarshal(get(list, jsonType+";as=Table;g=meta.k8s.io;v=v1;drop=metadata.managedFields"), &table))
		require.NotContains(t, string(table.Rows[0].Object.Raw), "f:data")
	})
}

// TestListsDoNotStopWriters writes while a list is being encoded: the fault keeps it at its first item.
func TestListsDoNotStopWriters(t *testing.T) {
	for _, contentType := range []string{jsonType, protobufType} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			c := cluster.Start(t, cluster.Options{})
			config := c.Config()
			config.ContentType = contentType
			client := kubernetes.NewForConfigOrDie(config).CoreV1()
			reached, written := make(chan struct{}), make(chan struct{})
			c.Server.Inject(faults.Fault{
				Match: faults.Match{Resource: "namespaces", Frames: []watch.EventType{faults.Item}}, Times: 1,
				Effect: faults.Malform{Mangle: func(item []byte) []byte {
					close(reached)
					<-written
					return item
				}},
			})
			listed := make(chan *corev1.NamespaceList)
			go func() {
				list, _ := client.Namespaces().List(ctx, metav1.ListOptions{})
				listed <- list
			}()
			<-reached
			created, err := client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = client.Namespaces().Get(ctx, created.Name, metav1.GetOptions{})
			require.NoError(t, err)
			close(written)
			require.Len(t, (<-listed).Items, 4, "the list has the state at its version")
		})
	}
}
