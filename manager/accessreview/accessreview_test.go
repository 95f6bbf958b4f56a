package accessreview_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager/accessreview"
)

// server answers reviews: the token "scraper" may get /metrics, "stranger" may not, and other tokens are unknown.
type server struct {
	mu      sync.Mutex
	reviews []string
	broken  string // the kind of review that fails
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	kind, spec := review["kind"].(string), review["spec"].(map[string]any)
	s.reviews = append(s.reviews, kind)
	code := http.StatusCreated
	switch {
	case kind == s.broken:
		code = http.StatusForbidden
	case kind == "TokenReview":
		token := spec["token"].(string)
		review["status"] = map[string]any{
			"authenticated": token == "scraper" || token == "stranger", "audiences": []string{"metrics"},
			"user": map[string]any{"username": token, "groups": []string{"g"}, "extra": map[string]any{"k": []string{"v"}}},
		}
	default:
		asked, err := json.Marshal(spec)
		if err != nil {
			return nil, err
		}
		want := `{"extra":{"k":["v"]},"groups":["g"],"nonResourceAttributes":{"path":"/metrics","verb":"get"},"user":"scraper"}`
		review["status"] = map[string]any{"allowed": string(asked) == want}
	}
	body, err := json.Marshal(review)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r,
	}, err
}

func newFilter(t *testing.T, s *server, o accessreview.Options) (*accessreview.Filter, *observer.ObservedLogs) {
	t.Helper()
	client := must.Get(apiclient.New(apiclient.Config{Host: "http://server", Transport: s}))(t)
	core, logs := observer.New(zap.DebugLevel)
	o.Client, o.Logger = client, zap.New(core)
	f := must.Get(accessreview.New(o))(t)
	return f, logs
}

// get returns the code for a request with the given header.
func get(f *accessreview.Filter, method, path, authorization string) int {
	r := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	f.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
	return w.Code
}

func TestTheAPIServerDecides(t *testing.T) {
	for _, c := range []struct {
		method, path, authorization string
		code                        int
	}{
		{"GET", "/metrics", "Bearer scraper", http.StatusTeapot},
		{"GET", "/metrics", "bearer scraper", http.StatusTeapot},
		{"POST", "/metrics", "Bearer scraper", http.StatusForbidden},
		{"GET", "/debug", "Bearer scraper", http.StatusForbidden},
		{"GET", "/metrics", "Bearer stranger", http.StatusForbidden},
		{"GET", "/metrics", "Bearer forged", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer ", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer " + strings.Repeat("x", 65<<10), http.StatusUnauthorized},
		{"GET", "/metrics", "Basic scraper", http.StatusUnauthorized},
		{"GET", "/metrics", "", http.StatusUnauthorized},
	} {
		f, logs := newFilter(t, &server{}, accessreview.Options{})
		require.Equal(t, c.code, get(f, c.method, c.path, c.authorization), "%.80v", c)
		require.Zero(t, logs.Len())
	}
	require.Error(t, must.Err(accessreview.New(accessreview.Options{})))
}

func TestAudiences(t *testing.T) {
	for audience, code := range map[string]int{"metrics": http.StatusTeapot, "vault": http.StatusUnauthorized} {
		f, _ := newFilter(t, &server{}, accessreview.Options{Audiences: []string{audience}})
		require.Equal(t, code, get(f, "GET", "/metrics", "Bearer scraper"))
	}
}

func TestWithoutAReviewNothingIsAdmitted(t *testing.T) {
	for _, kind := range []string{"TokenReview", "SubjectAccessReview"} {
		s := &server{broken: kind}
		f, logs := newFilter(t, s, accessreview.Options{})
		require.Equal(t, http.StatusServiceUnavailable, get(f, "GET", "/metrics", "Bearer scraper"))
		require.Equal(t, 1, logs.Len())
		require.NotContains(t, fmt.Sprint(logs.All()[0].ContextMap()), "scraper")
		s.broken = ""
		require.Equal(t, http.StatusTeapot, get(f, "GET", "/metrics", "Bearer scraper"), "a failure is not kept")
	}
}

func TestAnswersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		f, _ := newFilter(t, s, accessreview.Options{})
		reviews := func(pass time.Duration, authorization string) int {
			<-time.After(pass)
			before := len(s.reviews)
			get(f, "GET", "/metrics", authorization)
			return len(s.reviews) - before
		}
		require.Equal(t, 2, reviews(0, "Bearer scraper"))
		require.Equal(t, 0, reviews(59*time.Second, "Bearer scraper"))
		require.Equal(t, 2, reviews(time.Second, "Bearer scraper"), "a minute is over")
		require.Equal(t, 1, reviews(0, "Bearer forged"))
		require.Equal(t, 0, reviews(time.Second, "Bearer forged"), "a refusal is kept too")
		for n := range 2000 {
			reviews(0, fmt.Sprint("Bearer forged", n))
		}
		require.Equal(t, 1, reviews(0, "Bearer forged"), "the number of answers has a limit")

		f, _ = newFilter(t, s, accessreview.Options{Keep: -1})
		require.Equal(t, 2, reviews(0, "Bearer scraper"))
		require.Equal(t, 2, reviews(0, "Bearer scraper"))
	})
}

// TestRefusedRequestsDoNotRemoveAnswers sends more unknown tokens, and more paths that a user may not read, than
// answers are kept. The answer of the client that is allowed stays.
func TestRefusedRequestsDoNotRemoveAnswers(t *testing.T) {
	s := &server{}
	f, _ := newFilter(t, s, accessreview.Options{Keep: time.Hour})
	require.Equal(t, http.StatusTeapot, get(f, "GET", "/metrics", "Bearer scraper"))
	for n := range 1500 {
		require.Equal(t, http.StatusUnauthorized, get(f, "GET", "/metrics", fmt.Sprint("Bearer forged", n)))
		require.Equal(t, http.StatusForbidden, get(f, "GET", fmt.Sprint("/", n), "Bearer stranger"))
	}
	before := len(s.reviews)
	require.Equal(t, http.StatusTeapot, get(f, "GET", "/metrics", "Bearer scraper"))
	require.Len(t, s.reviews, before)
}
