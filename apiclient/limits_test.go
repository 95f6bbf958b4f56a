package apiclient_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// endless is a transport whose answers begin with head and then repeat tail without end.
type endless struct {
	code        int
	head, tail  string
	contentType string
	sent        *int64
}

func (e endless) RoundTrip(*http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {e.contentType}}
	return &http.Response{StatusCode: e.code, Header: h, Body: &repeating{rest: e.head, tail: e.tail, sent: e.sent}}, nil
}

type repeating struct {
	rest, tail string
	sent       *int64
}

func (r *repeating) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.tail
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	*r.sent += int64(n)
	return n, nil
}

func (r *repeating) Close() error { return nil }

// TestAnswersWithoutEndAreRefused sends an endless object, frame, document and error.
func TestAnswersWithoutEndAreRefused(t *testing.T) {
	const limit = 1 << 20
	kib := func(s string) string { return strings.Repeat(s, 1024) }
	get := func(t *testing.T, c *apiclient.Client) error {
		return must.Err(apiclient.NewPartial[*pod](c, podResource, "").Get(t.Context(), web, metav1.GetOptions{}))
	}
	list := func(t *testing.T, c *apiclient.Client) error {
		return must.Err(apiclient.NewPartial[*pod](c, podResource, "").List(t.Context(), api.Options[*pod]{}, func(*pod) error { return nil }))
	}
	watch := func(t *testing.T, c *apiclient.Client) (last error) {
		for _, err := range apiclient.NewPartial[*pod](c, podResource, "").Watch(t.Context(), api.Options[*pod]{}) {
			last = err
		}
		return last
	}
	document := func(t *testing.T, c *apiclient.Client) error {
		return c.GetDocument(t.Context(), "/version", &struct{}{})
	}
	subresource := func(t *testing.T, c *apiclient.Client) error {
		return must.Err(apiclient.Subresource[*pod, *pod](c, podResource, web, "status").Get(t.Context(), metav1.GetOptions{}))
	}
	tooLarge := func(err error) bool {
		var typed *codec.TooLargeError
		return asError(err, &typed) && typed.Limit == limit
	}
	text := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`
	for _, c := range []struct {
		name   string
		answer endless
		call   func(*testing.T, *apiclient.Client) error
		is     func(error) bool
	}{
		{"an object", endless{code: 200, head: text, tail: kib("x"), contentType: jsonType}, get, tooLarge},
		{"an object of white space", endless{code: 200, tail: kib(" "), contentType: jsonType}, get, tooLarge},
		{"white space behind an object", endless{code: 200, head: onePod, tail: kib("\n"), contentType: jsonType}, get, tooLarge},
		{"an object of protobuf", endless{code: 200, head: "k8s\x00", tail: kib("\x00"), contentType: protoType}, get, func(err error) bool { return isError(err, codec.ErrMediaType) }},
		{"a subresource", endless{code: 200, head: text, tail: kib("x"), contentType: jsonType}, subresource, tooLarge},
		{"a document", endless{code: 200, head: `{"a":"`, tail: kib("x"), contentType: jsonType}, document, tooLarge},
		{"an item of a list", endless{code: 200, head: `{"kind":"PodList","apiVersion":"v1","items":[` + text, tail: kib("x"), contentType: jsonType}, list, tooLarge},
		{"nesting", endless{code: 200, head: `{"kind":"PodList","apiVersion":"v1","items":[`, tail: kib(`{"a":[`), contentType: jsonType}, list, func(err error) bool { return isError(err, codec.ErrMalformed) }},
		{"a frame of a watch", endless{code: 200, head: `{"type":"ADDED","object":` + text, tail: kib("x"), contentType: jsonType}, watch, tooLarge},
		{"an error", endless{code: 403, head: status(403, "Forbidden", "no")[:100], tail: kib("x"), contentType: jsonType}, get, apierrors.IsForbidden},
		{"an error of text", endless{code: 500, tail: kib("x"), contentType: "text/plain"}, list, short(apierrors.IsInternalError)},
		{"a page of HTML", endless{code: 200, tail: kib("<p>"), contentType: "text/html"}, watch, isContentType},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent int64
			c.answer.sent = &sent
			err := c.call(t, newClient(t, apiclient.Config{Host: "http://h", Transport: c.answer, MaxObjectBytes: limit}))
			require.True(t, c.is(err), "%v", err)
			require.Less(t, len(err.Error()), 1000)
			require.LessOrEqual(t, sent, int64(2*limit), "the client reads at most twice the limit")
		})
	}
}

// TestAListWithoutEndNeedsNoMemory reads a hundred thousand items of an endless list and measures the heap.
func TestAListWithoutEndNeedsNoMemory(t *testing.T) {
	const most = 100_000
	var sent int64
	answer := endless{
		code: 200, head: `{"kind":"PodList","apiVersion":"v1","items":[` + onePod, tail: strings.Repeat(" ", 100) + "," + onePod,
		contentType: jsonType, sent: &sent,
	}
	r := apiclient.NewPartial[*pod](newClient(t, apiclient.Config{Host: "http://h", Transport: answer, MaxObjectBytes: 1 << 20}), podResource, "")
	before, count, grown := fixture.Heap(), 0, int64(0)
	_, err := r.List(t.Context(), api.Options[*pod]{}, func(*pod) error {
		count++
		if count < most {
			return nil
		}
		grown = fixture.Heap() - before
		return io.ErrShortBuffer
	})
	require.ErrorIs(t, err, io.ErrShortBuffer)
	require.Equal(t, most, count)
	require.Greater(t, sent, int64(most*len(onePod)))
	require.Less(t, grown, int64(2<<20))
}

func TestTheLimitIsTheCallers(t *testing.T) {
	size := len(onePod)
	for limit, fits := range map[int]bool{size - 1: false, size: true, size + 1: true} {
		c := newClient(t, apiclient.Config{Host: "http://h", Transport: canned(onePod), MaxObjectBytes: limit})
		_, err := apiclient.NewPartial[*pod](c, podResource, "").Get(t.Context(), web, metav1.GetOptions{})
		require.Equal(t, fits, err == nil, "%d: %v", limit, err)
		for range apiclient.NewPartial[*pod](c, podResource, "").WatchOver(t.Context(), api.Options[*pod]{}, func(_ *http.Request, o apiclient.Opening) (io.ReadCloser, string, error) {
			require.Equal(t, limit, o.MaxObjectBytes)
			return nil, "", io.EOF
		}) {
			break
		}
	}
	require.ErrorContains(t, must.Err(apiclient.New(apiclient.Config{Host: "http://h", MaxObjectBytes: -1})), "Config.MaxObjectBytes: ")
}

func TestTheLargestLimit(t *testing.T) {
	cfg := onLoopback(t, func(w http.ResponseWriter, r *http.Request) { answer(200, jsonType, onePod)(w, r) })
	cfg.MaxObjectBytes = math.MaxInt
	var document metav1.TypeMeta
	require.NoError(t, newClient(t, cfg).GetDocument(t.Context(), "/version", &document))
	require.Equal(t, "Pod", document.Kind)
	must.Get(pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{}))(t)
}
