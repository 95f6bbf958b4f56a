package apiclient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// hang blocks a handler until its client has gone. A server notices that after it has read the body.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// flushed sends a part of an answer at once.
func flushed(w http.ResponseWriter, contentType, part string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, part)
	_ = http.NewResponseController(w).Flush()
}

// states are the states of a call in which its context may end.
var states = map[string]http.HandlerFunc{
	"before the head": func(_ http.ResponseWriter, r *http.Request) { hang(r) },
	"after the head": func(w http.ResponseWriter, r *http.Request) {
		flushed(w, jsonType, "")
		hang(r)
	},
	"in the body": func(w http.ResponseWriter, r *http.Request) {
		flushed(w, jsonType, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"PodL`)
		hang(r)
	},
	"between events": func(w http.ResponseWriter, r *http.Request) {
		flushed(w, jsonType, frame(1))
		hang(r)
	},
	"in the body of an error": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		flushed(w, "text/plain", "half")
		hang(r)
	},
	"in a page": func(w http.ResponseWriter, r *http.Request) {
		flushed(w, "text/html", "")
		hang(r)
	},
}

// calls are the calls of a client.
var calls = map[string]func(ctx context.Context, r *apiclient.TypedClient[*pod]) error{
	"get": func(ctx context.Context, r *apiclient.TypedClient[*pod]) error {
		return must.Err(r.Get(ctx, web, metav1.GetOptions{}))
	},
	"list": func(ctx context.Context, r *apiclient.TypedClient[*pod]) error {
		return must.Err(r.List(ctx, api.Options[*pod]{}, func(*pod) error { return nil }))
	},
	"watch": func(ctx context.Context, r *apiclient.TypedClient[*pod]) error {
		for _, err := range r.Watch(ctx, api.Options[*pod]{}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"create": func(ctx context.Context, r *apiclient.TypedClient[*pod]) error {
		return must.Err(r.Create(ctx, &pod{Metadata: Metadata{Namespace: "default", Name: "web"}}, metav1.CreateOptions{}))
	},
}

// TestCancellationEndsEveryState cancels each call in each state. The bubble fails the test if a goroutine is left. Its
// clock does not move, so the call must end at once.
func TestCancellationEndsEveryState(t *testing.T) {
	for state, handler := range states {
		for name, call := range calls {
			if name != "watch" && state == "between events" {
				continue
			}
			fixture.Bubble(t, name+"/"+state, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				r := apiclient.NewTyped[*pod](newClient(t, inMemory(t, handler)), podResource, "")
				done := make(chan error)
				go func() { done <- call(ctx, r) }()
				synctest.Wait()
				start := time.Now()
				cancel()
				err := <-done
				require.ErrorIs(t, err, context.Canceled)
				require.Zero(t, time.Since(start))
			})
		}
	}
}

// TestAnErrorThatNeverEndsIsAnError has answers with a complete head and a body that never comes.
func TestAnErrorThatNeverEndsIsAnError(t *testing.T) {
	for state, want := range map[string]string{
		"in the body of an error": "the server answered 500 Internal Server Error: half",
		"in a page":               `the answer has the content type "text/html", which cannot contain objects: a page of HTML`,
	} {
		for name, call := range calls {
			fixture.Bubble(t, name+"/"+state, func(t *testing.T) {
				start := time.Now()
				require.ErrorContains(t, call(t.Context(), apiclient.NewTyped[*pod](newClient(t, inMemory(t, states[state])), podResource, "")), want)
				require.Equal(t, 10*time.Second, time.Since(start))
			})
		}
	}
}

func TestCancellationWhileDialling(t *testing.T) {
	for name, call := range calls {
		fixture.Bubble(t, name, func(t *testing.T) {
			cfg := apiclient.Config{Host: "http://h", DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			require.ErrorIs(t, call(ctx, apiclient.NewTyped[*pod](newClient(t, cfg), podResource, "")), context.DeadlineExceeded)
			require.Equal(t, time.Second, time.Since(start))
		})
	}
}

func TestACancelledContextSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range calls {
			require.ErrorIs(t, call(ctx, apiclient.NewTyped[*pod](newClient(t, cfg), podResource, "")), context.Canceled, name)
		}
	})
}

func TestBreakClosesTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			flushed(w, jsonType, frame(1))
			hang(r)
			close(gone)
		})
		r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
		for range r.Watch(t.Context(), api.Options[*pod]{}) {
			break
		}
		<-gone
	})
}

func TestEachIterationIsAWatchOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		cfg := inMemory(t, func(w http.ResponseWriter, _ *http.Request) {
			requests++
			flushed(w, jsonType, frame(requests))
		})
		watch := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "").Watch(t.Context(), api.Options[*pod]{})
		require.Zero(t, requests, "nothing is sent before the first iteration")
		for want := range 2 {
			for event, err := range watch {
				require.NoError(t, err)
				require.Equal(t, []string{"1", "2"}[want], event.ResourceVersion)
			}
		}
		require.Equal(t, 2, requests, "nothing is sent twice")
	})
}

func TestTheWaitForAHeadIsBounded(t *testing.T) {
	for name, call := range calls {
		for bound, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Second: time.Second, -1: time.Hour} {
			if name == "create" {
				want = time.Hour
			}
			fixture.Bubble(t, name+"/"+bound.String(), func(t *testing.T) {
				cfg := inMemory(t, func(_ http.ResponseWriter, r *http.Request) { hang(r) })
				cfg.ResponseHeaderTimeout = bound
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start := time.Now()
				err := call(ctx, apiclient.NewTyped[*pod](newClient(t, cfg), podResource, ""))
				require.Equal(t, want, time.Since(start))
				var timeout net.Error
				require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
				require.Equal(t, want == time.Hour, errors.Is(err, context.DeadlineExceeded))
			})
		}
	}
}

// TestNothingCutsALongAnswer keeps a list and a watch open for a day.
func TestNothingCutsALongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("watch") {
				flushed(w, jsonType, frame(1))
				<-time.After(24 * time.Hour)
				flushed(w, jsonType, frame(2))
				return
			}
			flushed(w, jsonType, onePodList[:40])
			<-time.After(24 * time.Hour)
			flushed(w, jsonType, onePodList[40:])
		})
		r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
		var listed []*pod
		must.Get(r.List(t.Context(), api.Options[*pod]{}, keep(&listed)))(t)
		require.Len(t, listed, 1)
		events := 0
		for _, err := range r.Watch(t.Context(), api.Options[*pod]{}) {
			require.NoError(t, err)
			events++
		}
		require.Equal(t, 2, events)
	})
}
