package apiclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// script is a transport that answers with its steps in turn, and then repeats the last one. It records the times of the
// requests.
type script struct {
	steps []step
	times []time.Time
	sent  []string // bodies of the requests
}

type step struct {
	err    error
	code   int
	header map[string]string
	body   string
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		_ = req.Body.Close()
	}
	step := s.steps[min(len(s.times), len(s.steps)-1)]
	s.times, s.sent = append(s.times, time.Now()), append(s.sent, string(sent))
	if step.err != nil {
		return nil, step.err
	}
	h := http.Header{"Content-Type": {jsonType}}
	for name, value := range step.header {
		h.Set(name, value)
	}
	return &http.Response{StatusCode: step.code, Header: h, Proto: "HTTP/1.1", Body: io.NopCloser(strings.NewReader(step.body))}, nil
}

// waits returns the times between the requests.
func (s *script) waits() []time.Duration {
	var waits []time.Duration
	for i := range len(s.times) - 1 {
		waits = append(waits, s.times[i+1].Sub(s.times[i]))
	}
	return waits
}

// later is an answer with Retry-After.
func later(code int, after, body string) step {
	return step{code: code, header: map[string]string{"Retry-After": after}, body: body}
}

// verb is a call with its name.
type verb struct {
	name string
	call func(context.Context, *apiclient.Client) error
}

var (
	getVerb = verb{"get", func(ctx context.Context, c *apiclient.Client) error {
		return must.Err(apiclient.NewTyped[*pod](c, podResource, "").Get(ctx, web, metav1.GetOptions{}))
	}}
	documentVerb = verb{"document", func(ctx context.Context, c *apiclient.Client) error {
		return c.GetDocument(ctx, "/version", &struct{}{})
	}}
	streamVerb = verb{"stream", func(ctx context.Context, c *apiclient.Client) error {
		s, err := c.Stream(ctx, podResource, web, "log", nil)
		if err == nil {
			err = s.Close()
		}
		return err
	}}
	createVerb = verb{"create", func(ctx context.Context, c *apiclient.Client) error {
		return calls["create"](ctx, apiclient.NewTyped[*pod](c, podResource, ""))
	}}
	updateVerb = verb{"update", func(ctx context.Context, c *apiclient.Client) error {
		return must.Err(apiclient.NewTyped[*pod](c, podResource, "").Update(ctx, &pod{Metadata: Metadata{Namespace: "default", Name: "web"}}, metav1.UpdateOptions{}))
	}}
	patchVerb = verb{"patch", func(ctx context.Context, c *apiclient.Client) error {
		patch, err := apiclient.MergePatch(map[string]any{})
		if err == nil {
			_, err = apiclient.NewPartial[*pod](c, podResource, "").Patch(ctx, web, patch, apiclient.PatchOptions{})
		}
		return err
	}}
	deleteVerb = verb{"delete", func(ctx context.Context, c *apiclient.Client) error {
		return apiclient.NewPartial[*pod](c, podResource, "").Delete(ctx, web, metav1.DeleteOptions{})
	}}
	evictVerb = verb{"evict", func(ctx context.Context, c *apiclient.Client) error {
		return must.Err(apiclient.Subresource[*pod, *pod](c, podResource, web, "eviction").Create(ctx, &pod{}, metav1.CreateOptions{}))
	}}
	listVerb = verb{"list", func(ctx context.Context, c *apiclient.Client) error {
		return calls["list"](ctx, apiclient.NewTyped[*pod](c, podResource, ""))
	}}
	watchVerb = verb{"watch", func(ctx context.Context, c *apiclient.Client) error {
		return calls["watch"](ctx, apiclient.NewTyped[*pod](c, podResource, ""))
	}}

	reads  = []verb{getVerb, documentVerb, streamVerb}
	writes = []verb{createVerb, updateVerb, patchVerb, deleteVerb, evictVerb}
	onces  = []verb{listVerb, watchVerb}
	all    = slices.Concat(reads, writes, onces)
)

const (
	starting = "the request has been made before all known HTTP paths have been installed, please try again"
	stopping = "apiserver is shutting down"
	budget   = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests","message":"no",` +
		`"details":{"retryAfterSeconds":10,"causes":[{"reason":"DisruptionBudget","message":"web needs 1"}]}}`
)

