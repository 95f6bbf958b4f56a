package apiclient_test

import (
	"context"
	"errors"
	"fmt"
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
)

// bookmark encodes a bookmark.
func bookmark(version int, initialEventsEnd bool) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"%v"}}}}`+"\n", version, initialEventsEnd)
}

// over has the ways to watch.
var over = map[string]func(context.Context, *apiclient.PartialClient[*pod], api.Options[*pod]) func(func(api.Event[*pod], error) bool){
	"HTTP": func(ctx context.Context, r *apiclient.PartialClient[*pod], o api.Options[*pod]) func(func(api.Event[*pod], error) bool) {
		return r.Watch(ctx, o)
	},
	"an Opener": func(ctx context.Context, r *apiclient.PartialClient[*pod], o api.Options[*pod]) func(func(api.Event[*pod], error) bool) {
		return r.WatchOver(ctx, o, func(req *http.Request, o apiclient.Opening) (io.ReadCloser, string, error) {
			resp, err := (&http.Client{Transport: o.Transport}).Do(req)
			if err != nil {
				return nil, "", err
			}
			return resp.Body, jsonType, nil
		})
	},
}

// bookmarked returns the options of a watch, with or without bookmarks.
func bookmarked(bookmarks bool) api.Options[*pod] {
	return api.Options[*pod]{ListOptions: metav1.ListOptions{AllowWatchBookmarks: bookmarks}}
}

// TestAWatchWithoutItsBookmarksEnds lists what a server sends, at which second, and when the watch then ends.
func TestAWatchWithoutItsBookmarksEnds(t *testing.T) {
	type sent struct {
		at    int // seconds
		frame string
	}
	minutely := func(n int) (all []sent) {
		for i := range n {
			all = append(all, sent{60 * (i + 1), bookmark(i+1, false)})
		}
		return all
	}
	const day = 24 * 60 * 60
	for _, c := range []struct {
		name   string
		o      api.Options[*pod]
		frames []sent
		end    int // seconds; a day if the server ends the watch
		silent time.Duration
	}{
		{"no bookmark arrives", bookmarked(true), nil, day, 0},
		{"one bookmark shows no interval", bookmarked(true), minutely(1), day, 0},
		{"bookmarks that were not requested do not count", bookmarked(false), minutely(5), day, 0},
		{"bookmarks stop", bookmarked(true), minutely(5), 300 + 240, 4 * time.Minute},
		{"bookmarks were frequent", bookmarked(true), []sent{{5, bookmark(1, false)}, {10, bookmark(2, false)}}, 10 + 180, 3 * time.Minute},
		{"bookmarks were rare", bookmarked(true), []sent{{5, bookmark(1, false)}, {605, bookmark(2, false)}}, 605 + 2400, 40 * time.Minute},
		{"the longest time between them counts", bookmarked(true), []sent{{5, bookmark(1, false)}, {205, bookmark(2, false)}, {210, bookmark(3, false)}}, 210 + 800, 800 * time.Second},
		{"the end of the initial list is not one of them", bookmarked(true), []sent{{1, bookmark(1, true)}, {60, bookmark(2, false)}}, day, 0},
		{"events are not silence", bookmarked(true), append(minutely(3), sent{400, frame(9)}, sent{600, frame(10)}), 600 + 240, 4 * time.Minute},
		{"the timer does not move with events", bookmarked(true), append(minutely(3), sent{181, frame(9)}, sent{419, frame(10)}, sent{421, frame(11)}), 421 + 240, 4 * time.Minute},
		{"the limit grows while its timer runs", bookmarked(true), append(minutely(2), sent{220, bookmark(3, false)}), 220 + 400, 400 * time.Second},
		{"half an event is not silence", bookmarked(true), append(minutely(3), sent{400, frame(9)[:20]}), 400 + 240, 4 * time.Minute},
	} {
		for how, watch := range over {
			fixture.Bubble(t, c.name+"/"+how, func(t *testing.T) {
				start := time.Now()
				cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
					flushed(w, jsonType, "")
					for _, f := range append(c.frames, sent{day, ""}) {
						select {
						case <-time.After(time.Until(start.Add(time.Duration(f.at) * time.Second))):
							flushed(w, jsonType, f.frame)
						case <-r.Context().Done():
							return
						}
					}
				})
				var seen []apiclient.Request
				cfg.OnRequest = collect(&seen)
				var last error
				for _, err := range watch(t.Context(), apiclient.NewPartial[*pod](newClient(t, cfg), podResource, ""), c.o) {
					last = err
				}
				require.Equal(t, time.Duration(c.end)*time.Second, time.Since(start))
				require.Len(t, seen, 1)
				if c.end == day {
					require.NoError(t, last)
					return
				}
				var typed *apiclient.WatchTimeoutError
				require.ErrorAs(t, last, &typed)
				require.Equal(t, c.silent, typed.Silence)
				require.ErrorContains(t, last, "watch pods: apiclient: ")
				require.ErrorIs(t, last, api.ErrOverdue)
				require.NotErrorIs(t, last, context.Canceled)
				var timeout net.Error
				require.True(t, errors.As(last, &timeout) && timeout.Timeout(), "%v", last)
				require.ErrorAs(t, seen[0].Err, &typed)
			})
		}
	}
}

// TestASlowCallerIsNotSilence handles an event for an hour while the server sends more.
func TestASlowCallerIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			for i := range 100 {
				flushed(w, jsonType, bookmark(i+1, false))
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
					return
				}
			}
		})
		count := 0
		for _, err := range apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "").Watch(t.Context(), bookmarked(true)) {
			require.NoError(t, err)
			if count++; count == 10 {
				<-time.After(time.Hour)
			}
		}
		require.Equal(t, 100, count)
	})
}

// TestSilenceAfterASlowCaller handles an event for longer than the limit. Then the server sends nothing more.
func TestSilenceAfterASlowCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			for i := range 3 {
				flushed(w, jsonType, bookmark(i+1, false))
				<-time.After(time.Minute)
			}
			<-r.Context().Done()
		})
		start, count := time.Now(), 0
		var last error
		for _, err := range apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "").Watch(t.Context(), bookmarked(true)) {
			if count++; count == 3 {
				<-time.After(7 * time.Minute) // the timer fires in this time
			}
			last = err
		}
		require.ErrorIs(t, last, api.ErrOverdue)
		require.Equal(t, (2+7+4)*time.Minute, time.Since(start))
	})
}

// TestTimeoutSecondsAreForTheServer has a server that keeps a watch open for longer than requested.
func TestTimeoutSecondsAreForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			flushed(w, jsonType, "")
			<-time.After(time.Hour)
		})
		start, seconds := time.Now(), int64(60)
		o := bookmarked(true)
		o.TimeoutSeconds = &seconds
		for _, err := range apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "").Watch(t.Context(), o) {
			require.NoError(t, err)
		}
		require.Equal(t, time.Hour, time.Since(start))
	})
}
