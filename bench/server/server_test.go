package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

const objects = 50

var (
	set    = load.NewSet(load.Seed, 20)
	scheme = newScheme()
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
	metadataOnly = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	metav1.AddToGroupVersion(s, metav1.SchemeGroupVersion)
	if err := metav1.AddMetaToScheme(s); err != nil {
		panic(err)
	}
	return s
}

func start(t *testing.T) *Server {
	t.Helper()
	return startWith(t, Options{Objects: objects})
}

func startWith(t *testing.T, o Options) *Server {
	t.Helper()
	s := must.Get(New(set, o))(t)
	fixture.Start(t, s.Run)
	return s
}

func get(t *testing.T, s *Server, query, accept string) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v1/pods?"+query, http.NoBody))(t)
	r.Header.Set("Accept", accept)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	t.Cleanup(func() { _ = answer.Body.Close() })
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return answer
}

// decode decodes an answer with Kubernetes' own decoder.
func decode(t *testing.T, contentType string, content []byte) runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	if contentType == jsonType {
		require.True(t, json.Valid(content))
	} else {
		decoder = protobuf.NewSerializer(scheme, scheme)
	}
	object, _, err := decoder.Decode(content, nil, nil)
	require.NoError(t, err)
	return object
}

type event struct {
	kind   string
	object runtime.Object
}

// read reads one event of a watch.
func read(t *testing.T, r *bufio.Reader, contentType string) event {
	t.Helper()
	var e metav1.WatchEvent
	if contentType == jsonType {
		line := must.Get(r.ReadBytes('\n'))(t)
		require.NoError(t, json.Unmarshal(line, &e))
		return event{e.Type, decode(t, jsonType, e.Object.Raw)}
	}
	var size [4]byte
	must.Get(io.ReadFull(r, size[:]))(t)
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	must.Get(io.ReadFull(r, frame))(t)
	require.NoError(t, e.Unmarshal(frame))
	return event{e.Type, decode(t, contentType, e.Object.Raw)}
}

func versionOf(t *testing.T, o runtime.Object) string {
	t.Helper()
	switch o := o.(type) {
	case metav1.Object:
		return o.GetResourceVersion()
	case metav1.ListInterface:
		return o.GetResourceVersion()
	default:
		t.Fatalf("%T has no version", o)
		return ""
	}
}

func TestListsAndWatches(t *testing.T) {
	s := start(t)
	s.Change(3)
	for _, contentType := range []string{jsonType, protobufType} {
		require.Equal(t, contentType, get(t, s, "", contentType).Header.Get("Content-Type"))
		pods := relisted(t, s, contentType)
		require.Len(t, pods.Items, objects)
		require.Equal(t, strconv.FormatUint(s.version(len(s.Sent())), 10), pods.ResourceVersion)
		require.True(t, slices.IsSortedFunc(pods.Items, func(a, b corev1.Pod) int {
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		}), "the order of keys in etcd")
		require.Equal(t, "1000000003", pods.Items[slices.Index(s.order, 2)].ResourceVersion)
		changed := pods.Items[slices.Index(s.order, 3)]
		require.Equal(t, "1000000051", changed.ResourceVersion)
		require.Contains(t, changed.Status.Conditions[2].Message, "000000001")

		content := must.Get(io.ReadAll(get(t, s, "", contentType+metadataList).Body))(t)
		metadata := decode(t, contentType, content).(*metav1.PartialObjectMetadataList)
		require.Len(t, metadata.Items, objects)
		require.Equal(t, pods.Items[7].ObjectMeta, metadata.Items[7].ObjectMeta)

		for _, accept := range []string{contentType, contentType + metadataOnly} {
			r := bufio.NewReader(get(t, s, "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", accept).Body)
			for i := range objects {
				e := read(t, r, contentType)
				require.Equal(t, "ADDED", e.kind)
				require.Equal(t, pods.Items[i].Name, e.object.(metav1.Object).GetName())
				require.Equal(t, pods.Items[i].ResourceVersion, versionOf(t, e.object))
				require.Equal(t, accept != contentType, e.object.GetObjectKind().GroupVersionKind().Kind == "PartialObjectMetadata")
			}
			e := read(t, r, contentType)
			require.Equal(t, "BOOKMARK", e.kind)
			require.Equal(t, pods.ResourceVersion, versionOf(t, e.object))
			require.Equal(t, map[string]string{metav1.InitialEventsAnnotationKey: "true"}, e.object.(metav1.Object).GetAnnotations())

			s.Change(9)
			e = read(t, r, contentType)
			require.Equal(t, "MODIFIED", e.kind, "what the initial events have shown does not come again")
			require.Equal(t, pods.Items[slices.Index(s.order, 9)].Name, e.object.(metav1.Object).GetName())
			pods = relisted(t, s, contentType)
		}
	}
}

