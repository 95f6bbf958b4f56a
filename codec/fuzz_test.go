package codec_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// fuzzLimit keeps the inputs of a fuzzer small.
const fuzzLimit = 64 << 10

func addCases(f *testing.F, cases []malformedCase) {
	for _, c := range cases {
		if len(c.body) < 8<<10 {
			f.Add([]byte(c.body))
		}
	}
}

// FuzzObject compares the scanner and both JSON decoders with sigs.k8s.io/json: they accept the same inputs, with the
// same result.
func FuzzObject(f *testing.F) {
	for _, text := range syntax {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	addCases(f, malformedJSONObjects)
	f.Add(mustJSON(newPod(1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		requireSameContent(t, string(b))
		if reference := map[string]any{}; sigsjson.UnmarshalCaseSensitivePreserveInts(b, &reference) == nil {
			sameAsReference(t, b, reflect.TypeFor[corev1.Pod]())
			sameAsReference(t, b, reflect.TypeFor[small]())
			requireSharedAlike(t, b)
		}
	})
}

// outcome is everything that a caller sees of an answer.
func outcome[T any](decode func(r io.Reader, see func(T)) error, r io.Reader) string {
	var seen bytes.Buffer
	err := decode(r, func(v T) { fmt.Fprintf(&seen, "%s\n", mustJSON(v)) })
	return fmt.Sprintf("%s%T %v", &seen, err, err)
}

// requireSameHoweverRead decodes an answer in one piece and byte by byte.
func requireSameHoweverRead[T any](t *testing.T, b []byte, decode func(r io.Reader, see func(T)) error) {
	require.Equal(t, outcome(decode, bytes.NewReader(b)), outcome(decode, oneByte{bytes.NewReader(b)}))
}

func FuzzList(f *testing.F) {
	addCases(f, malformedJSONLists)
	f.Add(podList(1, asJSON))
	c := codec.New[*small](codec.Options{MaxObjectBytes: fuzzLimit})
	f.Fuzz(func(t *testing.T, b []byte) {
		requireSameHoweverRead(t, b, func(r io.Reader, see func(any)) error {
			o := api.Options[*small]{DropManagedFields: true, OnUndecodable: func(u *api.UndecodableError) error {
				see(u.Key)
				return nil
			}}
			meta, err := c.DecodeList(context.Background(), r, asJSON, pods, o, func(item *small) error {
				see(item)
				return nil
			})
			see(meta)
			return err
		})
	})
}

func FuzzProtobufList(f *testing.F) {
	addCases(f, malformedProtobufLists())
	f.Add(podList(1, asProtobuf))
	c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: fuzzLimit})
	f.Fuzz(func(t *testing.T, b []byte) {
		requireSameHoweverRead(t, b, func(r io.Reader, see func(any)) error {
			o := podOptions{DropManagedFields: true, OnUndecodable: func(u *api.UndecodableError) error {
				see(u.Key)
				return nil
			}}
			meta, err := c.DecodeList(context.Background(), r, asProtobuf, pods, o, func(item *corev1.Pod) error {
				see(item.ObjectMeta)
				return nil
			})
			see(meta)
			return err
		})
	})
}

func fuzzEvents[T any](t *testing.T, c *codec.Codec[T], media string, b []byte) {
	requireSameHoweverRead(t, b, func(r io.Reader, see func(any)) error {
		reader, err := c.NewEventReader(context.Background(), r, media, pods, api.Options[T]{DropManagedFields: true, OnUndecodable: func(u *api.UndecodableError) error {
			see(u.Key)
			return nil
		}})
		for err == nil {
			var event api.Event[T]
			if event, err = reader.Next(); err == nil {
				see([]any{event.Type, event.ResourceVersion, event.InitialEventsEnd})
			}
		}
		return err
	})
}

func FuzzEvents(f *testing.F) {
	addCases(f, malformedJSONEvents)
	f.Add(streamOf(asJSON, "ADDED", newPod(1), "BOOKMARK", bareMetadata("7", "true")))
	c := codec.New[*small](codec.Options{MaxObjectBytes: fuzzLimit})
	f.Fuzz(func(t *testing.T, b []byte) { fuzzEvents(t, c, asJSON, b) })
}

func FuzzProtobufEvents(f *testing.F) {
	addCases(f, malformedProtobufEvents())
	f.Add(streamOf(asProtobuf, "ADDED", newPod(1), "BOOKMARK", bareMetadata("7", "true")))
	c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: fuzzLimit})
	f.Fuzz(func(t *testing.T, b []byte) { fuzzEvents(t, c, asProtobuf, b) })
}

func FuzzProtobufObject(f *testing.F) {
	addCases(f, malformedProtobufObjects())
	f.Add(sealed("v1", "Pod", newPod(1)))
	c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: fuzzLimit})
	f.Fuzz(func(t *testing.T, b []byte) {
		requireSameHoweverRead(t, b, func(r io.Reader, see func(any)) error {
			pod, err := c.DecodeObject(context.Background(), r, asProtobuf, pods)
			require.Equal(t, err == nil, pod != nil)
			return err
		})
	})
}

// FuzzDropManagedFields compares skipping managedFields in the bytes with clearing them afterwards.
func FuzzDropManagedFields(f *testing.F) {
	f.Add([]byte(`{"managedFields":[1],"name":"a","managedFields":null}`))
	f.Add([]byte(`{ "name" : "a" , "managedFields" : [ {"a":"]"} ] , "uid":"u" }`))
	f.Add(mustJSON(newPod(1).ObjectMeta))
	f.Fuzz(func(t *testing.T, metadata []byte) {
		body := `{"items":[{"spec":{"a":1},"metadata":` + string(metadata) + `,"status":"x"}]}`
		kept, _, err := collect(unstructuredCodec, body, asJSON, api.Resource{}, unstructuredOptions{})
		if err != nil {
			return
		}
		dropped, _, err := collect(unstructuredCodec, body, asJSON, api.Resource{}, unstructuredOptions{DropManagedFields: true})
		require.NoError(t, err)
		for i := range kept {
			if metadata, ok := kept[i].Object["metadata"].(map[string]any); ok {
				delete(metadata, "managedFields")
			}
			require.Equal(t, kept[i].Object, dropped[i].Object)
		}
	})
}

func FuzzFailure(f *testing.F) {
	addCases(f, malformedJSONObjects)
	addCases(f, malformedProtobufObjects())
	f.Add([]byte(`{"kind":"Status","apiVersion":"v1","code":"x","message":"m","details":{"retryAfterSeconds":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, media := range []string{asJSON, asProtobuf, "text/plain", ""} {
			err := codec.Failure{Code: 500, MediaType: media, Body: bytes.NewReader(b)}.Error()
			require.NotEqual(t, "Success", err.ErrStatus.Status)
			require.NotZero(t, err.ErrStatus.Code)
		}
	})
}
