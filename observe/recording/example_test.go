package recording_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/observe/recording"
)

// A test runs an informer against what production sent. Time in the bubble is fake, so an hour takes no time, and every
// run gives the same events.
func ExampleNewSource() {
	_ = func(t *testing.T) { // TestAgainstProduction
		file, err := recording.Open("testdata/production.rec")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		timeline, err := recording.Load[*corev1.Pod](t.Context(), file.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			source := recording.NewSource(timeline, pods, "")
			i := informer.New(source, informer.Options[*corev1.Pod]{})
			ctx, cancel := context.WithDeadline(t.Context(), source.End().Add(time.Minute))
			defer cancel()
			if err := i.Run(ctx); err != nil { // beside the controller that is tested
				t.Error(err)
			}
		})
	}
}

// A client whose transport is tapped lists pods. The recording has the list, and the pods in it.
func Example() {
	var file bytes.Buffer
	recorder, err := recording.New(&file, recording.Options{})
	if err != nil {
		panic(err)
	}
	transport := recorder.Wrap(fixture.RoundTripper(func(*http.Request) (*http.Response, error) { // usually that of an apiclient.Client
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"kind":"PodList","apiVersion":"v1",
			"metadata":{"resourceVersion":"8"},"items":[{"metadata":{"name":"web","namespace":"shop","uid":"1","resourceVersion":"7"}}]}`))}, nil
	}))
	get, err := http.NewRequest(http.MethodGet, "https://server/api/v1/pods", nil)
	if err != nil {
		panic(err)
	}
	list, err := transport.RoundTrip(get)
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, list.Body)
	ended, end := context.WithCancel(context.Background())
	end()
	if err := recorder.Run(ended); err != nil { // writes what was recorded, and ends with its context
		panic(err)
	}

	r, err := recording.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		panic(err)
	}
	for rec := range r.Records(nil) {
		fmt.Println(rec.Kind, rec.Stream.Resource(), len(rec.Data))
	}
	timeline, err := recording.Load[*corev1.Pod](context.Background(), r, nil)
	if err != nil {
		panic(err)
	}
	for _, c := range timeline.Changes() {
		fmt.Println(c.Type, c.Resource, c.Key, c.ResourceVersion)
	}
	// Output:
	// opened pods 0
	// data pods 164
	// ended pods 0
	// ADDED pods shop/web 7
}