func unavailable(message string) string { return status(503, "ServiceUnavailable", message) }

// lost is the error of a transport whose connection ended.
func lost(err error) step { return step{err: err} }

func opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Err: err}
}

func TestWhatIsRepeated(t *testing.T) {
	const s = "1"
	none := []verb{}
	for _, c := range []struct {
		name  string
		step  step
		again []verb
	}{
		{"429", later(429, s, ""), slices.Concat(reads, writes)},
		{"429 of a Status", step{code: 429, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":1}}`}, slices.Concat(reads, writes)},
		{"429 at once", later(429, "0", ""), slices.Concat(reads, writes)},
		{"429 in the past", later(429, "Sat, 01 Jan 2000 00:00:00 GMT", ""), slices.Concat(reads, writes)},
		{"429 that asks for nothing", step{code: 429}, none},
		{"429 with nonsense", later(429, "soon", ""), none},
		{"429 with a negative number", later(429, "-1", ""), none},
		{"429 with a broken number", later(429, "1.5", ""), none},
		{"429 of a budget", later(429, s, budget), none},
		{"500", later(500, s, status(500, "InternalError", "etcd")), reads},
		{"500 that asks for nothing", step{code: 500}, none},
		{"502", later(502, s, ""), reads},
		{"503", later(503, s, ""), reads},
		{"503 of a Status", later(503, s, unavailable("the backend is gone")), reads},
		{"503 of a server that starts", later(503, s, unavailable(starting)), slices.Concat(reads, writes)},
		{"503 of a server that stops", later(503, s, unavailable(stopping)), slices.Concat(reads, writes)},
		{"503 of who says so for another reason", later(503, s, status(503, "InternalError", stopping)), reads},
		{"503 of a server that stops and asks for nothing", step{code: 503, body: unavailable(stopping)}, none},
		{"504", later(504, s, ""), reads},
		{"400", later(400, s, ""), none},
		{"404", later(404, s, ""), none},
		{"409", later(409, s, ""), none},

		{"refused", lost(opError("dial", syscall.ECONNREFUSED)), slices.Concat(reads, writes)},
		{"reset", lost(opError("read", syscall.ECONNRESET)), reads},
		{"broken pipe", lost(opError("write", syscall.EPIPE)), reads},
		{"EOF", lost(io.EOF), reads},
		{"EOF in the head", lost(io.ErrUnexpectedEOF), reads},
		{"HTTP/2 lost", lost(errors.New("http2: client connection lost")), reads},
		{"HTTP/2 GOAWAY", lost(errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=\"\"")), reads},
		{"idle connection closed", lost(errors.New("http: server closed idle connection")), reads},
		{"no route", lost(opError("dial", syscall.EHOSTUNREACH)), none},
		{"another name", lost(&net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}), none},
		{"no HTTP", lost(errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response")), none},
	} {
		for _, v := range all {
			fixture.Bubble(t, c.name+"/"+v.name, func(t *testing.T) {
				s := &script{steps: []step{c.step, {code: 200, body: onePod}}}
				err := v.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s}))
				again := slices.ContainsFunc(c.again, func(a verb) bool { return a.name == v.name })
				if !again {
					require.Error(t, err)
					require.NotContains(t, err.Error(), "(sent ")
					require.Len(t, s.times, 1)
					return
				}
				require.NoError(t, err)
				require.Len(t, s.times, 2)
				require.Equal(t, s.sent[0], s.sent[1], "the request is the same")
			})
		}
	}
}

func TestWaits(t *testing.T) {
	inAWhile := func() string { return time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		name string
		step func() step
		want []time.Duration
	}{
		{"seconds", func() step { return later(429, "7", "") }, []time.Duration{7 * time.Second}},
		{"a date", func() step { return later(503, inAWhile(), "") }, []time.Duration{20 * time.Second}},
		{"a date in another form", func() step { return later(429, time.Now().Add(9*time.Second).UTC().Format(time.ANSIC), "") }, []time.Duration{9 * time.Second}},
		{"at once", func() step { return later(429, "0", "") }, []time.Duration{time.Second}},
		{"in the past", func() step { return later(429, "Sat, 01 Jan 2000 00:00:00 GMT", "") }, []time.Duration{time.Second}},
		{"a lost connection", func() step { return lost(io.EOF) }, []time.Duration{time.Second / 4, time.Second / 2, time.Second}},
	} {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			<-time.After(time.Hour + time.Second/3) // clocks have an accuracy of one second
			s := &script{steps: append(slices.Repeat([]step{c.step()}, len(c.want)), step{code: 200, body: onePod})}
			require.NoError(t, getVerb.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s})))
			require.Len(t, s.waits(), len(c.want))
			for i, wait := range s.waits() {
				require.GreaterOrEqual(t, wait, c.want[i])
				require.LessOrEqual(t, wait, c.want[i]*5/4+1)
			}
		})
	}
}

func TestWaitsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{later(429, "1", "")}}
		require.Error(t, getVerb.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s})))
		require.Len(t, s.waits(), 10)
		require.Greater(t, slices.Max(s.waits())-slices.Min(s.waits()), 10*time.Millisecond)
	})
}

// TestRepetitionHasBounds counts the requests, and checks the time at the end.
func TestRepetitionHasBounds(t *testing.T) {
	busy := func(after string) []step { return []step{later(429, after, "")} }
	for _, c := range []struct {
		name        string
		retry       apiclient.Retry
		deadline    time.Duration
		steps       []step
		sent        int
		least, most time.Duration // until the error
	}{
		{"ten times", apiclient.Retry{}, 0, busy("1"), 11, 10 * time.Second, 12500 * time.Millisecond},
		{"as often as wanted", apiclient.Retry{Max: 2}, 0, busy("1"), 3, 2 * time.Second, 2500 * time.Millisecond},
		{"never", apiclient.Retry{Max: -1}, 0, busy("1"), 1, 0, 0},
		{"never, not even on a new connection", apiclient.Retry{Max: -1}, 0, []step{lost(io.EOF)}, 1, 0, 0},
		{"on three new connections", apiclient.Retry{}, 0, []step{lost(io.EOF)}, 4, 1750 * time.Millisecond, 2200 * time.Millisecond},
		{"a minute", apiclient.Retry{}, 0, busy("20"), 3, 40 * time.Second, 50 * time.Second},
		{"just a minute", apiclient.Retry{}, 0, busy("60"), 2, time.Minute, time.Minute},
		{"more than a minute", apiclient.Retry{}, 0, busy("61"), 1, 0, 0},
		{"for years", apiclient.Retry{}, 0, busy("99999999999999999999"), 1, 0, 0},
		{"until a distant year", apiclient.Retry{}, 0, busy("Fri, 31 Dec 9999 23:59:59 GMT"), 1, 0, 0},
		{"as long as wanted", apiclient.Retry{Within: 3 * time.Minute}, 0, busy("61"), 3, 122 * time.Second, 153 * time.Second},
		{"longer than the caller has", apiclient.Retry{}, 5 * time.Second, busy("6"), 1, 0, 0},
		{"as long as the caller has", apiclient.Retry{}, 5 * time.Second, busy("3"), 2, 3 * time.Second, 3750 * time.Millisecond},
	} {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			ctx := t.Context()
			if c.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			s, start := &script{steps: c.steps}, time.Now()
			err := getVerb.call(ctx, newClient(t, apiclient.Config{Host: "http://h", Transport: s, Retry: c.retry}))
			require.Len(t, s.times, c.sent)
			took := time.Since(start)
			require.True(t, c.least <= took && took <= c.most, "%v", took)
			require.True(t, apierrors.IsTooManyRequests(err) || errors.Is(err, io.EOF), "%v", err)
			if c.sent > 1 {
				require.ErrorContains(t, err, fmt.Sprintf("(sent %d times)", c.sent))
			} else {
				require.NotContains(t, err.Error(), "(sent ")
			}
		})
	}
}

func TestAContextEndsEachWait(t *testing.T) {
	for _, v := range slices.Concat(reads, writes) {
		fixture.Bubble(t, v.name, func(t *testing.T) {
			s := &script{steps: []step{later(429, "30", "")}}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, cancel)
			start := time.Now()
			err := v.call(ctx, newClient(t, apiclient.Config{Host: "http://h", Transport: s}))
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, apierrors.IsTooManyRequests(err), "the error has the reason for the wait: %v", err)
			require.Equal(t, 10*time.Second, time.Since(start))
			require.Len(t, s.times, 1)
		})
	}
}

