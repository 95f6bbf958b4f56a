package compare

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/internal/fixture/must"
)

func answerOf(kind, content string, watch bool) *Answer {
	r := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	r.Header.Set("Content-Type", kind)
	r.Header.Add("Warning", "one")
	r.Header.Add("Warning", "two")
	r.Header.Set("Audit-Id", "x")
	return readAnswer(r, []byte(content), watch)
}

func TestReadAnswer(t *testing.T) {
	const want = `{"a":1}`
	require.Equal(t, want, show(answerOf("application/json", "{\n \"a\": 1\n}\n", false).Value))
	require.Equal(t, want, show(answerOf("application/apply-patch+json; charset=utf-8", want, false).Value))
	require.Equal(t, want, show(answerOf("application/yaml", "a: 1\n", false).Value))
	require.Equal(t, `[{"a":1},{"b":2}]`, show(answerOf("application/json", `{"a":1}{"b":2}`, true).Value))
	const end = `{"object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}},"type":"BOOKMARK"}`
	require.Equal(t, "["+end+"]", show(answerOf("application/json", end+`{"type":"BOOKMARK","object":{"metadata":{}}}`, true).Value))
	require.Equal(t, `[]`, show(answerOf("application/json", "", true).Value))
	broken := answerOf("application/json", `{"a":`, false)
	require.Nil(t, broken.Value)
	require.Equal(t, `{"a":`, broken.Text)
	text := answerOf("text/plain", "ok", false)
	require.Equal(t, "ok", text.Text)
	require.Equal(t, map[string]string{"Content-Type": "text/plain", "Warning": "one\ntwo"}, text.Header)
}

func TestReadGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(z.Write([]byte(`{"a":1}`)))(t)
	require.NoError(t, z.Close())
	r := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	require.Equal(t, `{"a":1}`, show(readAnswer(r, b.Bytes(), false).Value))
}

func TestProtobuf(t *testing.T) {
	const object = `{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a"}}`
	encoded := must.Get(toProtobuf([]byte(object)))(t)
	require.Equal(t, object, show(answerOf(protobufType, string(encoded), false).Value))

	var stream []byte
	for _, kind := range []string{"ADDED", "DELETED"} {
		event := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: encoded}}
		frame := must.Get(runtime.Encode(watchSerializer, event))(t)
		stream = binary.BigEndian.AppendUint32(stream, uint32(len(frame)))
		stream = append(stream, frame...)
	}
	kind := protobufType + ";stream=watch"
	require.Equal(t, `[{"object":`+object+`,"type":"ADDED"},{"object":`+object+`,"type":"DELETED"}]`,
		show(answerOf(kind, string(stream), true).Value))
	for _, cut := range []int{2, 10} {
		require.Nil(t, answerOf(kind, string(stream[:len(stream)-cut]), true).Value)
		require.Nil(t, answerOf(kind, string(stream[:cut]), true).Value)
	}
	require.Error(t, must.Err(toProtobuf([]byte(`{"apiVersion":"example.com/v1","kind":"Thing"}`))))
}

func TestReadOutput(t *testing.T) {
	read := func(text string, args ...string) *Answer {
		a := &Answer{Command: true, Text: text}
		a.readOutput(args)
		return a
	}
	require.Equal(t, `{"a":1}`, show(read("a: 1", "get", "-o", "yaml").Value))
	require.Equal(t, `{"a":1}`, show(read(`{"a":1}`, "get", "-ojson").Value))
	require.Equal(t, `{"a":1}`, show(read(`{"a":1}`, "get", "--raw", "/").Value))
	require.Equal(t, "ok", read("ok", "get", "--raw", "/readyz").Text)
	require.Equal(t, "a: 1", read("a: 1", "get").Text)
}
