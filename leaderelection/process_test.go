package leaderelection_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/leaderelection"
)

// condition is how a process fares.
type condition int

const (
	connected condition = iota
	late                // answers come three to thirty seconds after the server did what was asked
	cutOff              // requests hang, and the work goes on
	stopped             // nothing happens until it is connected again, as after SIGSTOP
	killed              // nothing happens any more
)

var errKilled = errors.New("the process is gone")

// process is a replica with clocks of its own. Its wall clock shows in what it writes. Its rate is simulated by
// durations: for a process whose clock runs at rate 1.2, a minute is 50 s long.
type process struct {
	*leaderelection.Elector
	election *election
	client   *apiclient.Client
	rate     float64
	stop     context.CancelFunc
	ended    chan struct{}

	mu        sync.Mutex // guards the fields below
	condition condition
	changed   chan struct{} // closed when the condition changes
}

// start starts a replica with the next of the rates.
func (e *election) start() *process {
	p := &process{
		election: e, rate: e.rates[len(e.all)%len(e.rates)], ended: make(chan struct{}), changed: make(chan struct{}),
	}
	var err error
	transport := p.transport(e.server.Client().Transport)
	p.client, err = apiclient.New(apiclient.Config{Host: e.server.URL(), Transport: transport})
	require.NoError(e.t, err)
	p.Elector, err = leaderelection.New(p.client, leaderelection.Options{
		Namespace: leaseKey.Namespace, Name: leaseKey.Name, Identity: fmt.Sprint("process-", len(e.all)),
		LeaseDuration: p.local(nominalLease), RenewDeadline: p.local(nominalDeadline), RetryPeriod: p.local(nominalRetry),
	})
	require.NoError(e.t, err)
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

// local is how long the process takes for a duration of its own clock.
func (p *process) local(d time.Duration) time.Duration { return time.Duration(float64(d) / p.rate) }

// set changes how the process fares; one that was killed stays so.
func (p *process) set(c condition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.condition == killed {
		return
	}
	p.condition = c
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *process) is() (condition, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.condition, p.changed
}

// run waits while the process is stopped; false means that it was killed. Everything that it does passes through here.
func (p *process) run() bool {
	for {
		c, changed := p.is()
		if c != stopped {
			return c != killed
		}
		<-changed
	}
}

// work writes twice a second, after asking whether it may, until its context ends.
func (p *process) work(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if p.run() && p.Leading() {
			p.election.write(p.Identity())
		}
	}
}

// end ends the process as its supervisor would: it is told to, and what remains of it is killed.
func (p *process) end() {
	p.stop()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.set(killed)
		<-p.ended
	}
}

func (p *process) hasEnded() bool {
	if c, _ := p.is(); c == killed {
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
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if err := p.reach(r.Context()); err != nil {
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
		if c, _ := p.is(); c == late {
			p.linger(r.Context())
		}
		if err := p.reach(r.Context()); err != nil {
			return nil, errors.Join(err, answer.Body.Close())
		}
		return p.inbound(answer)
	})
}

// reach waits until the process is neither stopped nor cut off. Only a process that runs notices the end of a context.
func (p *process) reach(ctx context.Context) error {
	for {
		c, changed := p.is()
		switch {
		case c == killed:
			return errKilled
		case c == stopped:
			<-changed
		case ctx.Err() != nil:
			return ctx.Err()
		case c == cutOff:
			select {
			case <-changed:
			case <-ctx.Done():
			}
		default:
			return nil
		}
	}
}

// linger delays an answer that the server has given.
func (p *process) linger(ctx context.Context) {
	select {
	case <-time.After(time.Duration(p.election.number(3, 30)) * time.Second):
	case <-ctx.Done():
	}
}

// outbound writes times of the process's wall clock, which is hours off and jumps, and durations in nominal time.
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
		if spec["leaseDurationSeconds"] == p.local(nominalLease).Seconds() {
			spec["leaseDurationSeconds"] = nominalLease.Seconds()
		}
	})
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return r, err
}

// inbound writes durations as the clock of the process measures them.
func (p *process) inbound(answer *http.Response) (*http.Response, error) {
	body, err := p.rewrite(answer.Body, func(spec map[string]any) {
		if spec["leaseDurationSeconds"] == nominalLease.Seconds() {
			spec["leaseDurationSeconds"] = p.local(nominalLease).Seconds()
		}
	})
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, err
}

// rewrite reads a body, which it closes, and returns it with another spec, if it has one.
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
