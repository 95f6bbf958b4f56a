package codec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

// bareMetadata is a bookmark's object: only a version and the annotation.
func bareMetadata(version, initialEventsEnd string) *corev1.Pod {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if initialEventsEnd != "" {
		pod.Annotations = map[string]string{api.InitialEventsEndAnnotation: initialEventsEnd, "other": "true"}
	}
	return pod
}

// streamOf writes events in a format; an object is a *corev1.Pod or a *metav1.Status.
func streamOf(media string, pairs ...any) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, frameOf(media, pairs[i].(string), pairs[i+1])...)
	}
	return b
}

func frameOf(media, event string, object any) []byte {
	if media == asJSON {
		return jsonFrame(event, mustJSON(object))
	}
	if status, ok := object.(*metav1.Status); ok {
		return protobufFrame(event, sealed("v1", "Status", status))
	}
	return protobufFrame(event, sealed("v1", "Pod", object.(*corev1.Pod)))
}

func TestEvents(t *testing.T) {
	for _, media := range []string{asJSON, asProtobuf} {
		t.Run("media="+media, func(t *testing.T) {
			stream := streamOf(
				media, "ADDED", newPod(1), "BOOKMARK", bareMetadata("7", ""), "MODIFIED", newPod(2), "BOOKMARK", bareMetadata("8", "true"),
				"BOOKMARK", bareMetadata("9", "false"), "DELETED", newPod(3),
			)
			for _, r := range []io.Reader{bytes.NewReader(stream), oneByte{bytes.NewReader(stream)}} {
				reader, err := podCodec.NewEventReader(context.Background(), r, media+";stream=watch", pods, podOptions{})
				require.NoError(t, err)
				for _, want := range []api.Event[*corev1.Pod]{
					{Type: watch.Added, Object: newPod(1), ResourceVersion: "100001"},
					{Type: watch.Bookmark, ResourceVersion: "7"},
					{Type: watch.Modified, Object: newPod(2), ResourceVersion: "100002"},
					{Type: watch.Bookmark, ResourceVersion: "8", InitialEventsEnd: true},
					{Type: watch.Bookmark, ResourceVersion: "9"},
					{Type: watch.Deleted, Object: newPod(3), ResourceVersion: "100003"},
				} {
					event := must.Get(reader.Next())(t)
					requireSame(t, want.Object, event.Object)
					event.Object, want.Object = nil, nil
					require.Equal(t, want, event)
				}
				for range 2 {
					_, err = reader.Next()
					require.Equal(t, io.EOF, err)
				}
			}
		})
	}
}

// A type without annotations and version still gets bookmarks and versions.
func TestEventsOfTypeWithoutVersion(t *testing.T) {
	type nameOnly struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	c := codec.New[*nameOnly](codec.Options{})
	all, err := events(t, c, streamOf(asJSON, "ADDED", newPod(1), "BOOKMARK", bareMetadata("8", "true")), asJSON, pods, api.Options[*nameOnly]{DropManagedFields: true})
	require.Equal(t, io.EOF, err)
	require.Equal(t, newPod(1).Name, all[0].Object.Metadata.Name)
	require.Equal(t, "100001", all[0].ResourceVersion)
	require.Equal(t, "8", all[1].ResourceVersion)
	require.True(t, all[1].InitialEventsEnd)
}

func TestEventIsHandedOutWhenComplete(t *testing.T) {
	for _, media := range []string{asJSON, asProtobuf} {
		first, second := frameOf(media, "ADDED", newPod(1)), frameOf(media, "ADDED", newPod(2))
		if media == asJSON {
			first = bytes.TrimSpace(first) // the reader does not wait for the newline either
		}
		handedOut := 0
		r := &parts{parts: [][]byte{first, second}, before: func(read int) { require.Equal(t, read, handedOut) }}
		reader := must.Get(podCodec.NewEventReader(context.Background(), r, media, pods, podOptions{}))(t)
		for {
			_, err := reader.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			handedOut++
		}
		require.Equal(t, 2, handedOut)
	}
}

func TestEventMembersInAnyOrder(t *testing.T) {
	for _, frame := range []string{
		`{"object":{"metadata":{"name":"a","resourceVersion":"3"},"kind":"Pod"},"type":"ADDED"}`,
		`{ "type" : "ADDED" , "extra":[1,{"metadata":{}}], "object" : {"metadata":{"name":"a","resourceVersion":"3"}} }`,
		`{"type":"DELETED","object":{"metadata":{"name":"x"}},"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"3"}}}`,
		`{"t\u0079pe":"ADD\u0045D","obj\u0065ct":{"m\u0065tadata":{"name":"\u0061","resourceVersion":"3"}}}`,
	} {
		all, err := events(t, podCodec, []byte(frame+frame+"\n\n"+frame), asJSON, pods, podOptions{})
		require.Equal(t, io.EOF, err, frame)
		require.Len(t, all, 3, frame)
		for _, event := range all {
			require.Equal(t, watch.Added, event.Type)
			require.Equal(t, "a", event.Object.Name)
			require.Equal(t, "3", event.ResourceVersion)
		}
	}
}

