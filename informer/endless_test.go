package informer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
)

// endless is the body of an answer that has no end. It counts what was read of it.
type endless struct {
	rest string
	next func(n int) string
	n    int
	read *atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.next(e.n)
		e.n++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	e.read.Add(int64(n))
	return n, nil
}

func (e *endless) Close() error { return nil }

type answer func(r *http.Request) io.ReadCloser

func (f answer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: f(r), Request: r,
	}, nil
}

const aWidget = `{"apiVersion":"leat.test/v1","kind":"Widget","metadata":{"namespace":"default","name":"%s","uid":"u","resourceVersion":"%d"}}`

// TestAnswersWithoutEnd reads endless answers through the real client, until the informer gives up.
func TestAnswersWithoutEnd(t *testing.T) {
	name := func(n int) string { return fmt.Sprintf(aWidget, fmt.Sprintf("w%09d", n), n+1) }
	for what, next := range map[string]func(watch bool, n int) string{
		"of items":       func(_ bool, n int) string { return name(n) + "," },
		"of events":      func(_ bool, n int) string { return `{"type":"ADDED","object":` + name(n) + "}\n" },
		"of undecodable": func(_ bool, n int) string { return strings.Replace(name(n), `"uid":"u"`, `"uid":7`, 1) + "," },
	} {
		t.Run(what, func(t *testing.T) {
			var read atomic.Int64
			client := must.Get(apiclient.New(apiclient.Config{Host: "http://server.test", Transport: answer(func(r *http.Request) io.ReadCloser {
				watch := r.URL.Query().Get("watch") != ""
				head := ""
				if !watch {
					head = `{"apiVersion":"leat.test/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[`
				}
				return &endless{rest: head, next: func(n int) string { return next(watch, n) }, read: &read}
			})}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			var failed error
			i := informer.New(apiclient.NewPartial[*widget](client, widgets, ""), informer.Options[*widget]{
				Tuning: reflector.Tuning{NoWatchList: what != "of events", MaxListObjects: 20_000},
				Hooks: reflector.Hooks{OnError: func(err error) {
					failed = err
					cancel()
				}},
			})
			before := heapInUse()
			require.NoError(t, i.Run(ctx))
			require.ErrorIs(t, failed, reflector.ErrEndlessList)
			require.Less(t, read.Load(), int64(10<<20), "bytes read")
			require.Less(t, heapInUse()-before, int64(8<<20), "no object is kept")
			runtime.KeepAlive(i)
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
