package testkit

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// Options are the options of Run. The zero value is a server with the built-in resources of testserver.
type Options struct {
	Server testserver.Options
	// From is a server that is forked instead, with its options; see testserver.Server.Fork. Nil means a new server.
	From *testserver.Server
	// Resources are registered in addition, without a schema. A test can also create a CustomResourceDefinition.
	Resources []api.Resource
}

// Kit has the server, the client and the logger of a test. Its T belongs to the bubble (see testing/synctest). Use
// k.Context inside of Run: a program that waits for the context of the outer T makes the Go runtime end the process.
type Kit struct {
	*testing.T
	Server *testserver.Server
	// Client is connected to Server through memory.
	Client *apiclient.Client
	// Logger writes to the log of the test, from level info on. Logs returns these entries.
	Logger *zap.Logger

	logs     *observer.ObservedLogs
	sent     chan struct{} // has an element if a request was sent after the last receive
	programs []*Program
	expected []*expected
}

// expected is a fault that must happen before the test ends.
type expected struct {
	what      string
	injection *testserver.Injection
	times     int
}

// Run calls test in a bubble of fake time, with a running server. When test returns, Run stops the programs that test
// started, the last one first, and then the server.
func Run(t *testing.T, o Options, test func(*Kit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		k := &Kit{T: t, sent: make(chan struct{}, 1)}
		if o.From != nil {
			k.Server = o.From.Fork()
		} else {
			k.Server = testserver.New(o.Server)
		}
		k.Server.Register(o.Resources...)
		core, logs := observer.New(zapcore.InfoLevel)
		k.logs = logs
		k.Logger = zaptest.NewLogger(t, zaptest.Level(zapcore.InfoLevel), zaptest.WrapOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, core) })))
		var err error
		if k.Client, err = apiclient.New(apiclient.Config{Host: k.Server.URL(), Transport: notifying{k.Server.Client().Transport, k.sent}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- k.Server.Run(ctx) }()
		defer func() {
			for i := len(k.programs) - 1; i >= 0; i-- {
				k.programs[i].Stop()
			}
			k.checkFaults()
			cancel()
			if err := <-served; err != nil {
				t.Errorf("testkit: the server ended with an error: %v", err)
			}
		}()
		test(k)
	})
}

// notifying is a transport that signals each request on a channel.
type notifying struct {
	http.RoundTripper
	sent chan<- struct{}
}

func (n notifying) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case n.sent <- struct{}{}:
	default:
	}
	return n.RoundTripper.RoundTrip(r)
}

func (k *Kit) checkFaults() {
	k.Helper()
	for _, e := range k.expected {
		if seen := e.injection.Seen(); seen < e.times {
			k.Errorf("testkit: %s happened %d times and not %d", e.what, seen, e.times)
		}
	}
}

// Program is a program that Start has started.
type Program struct {
	k      *Kit
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // written before ended is closed
	over   bool
}

// Start calls run in a new goroutine. It returns when every goroutine waits for something.
func (k *Kit) Start(run func(context.Context) error) *Program {
	k.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Program{k: k, cancel: cancel, ended: make(chan struct{})}
	k.programs = append(k.programs, p)
	go func() {
		defer close(p.ended)
		p.err = run(ctx)
	}()
	synctest.Wait()
	return p
}

// Stop ends the context of a program and waits until it has returned. A second call does nothing.
func (p *Program) Stop() {
	p.k.Helper()
	if p.over {
		return
	}
	p.over = true
	select {
	case <-p.ended:
		p.k.Errorf("testkit: the program ended before the test did: %v", p.err)
		return
	default:
	}
	p.cancel()
	if <-p.ended; p.err != nil {
		p.k.Errorf("testkit: the program ended with an error: %v", p.err)
	}
}

// Wait waits until a program has ended by itself, and returns its error. Use it for a program that must fail.
func (p *Program) Wait() error {
	<-p.ended
	p.over = true
	return p.err
}

// Idle returns when every goroutine of the program and of the server waits for something. All work that is due is then
// done.
func (k *Kit) Idle() { synctest.Wait() }

// Pass lets time pass, and then waits as Idle does.
func (k *Kit) Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// NextRequest lets time pass until the program sends a request through Client, and then waits as Idle does. The test
// fails if the limit passes without a request. Use it to go to the next deadline of a controller.
func (k *Kit) NextRequest(limit time.Duration) {
	k.Helper()
	select {
	case <-k.sent: // from before this call
	default:
	}
	select {
	case <-k.sent:
		synctest.Wait()
	case <-time.After(limit):
		k.Fatalf("testkit: no request within %s", limit)
	}
}

// LoseEvents breaks every connection, calls during, deletes the server's history, and lets the program connect again.
// Then it waits two minutes, which is longer than the pauses of leat's reflectors. The program gets 410 (Gone) for its
// watches and must list. The test fails if no watch got a 410.
func (k *Kit) LoseEvents(during func()) {
	k.Helper()
	outage := k.Server.Inject(faults.Fault{Effect: faults.Outage{}})
	synctest.Wait()
	during()
	expired := k.Server.Inject(faults.Fault{Effect: faults.Compact{}})
	outage.Remove()
	k.Pass(2 * time.Minute)
	if expired.Seen() == 0 {
		k.Errorf("testkit: LoseEvents: no watch needed the lost events")
	}
	expired.Remove()
}

// Restart breaks every connection and refuses new ones for the given time. The server keeps its objects and its
// history.
func (k *Kit) Restart(d time.Duration) {
	outage := k.Server.Inject(faults.Fault{Effect: faults.Outage{}})
	k.Pass(d)
	outage.Remove()
}

// Fail answers the next requests of a verb for a resource with an error that has the given HTTP code; 409 is a
// conflict. The verb and the resource are those of faults.Match: "pods", "deployments.apps",
// "deployments.apps/status".
func (k *Kit) Fail(verb, resource string, times, code int) {
	i := k.Server.Inject(faults.Fault{
		Match: faults.Match{Verbs: []string{verb}, Resource: resource}, Times: times, Effect: faults.Fail{Code: code},
	})
	k.expected = append(k.expected, &expected{fmt.Sprintf("the failed %s of %s", verb, resource), i, times})
}

// Errors returns the log entries of level error: the message, and the field "err" or "error".
func (k *Kit) Errors() []string {
	var lines []string
	for _, e := range k.logs.All() {
		if e.Level < zapcore.ErrorLevel {
			continue
		}
		line := e.Message
		for _, field := range []string{"err", "error"} {
			if v, ok := e.ContextMap()[field]; ok {
				line += ": " + fmt.Sprint(v)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Logs returns the log entries of the program.
func (k *Kit) Logs() *observer.ObservedLogs { return k.logs }

// Requests counts the requests of a verb for a resource, or for a subresource such as "deployments.apps/status".
func (k *Kit) Requests(verb, resource string) (n int) {
	for _, r := range k.Server.Requests() {
		name := (api.Resource{Group: r.Group, Plural: r.Resource}).String()
		if r.Subresource != "" {
			name += "/" + r.Subresource
		}
		if r.Verb == verb && name == resource {
			n++
		}
	}
	return n
}