// TestRefusedCredentialsAndBusyServers has requests with two reasons to be repeated.
func TestRefusedCredentialsAndBusyServers(t *testing.T) {
	for _, v := range all {
		fixture.Bubble(t, v.name, func(t *testing.T) {
			s := &script{steps: []step{{code: 401}, {code: 200, body: onePodList}}}
			source := &renewed{}
			err := v.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s, Credentials: source}))
			require.False(t, apierrors.IsUnauthorized(err), "%v", err)
			require.Len(t, s.times, 2, "the second attempt has another token")
			require.Zero(t, time.Since(s.times[0]))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{code: 401}, later(429, "1", ""), {code: 401}, {code: 200, body: onePod}}}
		err := getVerb.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s, Credentials: &renewed{}}))
		require.True(t, apierrors.IsUnauthorized(err), "the number of attempts is there once: %v", err)
		require.ErrorContains(t, err, "(sent 3 times)")
	})
}

// renewed is a source that has another token after each refusal.
type renewed struct{ refusals int }

func (r *renewed) Credentials(context.Context) (apiclient.Credentials, error) {
	return apiclient.Credentials{Token: apiclient.NewSecret(fmt.Sprint("token-", r.refusals))}, nil
}

func (r *renewed) Refused(apiclient.Credentials) { r.refusals++ }

// slow is a limiter that delays each request.
type slow struct {
	each  time.Duration
	err   error // returned if the wait would be too long
	count int
}

func (l *slow) Wait(ctx context.Context) error {
	l.count++
	deadline, ok := ctx.Deadline()
	if l.err != nil && ok && time.Until(deadline) < l.each {
		return l.err
	}
	select {
	case <-time.After(l.each):
		return nil
	case <-ctx.Done():
		return errors.New("somebody gave up")
	}
}

func TestTheLimiterDelaysAllExceptWatches(t *testing.T) {
	for _, v := range all {
		fixture.Bubble(t, v.name, func(t *testing.T) {
			s, limiter, start := &script{steps: []step{{code: 404}}}, &slow{each: 3 * time.Second}, time.Now()
			var seen []apiclient.Request
			c := newClient(t, apiclient.Config{Host: "http://h", Transport: s, Limiter: limiter, OnRequest: collect(&seen)})
			require.Error(t, v.call(t.Context(), c))
			want := 3 * time.Second
			if v.name == "watch" {
				want = 0
			}
			require.Equal(t, want, time.Since(start))
			require.Equal(t, want, seen[0].Limited)
			require.Zero(t, seen[0].Total, "the wait does not count as latency")
		})
	}
}

func TestTheLimiterDelaysEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, limiter := &script{steps: []step{later(429, "1", ""), later(429, "1", ""), {code: 200, body: onePod}}}, &slow{}
		require.NoError(t, getVerb.call(t.Context(), newClient(t, apiclient.Config{Host: "http://h", Transport: s, Limiter: limiter})))
		require.Equal(t, 3, limiter.count)
	})
}

// TestALimiterThatRefusesIsNamed has a context that ends first, and one that would.
func TestALimiterThatRefusesIsNamed(t *testing.T) {
	errWould := errors.New("would exceed the deadline")
	for name, c := range map[string]struct {
		limiter slow
		took    time.Duration
		is      error
	}{
		"ended":     {slow{each: time.Minute}, 20 * time.Second, context.DeadlineExceeded},
		"would end": {slow{each: time.Minute, err: errWould}, 0, errWould},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, start := &script{steps: []step{{code: 200}}}, time.Now()
			var seen []apiclient.Request
			err := getVerb.call(ctx, newClient(t, apiclient.Config{Host: "http://h", Transport: s, Limiter: &c.limiter, OnRequest: collect(&seen)}))
			var typed *apiclient.LimiterError
			require.ErrorAs(t, err, &typed)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "get pods default/web: apiclient: Config.Limiter refused the request after "+c.took.String())
			require.Equal(t, c.took, time.Since(start))
			require.Empty(t, s.times, "nothing was sent")
			require.Len(t, seen, 1)
			require.Equal(t, c.took, seen[0].Limited)
			require.ErrorIs(t, seen[0].Err, c.is)
		})
	}
}
