package apiclient_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

// canned is a transport that always sends the same body, so that the benchmark measures this package and the codec.
type canned []byte

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}},
		Body: io.NopCloser(bytes.NewReader(c)),
	}, nil
}

const eventsPerWatch = 1_000

// benchmarkWatch reports values per event. A watch has a thousand events.
func benchmarkWatch[T api.Object](b *testing.B) {
	body := canned(strings.Repeat(`{"type":"ADDED","object":`+onePod+"}\n", eventsPerWatch))
	b.SetBytes(int64(len(body)) / eventsPerWatch)
	c := must.Get(apiclient.New(apiclient.Config{Host: "http://h", Transport: body}))(b)
	r := apiclient.NewPartial[T](c, podResource, "")
	b.ReportAllocs()
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue
		}
		left = eventsPerWatch
		count := 0
		for _, err := range r.Watch(b.Context(), api.Options[T]{}) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		require.Equal(b, eventsPerWatch, count)
	}
}

func BenchmarkWatch(b *testing.B) {
	b.Run("type=Pod", benchmarkWatch[*corev1.Pod])
	b.Run("type=own", benchmarkWatch[*pod])
}

// frames is a body that returns one frame per Read, as a connection does with events that arrive one at a time.
type frames struct {
	first []string // before the others
	frame string
	left  int
}

func (f *frames) Read(p []byte) (int, error) {
	switch {
	case len(f.first) > 0:
		n := copy(p, f.first[0])
		f.first = f.first[1:]
		return n, nil
	case f.left == 0:
		return 0, io.EOF
	}
	f.left--
	return copy(p, f.frame), nil
}

func (f *frames) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: io.NopCloser(f)}, nil
}

// BenchmarkSingleEvents has one Read per event, after two bookmarks have shown their interval. An operation is one
// event.
func BenchmarkSingleEvents(b *testing.B) {
	body := &frames{frame: `{"type":"ADDED","object":` + onePod + "}\n"}
	c := must.Get(apiclient.New(apiclient.Config{Host: "http://h", Transport: body}))(b)
	r := apiclient.NewPartial[*pod](c, podResource, "")
	b.ReportAllocs()
	for left := 0; b.Loop(); left-- {
		if left > 0 {
			continue
		}
		left = eventsPerWatch
		body.first, body.left = []string{bookmark(1, false), bookmark(2, false)}, eventsPerWatch
		count := 0
		for _, err := range r.Watch(b.Context(), bookmarked(true)) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		require.Equal(b, eventsPerWatch+2, count)
	}
}
