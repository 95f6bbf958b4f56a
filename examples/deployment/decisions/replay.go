package decisions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/examples/deployment/rollout"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/reconcile/events"
)

// Recorded is what a recording has of the three collections that the controller reads.
type Recorded struct {
	deployments *recording.Timeline[*appsv1.Deployment]
	sets        *recording.Timeline[*appsv1.ReplicaSet]
	pods        *recording.Timeline[*workload.Pod]
}

// Load reads a recording. The error also says which changes the recording has lost.
func Load(ctx context.Context, r *recording.Reader) (*Recorded, error) {
	var out Recorded
	var errs [3]error
	out.deployments, errs[0] = load[*appsv1.Deployment](ctx, r, workload.Deployments)
	out.sets, errs[1] = load[*appsv1.ReplicaSet](ctx, r, workload.ReplicaSets)
	out.pods, errs[2] = load[*workload.Pod](ctx, r, workload.Pods)
	return &out, errors.Join(errs[:]...)
}

func load[T api.Object](ctx context.Context, r *recording.Reader, of api.Resource) (*recording.Timeline[T], error) {
	t, err := recording.Load[T](ctx, r, func(s *recording.Stream) bool {
		return s.Resource().GroupVersionResource() == of.GroupVersionResource()
	})
	if err == nil && len(t.Notes()) > 0 {
		err = fmt.Errorf("decisions: the recording of %s is not complete: %s", of, strings.Join(t.Notes(), "; "))
	}
	return t, err
}

// Replay lets the reconciler decide again: each decision of a run of production, in its order, from the same versions
// of the caches, at the same time and with the same answers. Call it in a synctest bubble. The error says that the
// recording cannot bring the caches to a version; the decisions before it are returned.
func Replay(ctx context.Context, in *Recorded, namespace string, run []*Decision) (again []*Decision, err error) {
	if len(run) == 0 {
		return nil, nil
	}
	until(run[0].Read.At) // before the informers run: in the years since the beginning of a bubble, watches end often
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	deployments := recording.NewSteppedSource(in.deployments, workload.Deployments, namespace)
	sets := recording.NewSteppedSource(in.sets, workload.ReplicaSets, namespace)
	pods := recording.NewSteppedSource(in.pods, workload.Pods, namespace)
	answers := &answering{}
	client, err := apiclient.New(apiclient.Config{Host: "http://recording.invalid", Transport: answers, DisableProtobuf: true})
	if err != nil {
		return nil, err
	}
	events, err := events.New(client, events.Options{Controller: "replay", CoreV1: true})
	if err != nil {
		return nil, err
	}
	var log Log
	o := log.Note(rollout.Options{
		Deployments: cachedclient.NewTyped(apiclient.NewTyped[*appsv1.Deployment](client, workload.Deployments, namespace), informer.New(deployments, informer.Options[*appsv1.Deployment]{}), cachedclient.Options{}),
		ReplicaSets: cachedclient.NewTyped(apiclient.NewTyped[*appsv1.ReplicaSet](client, workload.ReplicaSets, namespace), informer.New(sets, informer.Options[*appsv1.ReplicaSet]{}), cachedclient.Options{}),
		Pods:        cachedclient.NewPartial(apiclient.NewPartial[*workload.Pod](client, workload.Pods, namespace), informer.New(pods, informer.Options[*workload.Pod]{}), cachedclient.Options{}),
		Recorder:    events,
	})
	reconciler := rollout.NewReconciler(o)
	for _, run := range []func(context.Context) error{o.Deployments.Informer().Run, o.ReplicaSets.Informer().Run, o.Pods.Informer().Run} {
		running.Go(func() { _ = run(ctx) }) // it ends with the context; an informer that fails has no version
	}
	for _, d := range run {
		until(d.Read.At)
		err := errors.Join(deployments.Advance(d.Read.Deployments), sets.Advance(d.Read.ReplicaSets), pods.Advance(d.Read.Pods))
		if err != nil {
			return log.all, fmt.Errorf("decisions: reconcile of %s: %w", api.FormatKey(d.Key), err)
		}
		synctest.Wait()
		answers.next = d.Requests
		_, _ = reconciler.Reconcile(ctx, d.Key) // the log has the result
	}
	return log.all, nil
}

// until waits for a time, unless it has passed.
func until(at time.Time) {
	if pause := time.Until(at); pause > 0 {
		<-time.After(pause)
	}
}

// answering answers requests as the server of production did.
type answering struct{ next []*Request }

// RoundTrip answers the next request of a decision, or with a conflict if production sent another one.
func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := requestOf(r)
	if err != nil {
		return nil, err
	}
	known := &Request{Code: http.StatusConflict, Answer: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"production sent another request"}`}
	if len(a.next) > 0 && a.next[0].Method == sent.Method && a.next[0].Path == sent.Path && a.next[0].Body == sent.Body {
		known, a.next = a.next[0], a.next[1:]
	}
	if d, ok := r.Context().Value(noting{}).(*Decision); ok {
		sent.Code, sent.Answer, sent.Err = known.Code, known.Answer, known.Err
		d.Requests = append(d.Requests, sent)
	}
	if known.Err != nil {
		return nil, known.Err
	}
	return &http.Response{
		StatusCode: known.Code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(known.Answer)), Request: r,
	}, nil
}
