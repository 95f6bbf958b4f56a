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
	// leeway is how long before they expire credentials are replaced, so that none expires on its way to the server.
	leeway = 10 * time.Second
	// pause is the least time from a run that did not help, because it failed or because the server refused what it
	// gave, to the next: a watch that retries must not start a process each time.
	pause = 10 * time.Second
)

// Plugin gets credentials from a program that it runs when it has none, or none that are good any longer. It owns
// nothing between calls: there is no process and no goroutine unless somebody waits in Credentials. It corresponds to
// Authenticator of client-go's plugin/pkg/client/auth/exec.
type Plugin struct {
	o          *Options                                                  // behind a pointer, where fmt does not find arguments
	isTerminal func(*os.File) bool                                       // a seam for tests
	run        func(context.Context, *process) (printed []byte, _ error) // a seam for tests

	mu        sync.Mutex // guards the fields below
	current   *credentials
	refreshAt time.Time // when current are to be replaced; zero for never
	refused   bool      // the server does not accept current
	refusable time.Time // before this a refusal of current changes nothing
	failure   error     // of the last run that failed
	retryAt   time.Time // before this no run follows it
	flight    *flight   // the run in progress
}

// flight is one run, and those who wait for it.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the process is gone

	// guarded by Plugin.mu until done is closed
	waiting   int
	abandoned bool // the last who waited has left: the process is being killed
	result    apiclient.Credentials
	err       error
}

// New makes a plugin; it is not run before Credentials is called. What is wrong in the options is a *FieldError.
func New(o Options) (*Plugin, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Plugin{o: &o, run: run, isTerminal: isTerminal}, nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// String names the plugin.
func (p *Plugin) String() string { return fmt.Sprintf("exec.Plugin(%q)", p.o.Command) }

// GoString is String.
func (p *Plugin) GoString() string { return p.String() }

// Format is String, whatever the verb.
func (p *Plugin) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, p.String()) }

// Credentials returns those that are known while they are good, and runs the plugin otherwise. It blocks until the run
// ends or ctx does. One run serves all who ask; it ends early, with its process, when all of them have left, and the
// last of them returns when it is gone. An error other than that of ctx is an *Error.
//
// Credentials are replaced ten seconds before they expire, unless the plugin gives them out later than that; if that
// fails, they serve until they do expire. After a failure the plugin is not run again for ten seconds.
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
			// This one came while a run was being killed; the next is for him.
		case <-ctx.Done():
			p.leave(f)
			return apiclient.Credentials{}, ctx.Err()
		}
	}
}

// Refused makes the next call of Credentials run the plugin, if c are the credentials that it would return: who is late
// to tell that older ones were refused changes nothing. If those are refused that a run gave because of a refusal, the
// plugin is not run again for ten seconds, and they are returned as before: the server's answer says more than ours.
func (p *Plugin) Refused(c apiclient.Credentials) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && p.current.is(c) && !time.Now().Before(p.refusable) {
		p.refused = true
	}
}

// knownOrJoin answers without a run if it can, and else returns the flight to wait for.
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

// despite returns the current credentials in spite of a failure to replace them, while they are good.
func (p *Plugin) despite(err error, now time.Time) (apiclient.Credentials, error) {
	if p.current != nil && !p.refused && !p.current.expiredAt(now) {
		return p.current.Credentials, nil
	}
	return apiclient.Credentials{}, err
}

// leave is for who does not want to wait any longer. Nobody's process outlives those who wanted it.
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

// fly runs the plugin once and lands what came of it.
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
	case f.abandoned: // it was killed, and so has not failed
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

// obtain runs the process and reads its answer.
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

// explain names the plugin in an error, and hints at how to get one that is missing.
func (p *Plugin) explain(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.Command = p.o.Command
	if errors.Is(err, ErrNotFound) {
		e.InstallHint = printable(p.o.InstallHint)
	}
	return e
}