func relisted(t *testing.T, s *Server, contentType string) *corev1.PodList {
	t.Helper()
	content := must.Get(io.ReadAll(get(t, s, "", contentType).Body))(t)
	return decode(t, contentType, content).(*corev1.PodList)
}

func TestPages(t *testing.T) {
	s := start(t)
	for _, contentType := range []string{jsonType, protobufType} {
		var names []string
		for token := "0"; token != ""; {
			content := must.Get(io.ReadAll(get(t, s, "limit=20&continue="+token, contentType).Body))(t)
			pods := decode(t, contentType, content).(*corev1.PodList)
			require.LessOrEqual(t, len(pods.Items), 20)
			for _, pod := range pods.Items {
				names = append(names, pod.Name)
			}
			if token = pods.Continue; token != "" {
				require.EqualValues(t, objects-len(names), *pods.RemainingItemCount)
			}
		}
		require.Len(t, names, objects)

		content := must.Get(io.ReadAll(get(t, s, "limit=20&resourceVersion=0", contentType).Body))(t)
		require.Len(t, decode(t, contentType, content).(*corev1.PodList).Items, objects, "a watch cache does not page")
	}
}

func TestWatchFromAVersion(t *testing.T) {
	s := start(t)
	s.Change(1, 2, 3)
	for _, contentType := range []string{jsonType, protobufType} {
		r := bufio.NewReader(get(t, s, "watch=1&resourceVersion=1000000051", contentType).Body)
		before := len(s.Sent())
		for i := range before - 1 {
			require.Equal(t, fmt.Sprint(1000000052+i), versionOf(t, read(t, r, contentType).object))
		}
		s.Change(4, 5)
		for i := range 2 {
			e := read(t, r, contentType)
			require.Equal(t, "MODIFIED", e.kind)
			require.Equal(t, fmt.Sprint(1000000051+before+i), versionOf(t, e.object))
		}
		s.Expire()
		e := read(t, r, contentType)
		require.Equal(t, "ERROR", e.kind)
		require.EqualValues(t, http.StatusGone, e.object.(*metav1.Status).Code)
		require.ErrorIs(t, must.Err(r.ReadByte()), io.EOF)
	}
	for version, sent := range s.Sent() {
		require.True(t, sent > 0 || version == 1000000051, "%d", version) // no watch has begun before the first change
	}
}

func TestChangeEvery(t *testing.T) {
	s := start(t)
	r := bufio.NewReader(get(t, s, "watch=1&resourceVersion=1000000050", jsonType).Body)
	require.NoError(t, s.ChangeEvery(t.Context(), time.Microsecond, []int{4, 4, 9}))
	var names []string
	for range 3 {
		names = append(names, read(t, r, jsonType).object.(*corev1.Pod).Name)
	}
	require.Equal(t, names[0], names[1])
	require.NotEqual(t, names[1], names[2])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.ChangeEvery(ctx, time.Hour, []int{1}), context.Canceled)
}

func TestEverybodyGetsTheSame(t *testing.T) {
	s := start(t)
	for _, accept := range []string{
		jsonType + ";drop=metadata.managedFields," + jsonType, protobufType + ";drop=metadata.managedFields," + jsonType, jsonType + "," + protobufType, "application/cbor," + jsonType, "*/*", "",
	} {
		answer := get(t, s, "", accept)
		require.Equal(t, jsonType, answer.Header.Get("Content-Type"), accept)
		content := must.Get(io.ReadAll(answer.Body))(t)
		pods := decode(t, jsonType, content).(*corev1.PodList)
		require.NotEmpty(t, pods.Items[0].ManagedFields, accept)
		require.False(t, answer.Uncompressed)
	}
	for _, query := range []string{"labelSelector=a", "limit=x"} {
		answer := must.Get(http.Get(s.URL() + "/api/v1/pods?" + query))(t)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusNotFound, answer.StatusCode, query)
	}
}

func TestRequestsAreNoted(t *testing.T) {
	s := start(t)
	get(t, s, "limit=5", protobufType)
	get(t, s, "watch=1&sendInitialEvents=true", jsonType+metadataOnly)
	require.NoError(t, s.AwaitWatches(t.Context(), 1))
	require.Equal(t, []Request{
		{Protobuf: true, Limit: 5, Proto: "HTTP/1.1"},
		{Watch: true, Streaming: true, Metadata: true, Proto: "HTTP/1.1"},
	}, s.Requests())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.AwaitWatches(ctx, 2), context.Canceled)
}
