package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/leatproject/leat/apiclient"
)

const (
	// leeway is the time between the replacement and the expiry of credentials, so that no credential expires on its
	// way to the server.
	leeway = 10 * time.Second
	// pause is the shortest time between a run without success and the next run. A run has no success if it fails, or
	// if the server refuses its credentials. Without the pause, each retry of a watch would start a process.
	pause = 10 * time.Second
)

// Plugin gets credentials from a program. It runs the program when it has no valid credentials. There is a process and
// a goroutine only while a call of Credentials waits. Plugin corresponds to Authenticator of client-go's
// plugin/pkg/client/auth/exec.
type Plugin struct {
	o          *Options                                                  // a pointer, so that fmt does not print the arguments
	isTerminal func(*os.File) bool                                       // a seam for tests
	run        func(context.Context, *process) (printed []byte, _ error) // a seam for tests

	mu        sync.Mutex // guards the fields below
	current   *credentials
	refreshAt time.Time // when to replace current; zero for never
	refused   bool      // the server does not accept current
	refusable time.Time // before this a refusal of current changes nothing
	failure   error     // of the last run that failed
	retryAt   time.Time // before this no run follows it
	flight    *flight   // the run in progress
}

// flight is one run, and the calls that wait for it.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the process is gone

	// guarded by Plugin.mu until done is closed
	waiting   int
	abandoned bool // the last waiting call has left: the process is being killed
	result    apiclient.Credentials
	err       error
}

// New returns a plugin. Credentials runs it, not New. An error in the options is a *FieldError.
func New(o Options) (*Plugin, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Plugin{o: &o, run: run, isTerminal: isTerminal}, nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// String returns the command of the plugin.
func (p *Plugin) String() string { return fmt.Sprintf("exec.Plugin(%q)", p.o.Command) }

// GoString is String.
func (p *Plugin) GoString() string { return p.String() }

// Format is String, whatever the verb.
func (p *Plugin) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, p.String()) }

// Credentials returns the known credentials while they are valid, and runs the plugin otherwise. It blocks until the
// run or ctx ends. Concurrent calls share one run. If all of them leave, the process is killed, and the last call
// returns when the process is gone. An error is that of ctx or an *Error.
//
// Credentials are replaced ten seconds before they expire, unless the plugin returns them later than that. If the
// replacement fails, they are used until they expire. After a failure the plugin does not run for ten seconds.
func (p *Plugin) Credentials(ctx context.Context) (apiclient.Credentials, error) {
	for {
		if err := ctx.Err(); err != nil {
			return apiclient.Credentials{}, err
		}
		known, f, err := p.knownOrJoin(ctx)
		if f == nil {
			return known, err
		}
		select {
		case <-f.done:
			if !f.abandoned {
				return f.result, f.err
			}
			// This call joined a run that was being killed. The next run is for this call.
		case <-ctx.Done():
			p.leave(f)
			return apiclient.Credentials{}, ctx.Err()
		}
	}
}

// Refused makes the next call of Credentials run the plugin, if c are the current credentials. A late refusal of older
// credentials has no effect. If the server also refuses the credentials of the new run, the plugin does not run again
// for ten seconds. Credentials returns the refused ones in this time, because the server's answer says more than an
// error.
func (p *Plugin) Refused(c apiclient.Credentials) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && p.current.is(c) && !time.Now().Before(p.refusable) {
		p.refused = true
	}
}

// knownOrJoin returns the known credentials or the last error if no run is needed, or else the run to wait for.
func (p *Plugin) knownOrJoin(ctx context.Context) (apiclient.Credentials, *flight, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.current != nil && !p.refused && (p.refreshAt.IsZero() || now.Before(p.refreshAt)) {
		return p.current.Credentials, nil, nil
	}
	if now.Before(p.retryAt) {
		c, err := p.despite(p.failure, now)
		return c, nil, err
	}
	if p.flight == nil {
		flying, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.Terms.Timeout)
		p.flight = &flight{cancel: cancel, done: make(chan struct{})}
		go p.fly(flying, p.flight)
	}
	p.flight.waiting++
	return apiclient.Credentials{}, p.flight, nil
}

// despite returns the current credentials while they are valid, although their replacement failed.
func (p *Plugin) despite(err error, now time.Time) (apiclient.Credentials, error) {
	if p.current != nil && !p.refused && !p.current.expiredAt(now) {
		return p.current.Credentials, nil
	}
	return apiclient.Credentials{}, err
}

// leave ends the wait of one call. The last call kills the process, because no process outlives the calls that need it.
func (p *Plugin) leave(f *flight) {
	p.mu.Lock()
	f.waiting--
	last := f.waiting == 0 && p.flight == f && !f.abandoned
	if last {
		f.abandoned = true
		f.cancel()
	}
	p.mu.Unlock()
	if last {
		<-f.done
	}
}

// fly runs the plugin once and stores the result.
func (p *Plugin) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	got, err := p.obtain(ctx)
	now := time.Now()

	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(f.done)
	p.flight = nil
	switch {
	case err == nil:
		f.result = p.accept(got, now)
	case f.abandoned: // a killed run is not a failure
	default:
		p.failure, p.retryAt = err, now.Add(pause)
		f.result, f.err = p.despite(err, now)
	}
}

func (p *Plugin) accept(got *credentials, now time.Time) apiclient.Credentials {
	got.keepCertificate(p.current)
	if p.refused {
		p.refusable = now.Add(pause)
	}
	p.current, p.refused = got, false
	p.refreshAt = got.expires
	if got.expires.Sub(now) > leeway {
		p.refreshAt = got.expires.Add(-leeway)
	}
	return got.Credentials
}

// obtain runs the process and decodes its answer.
func (p *Plugin) obtain(ctx context.Context) (*credentials, error) {
	pr, err := p.prepare()
	if err != nil {
		return nil, p.explain(err)
	}
	printed, err := p.run(ctx, pr)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("%w: it was ended after %v", ErrTimeout, p.o.Terms.Timeout)
		}
		return nil, p.explain(err)
	}
	got, err := parse(printed, p.o.APIVersion, time.Now())
	if err != nil {
		return nil, p.explain(err)
	}
	return got, nil
}

// explain adds the command to an error, and the hint for a missing command.
func (p *Plugin) explain(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.Command = p.o.Command
	if errors.Is(err, ErrNotFound) {
		e.InstallHint = p.o.InstallHint
	}
	return e
}