func TestErrorEvent(t *testing.T) {
	expired := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Message: "too old resource version", Reason: metav1.StatusReasonExpired, Code: 410}
	for _, media := range []string{asJSON, asProtobuf} {
		all, err := events(t, podCodec, streamOf(media, "ADDED", newPod(1), "ERROR", expired, "ADDED", newPod(2)), media, pods, podOptions{})
		require.Len(t, all, 1)
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		require.EqualError(t, err, "too old resource version")
	}
}

// Every ERROR frame, whatever its content, ends the watch with a useful status.
func TestOddErrorEvent(t *testing.T) {
	for object, want := range map[string]metav1.Status{
		`null`:                                {Code: 500, Reason: metav1.StatusReasonInternalError},
		`{}`:                                  {Code: 500, Reason: metav1.StatusReasonInternalError},
		`"no more"`:                           {Code: 500, Reason: metav1.StatusReasonInternalError},
		`{"code":410,"reason":"Expired"}`:     {Code: 410, Reason: metav1.StatusReasonExpired},
		`{"kind":"Pod"}`:                      {Code: 500, Reason: metav1.StatusReasonInternalError},
		`{"kind":"Status","apiVersion":"v1"}`: {Code: 500, Reason: metav1.StatusReasonInternalError},
		`{"kind":"Status","apiVersion":"v1","code":410}`:                              {Code: 410},
		`{"kind":"Status","apiVersion":"v1","code":"410","reason":"Expired"}`:         {Reason: metav1.StatusReasonExpired},
		`{"kind":"Status","code":429,"details":{"retryAfterSeconds":3},"reason":[1]}`: {Code: 429, Details: &metav1.StatusDetails{RetryAfterSeconds: 3}},
		`{"kind":"Status","status":"Success","code":410,"message":7,"reason":"Gone"}`: {Code: 410, Reason: metav1.StatusReasonGone},
	} {
		_, err := events(t, podCodec, jsonFrame("ERROR", []byte(object)), asJSON, pods, podOptions{})
		var status *apierrors.StatusError
		require.ErrorAs(t, err, &status, object)
		got := status.ErrStatus
		require.Equal(t, metav1.StatusFailure, got.Status, object)
		require.Equal(t, []any{want.Code, want.Reason, want.Details}, []any{got.Code, got.Reason, got.Details}, object)
	}
	_, err := events(t, podCodec, []byte(`{"type":"ERROR"}`), asJSON, pods, podOptions{})
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	_, err = events(t, podCodec, protobufFrame("ERROR", []byte("no envelope")), asProtobuf, pods, podOptions{})
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.ErrorContains(t, err, "an error that is not a Status, of 11 bytes")
}

func TestUnknownEventMayBeSkipped(t *testing.T) {
	for _, media := range []string{asJSON, asProtobuf} {
		stream := streamOf(media, "ADDED", newPod(1), "PRUNED", newPod(2), "ADDED", newPod(3))
		reader := must.Get(podCodec.NewEventReader(context.Background(), bytes.NewReader(stream), media, pods, podOptions{}))(t)
		must.Get(reader.Next())(t)
		_, err := reader.Next()
		require.ErrorIs(t, err, codec.ErrUnknownEvent)
		require.EqualError(t, err, `codec: unknown event type "PRUNED"`)
		require.Equal(t, newPod(3).Name, must.Get(reader.Next())(t).Object.Name)
	}
}

func TestEventReportsUndecodable(t *testing.T) {
	stream := append(jsonFrame("ADDED", mustJSON(newPod(1))), jsonFrame("MODIFIED", []byte(`{"kind":"Pod","metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"7"},"spec":[]}`))...)
	stream = append(stream, jsonFrame("DELETED", []byte(`{"kind":"Service","apiVersion":"v1","metadata":{"name":"c","resourceVersion":"8"}}`))...)
	stream = append(stream, jsonFrame("ADDED", mustJSON(newPod(2)))...)
	var reports []string
	all, err := events(t, podCodec, stream, asJSON, pods, podOptions{OnUndecodable: func(u *api.UndecodableError) error {
		reports = append(reports, fmt.Sprintf("%s %s %s %s %t", u.Type, u.Key, u.UID, u.ResourceVersion, errors.Is(u, codec.ErrUnexpectedKind)))
		return nil
	}})
	require.Equal(t, io.EOF, err)
	require.Len(t, all, 2)
	require.Equal(t, []string{"MODIFIED n/b u 7 false", "DELETED /c  8 true"}, reports)
}

// A bookmark of another kind has the version of something else, or ends the initial state of something else.
func TestBookmarkOfAnotherKindEndsTheWatch(t *testing.T) {
	for media, stream := range map[string][]byte{
		asJSON:     jsonFrame("BOOKMARK", []byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"8"}}`)),
		asProtobuf: protobufFrame("BOOKMARK", sealed("v1", "Secret", bareMetadata("8", "true"))),
	} {
		_, err := events(t, podCodec, stream, media, pods, podOptions{})
		require.EqualError(t, err, `codec: asked for pods (kind "Pod" of "v1") and was answered with kind "Secret" of "v1"`)
	}
	for _, object := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"8"}}`,
		`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"8"}}`,
		`{"metadata":{"resourceVersion":"8"}}`,
	} {
		all, err := events(t, metadataCodec, jsonFrame("BOOKMARK", []byte(object)), asJSON, pods, api.Options[*metav1.PartialObjectMetadata]{})
		require.Equal(t, io.EOF, err)
		require.Equal(t, "8", all[0].ResourceVersion)
	}
}
