package decisions

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/rollout"
)

// Decision is one reconcile: what it read, what it did, and what it returned.
type Decision struct {
	Key      api.Key
	Read     rollout.Read
	Requests []*Request
	Result   controller.Result
	Err      error

	began, ended int64 // the places of the beginning and the end among those of all reconciles
}

// Request is a request of a reconcile, with its answer.
type Request struct {
	Method, Path, Body string
	// Code and Answer are the status and the body. Err is the error if there was no answer.
	Code   int
	Answer string
	Err    error
}

// String returns the decision as lines of text: everything that another run must have in common.
func (d *Decision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s read deployments %s, replicasets %s, pods %s\n", api.FormatKey(d.Key),
		d.Read.At.UTC().Format(time.RFC3339Nano), d.Read.Deployments, d.Read.ReplicaSets, d.Read.Pods)
	for _, r := range d.Requests {
		fmt.Fprintf(&b, "%s %s %s\n", r.Method, r.Path, r.Body)
	}
	fmt.Fprintf(&b, "requeue after %s, priority %v, error %v\n", d.Result.RequeueAfter, d.Result.Priority, d.Err)
	return b.String()
}

// Log notes decisions. The zero value is ready.
type Log struct {
	clock atomic.Int64 // counts beginnings and ends; several reconciles may begin in one nanosecond

	mu  sync.Mutex // guards the field below
	all []*Decision
}

// noting is the key under which the context of a reconcile has its Decision.
type noting struct{}

// Note returns the options with the hooks of the log.
func (l *Log) Note(o rollout.Options) rollout.Options {
	o.OnRead = func(ctx context.Context, r rollout.Read) {
		if d, ok := ctx.Value(noting{}).(*Decision); ok {
			r.At = r.At.Round(0) // without the clock of this process
			d.Read = r
		}
	}
	o.Wrap = func(next controller.Reconciler[api.Key]) controller.Reconciler[api.Key] {
		return controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
			d := &Decision{Key: key, began: l.clock.Add(1)}
			d.Result, d.Err = next.Reconcile(context.WithValue(ctx, noting{}, d), key)
			if d.ended = l.clock.Add(1); ctx.Err() == nil { // otherwise the end of the program decided
				l.mu.Lock()
				defer l.mu.Unlock()
				l.all = append(l.all, d)
			}
			return d.Result, d.Err
		})
	}
	return o
}

// Wrap returns a RoundTripper that notes the requests of reconciles, with their answers.
func (l *Log) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip sends a request, and notes it if a reconcile has made it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	d, ok := r.Context().Value(noting{}).(*Decision)
	if !ok {
		return t.next.RoundTrip(r)
	}
	sent, err := requestOf(r)
	if err != nil {
		return nil, err
	}
	d.Requests = append(d.Requests, sent)
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		var answer []byte
		answer, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body, sent.Code, sent.Answer = io.NopCloser(bytes.NewReader(answer)), resp.StatusCode, string(answer)
	}
	if sent.Err = err; err != nil {
		return nil, err
	}
	return resp, nil
}

// requestOf returns a request without its answer. It reads the body, which the request keeps.
func requestOf(r *http.Request) (*Request, error) {
	sent := &Request{Method: r.Method, Path: r.URL.Path}
	if r.Body == nil {
		return sent, nil
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	sent.Body, r.Body = string(body), io.NopCloser(bytes.NewReader(body))
	return sent, err
}

// Runs returns the decisions in lists, one for each worker that was busy. Each decision of a list began after the one
// before had ended. So the versions of a cache only grow in a list, and a Replay can follow them.
func (l *Log) Runs() (runs [][]*Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.all, func(a, b *Decision) int { return cmp.Compare(a.began, b.began) })
	for _, d := range l.all {
		free := slices.IndexFunc(runs, func(run []*Decision) bool { return d.began > run[len(run)-1].ended })
		if free < 0 {
			runs, free = append(runs, nil), len(runs)
		}
		runs[free] = append(runs[free], d)
	}
	return runs
}
