package leaderelection_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager/leaderelection"
)

var errKilled = errors.New("the process is gone")

// process is a replica with its own clocks. Its wall clock is visible in its writes. Late answers come three to thirty
// seconds after the server has handled the request.
type process struct {
	*fixture.Process
	*leaderelection.Elector
	election *election
	client   *apiclient.Client
	stop     context.CancelFunc
	ended    chan struct{}
}

// start starts a replica with the next of the rates.
func (e *election) start() *process {
	p := &process{
		Process: fixture.NewProcess(e.rates[len(e.all)%len(e.rates)]), election: e, ended: make(chan struct{}),
	}
	transport := p.transport(e.server.Client().Transport)
	p.client = must.Get(apiclient.New(apiclient.Config{Host: e.server.URL(), Transport: transport}))(e.t)
	p.Elector = must.Get(leaderelection.New(p.client, leaderelection.Options{
		Namespace: leaseKey.Namespace, Name: leaseKey.Name, Identity: fmt.Sprint("process-", len(e.all)),
		LeaseDuration: p.Local(nominalLease), RenewDeadline: p.Local(nominalDeadline), RetryPeriod: p.Local(nominalRetry),
	}))(e.t)
	e.all = append(e.all, p)
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		defer close(p.ended)
		if err := p.Run(ctx, p.work); err != nil {
			require.ErrorIs(e.t, err, leaderelection.ErrLost)
		}
		p.client.CloseIdleConnections()
	}()
	return p
}

// work writes twice a second if Leading allows it, until its context ends.
func (p *process) work(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if p.Wait() && p.Leading() {
			p.election.write(p.Identity())
		}
	}
}

// end ends the process as a supervisor does: it cancels the context, waits, and kills the process.
func (p *process) end() {
	p.stop()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.Set(fixture.Killed)
		<-p.ended
	}
}

func (p *process) hasEnded() bool {
	if c, _ := p.Current(); c == fixture.Killed {
		return true
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// transport is the network and the wall clock of the process.
func (p *process) transport(server http.RoundTripper) http.RoundTripper {
	return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if err := p.waitForNetwork(r.Context()); err != nil {
			return nil, err
		}
		r, err := p.outbound(r)
		if err != nil {
			return nil, err
		}
		answer, err := server.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if c, _ := p.Current(); c == fixture.Late {
			p.delayAnswer(r.Context())
		}
		if err := p.waitForNetwork(r.Context()); err != nil {
			return nil, errors.Join(err, answer.Body.Close())
		}
		return p.inbound(answer)
	})
}

// waitForNetwork waits until the process is neither stopped nor disconnected. A stopped process does not notice the end
// of a context.
func (p *process) waitForNetwork(ctx context.Context) error {
	for {
		c, changed := p.Current()
		switch {
		case c == fixture.Killed:
			return errKilled
		case c == fixture.Stopped:
			<-changed
		case ctx.Err() != nil:
			return ctx.Err()
		case c == fixture.CutOff:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		default:
			return nil
		}
	}
}

// delayAnswer delays an answer of the server.
func (p *process) delayAnswer(ctx context.Context) {
	select {
	case <-time.After(time.Duration(p.election.number(3, 30)) * time.Second):
	case <-ctx.Done():
	}
}

// outbound replaces times by those of the process's wall clock, which is wrong by hours and jumps, and durations by
// nominal ones.
func (p *process) outbound(r *http.Request) (*http.Request, error) {
	if r.Body == nil {
		return r, nil
	}
	body, err := p.rewrite(r.Body, func(spec map[string]any) {
		wall := time.Now().Add(time.Duration(p.election.number(-5*3600, 5*3600)) * time.Second)
		for _, name := range []string{"renewTime", "acquireTime"} {
			if spec[name] != nil {
				spec[name] = wall.UTC().Format("2006-01-02T15:04:05.000000Z")
			}
		}
		if spec["leaseDurationSeconds"] == p.Local(nominalLease).Seconds() {
			spec["leaseDurationSeconds"] = nominalLease.Seconds()
		}
	})
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return r, err
}

// inbound replaces durations by those that the clock of the process measures.
func (p *process) inbound(answer *http.Response) (*http.Response, error) {
	body, err := p.rewrite(answer.Body, func(spec map[string]any) {
		if spec["leaseDurationSeconds"] == nominalLease.Seconds() {
			spec["leaseDurationSeconds"] = p.Local(nominalLease).Seconds()
		}
	})
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, err
}

// rewrite reads and closes a body, and returns it with a changed spec, if it has a spec.
func (p *process) rewrite(body io.ReadCloser, change func(spec map[string]any)) ([]byte, error) {
	content, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(content, &o); err != nil {
		return content, err
	}
	spec, ok := o["spec"].(map[string]any)
	if !ok {
		return content, nil
	}
	change(spec)
	return json.Marshal(o)
}
