package soak_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/reconcile/owner"
	"github.com/leatproject/leat/workqueue"
)

// renewDeadline is short because a round is.
const renewDeadline = 3 * time.Second

// replica is one process of a program that has two, as far as one can be had inside another process.
type replica struct {
	soak       *soak
	name       string
	line       line
	client     *apiclient.Client
	mills      *cachedclient.Typed[*widget]
	parts      *cachedclient.Typed[*widget]
	byMill     *cache.Index[*widget, string]
	recorder   *events.Recorder
	controller *controller.Controller[api.Key]
	elector    *leaderelection.Elector
	admin      net.Listener
	stop       context.CancelFunc
	done       chan struct{} // closed when Run has returned, with err
	err        error
}

// newReplica starts a replica.
func (s *soak) newReplica(index int) *replica {
	s.generation++
	r := &replica{soak: s, name: fmt.Sprintf("replica-%d-%d", index, s.generation), done: make(chan struct{})}
	r.client = s.client(r.line.dial, index)
	r.elector = must.Get(leaderelection.New(r.client, leaderelection.Options{
		Namespace: "default", Name: "soak", Identity: r.name, Logger: s.log.Named(r.name),
		LeaseDuration: 4 * time.Second, RenewDeadline: renewDeadline, RetryPeriod: 200 * time.Millisecond,
	}))(s)
	r.admin = must.Get(net.Listen("tcp", "127.0.0.1:0"))(s)
	p := must.Get(program.New(program.Options{
		Name: "soak", Client: r.client, Logger: s.log.Named(r.name), Registry: prometheus.NewRegistry(),
		Controller: controller.Options{
			Workers: 4, ReconcileTimeout: 2 * time.Second,
			Queue: workqueue.Options{Backoff: workqueue.Backoff{Max: time.Second}, Bucket: workqueue.Bucket{QPS: -1}},
		},
		Manager: manager.Options{Elector: r.elector, Admin: manager.AdminOptions{Listener: r.admin, Debug: true}},
	}))(s)
	r.mills, r.parts = cached(r, p, mills, true), cached(r, p, parts, false)
	r.byMill = informer.AddIndex(r.parts.Informer(), func(p *widget) []string {
		if o := metav1.GetControllerOf(p); o != nil {
			return []string{p.Namespace + "/" + o.Name}
		}
		return nil
	})
	r.recorder = p.Recorder()
	gate := cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Second, Logger: p.Logger})
	must.Get(p.Metrics.Gate("mills", gate))(s)
	r.controller = program.Controller(p, "mills", controller.Gated(r, gate),
		controller.For(r.mills.Informer()), controller.Owns(r.mills.Informer(), r.parts.Informer()))
	require.NoError(s, p.Err())
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.done)
		r.err = p.Run(ctx)
		r.client.CloseIdleConnections()
	}()
	return r
}

// cached returns a cached client.
func cached(r *replica, p *program.Program, resource api.Resource, overlay bool) *cachedclient.Typed[*widget] {
	live := apiclient.NewTyped[*widget](r.client, resource, "")
	share := must.Get(factory.Shared(p.Informers, apiclient.NewPartial[*widget](r.client, resource, ""), informerOptions(nil)))(r.soak)
	return cachedclient.NewTyped(live, share.Informer, cachedclient.Options{Overlay: overlay})
}

// Reconcile makes the parts of a mill as many as it wants, and writes into its status for which generation they are
// there. It panics, fails or lingers now and then.
func (r *replica) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	if !r.soak.quiet.Load() {
		switch rand.IntN(40) {
		case 0:
			panic("soak: a bug in a reconciler")
		case 1, 2:
			return controller.Result{}, errors.New("soak: no luck")
		case 3:
			select {
			case <-time.After(rand.N(300 * time.Millisecond)):
			case <-ctx.Done():
			}
		}
	}
	owned, err := r.parts.List(ctx, cachedclient.ListOptions{}, cachedclient.By(r.byMill, key.String()))
	if err != nil {
		return controller.Result{}, err
	}
	wanted, err := r.mills.Get(ctx, key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, r.remove(ctx, owned.Items)
	}
	if err != nil {
		return controller.Result{}, err
	}
	if err := r.adjust(ctx, wanted, owned.Items); err != nil {
		r.recorder.Warning(mills, wanted, "Failed", "%v", err)
		return controller.Result{}, err
	}
	_, _, err = r.mills.ChangeStatus(ctx, key, func(o *widget) error {
		o.Status.Ready = int(wanted.Generation)
		return nil
	})
	return controller.Result{}, err
}

// adjust deletes the parts that are too many, and those of a former mill of the same name. It creates those that are
// missing.
func (r *replica) adjust(ctx context.Context, wanted *widget, owned []*widget) error {
	missing := map[string]bool{}
	for n := range wanted.Spec.Size {
		missing[fmt.Sprintf("%s-%d", wanted.Name, n)] = true
	}
	var surplus []*widget
	for _, p := range owned {
		if missing[p.Name] && owner.Controls(wanted, p) {
			delete(missing, p.Name)
		} else {
			surplus = append(surplus, p)
		}
	}
	if err := r.remove(ctx, surplus); err != nil {
		return err
	}
	for name := range missing {
		p := fixture.Named(wanted.Namespace, name)
		if err := owner.SetController(wanted, mills, p); err != nil {
			return err
		}
		if _, err := r.parts.Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
		r.recorder.Normal(mills, wanted, "Created", "part %s", name)
	}
	return nil
}

func (r *replica) remove(ctx context.Context, surplus []*widget) error {
	var failed error
	for _, p := range surplus {
		err := r.parts.Delete(ctx, api.KeyOf(p), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// end waits until the replica has stopped. A lost lease is no failure: the soak takes leases away, and so does a busy
// machine.
func (r *replica) end() error {
	<-r.done
	if errors.Is(r.err, leaderelection.ErrLost) {
		return nil
	}
	return r.err
}

// restart stops the replica and waits until it has stopped.
func (r *replica) restart() error {
	r.stop()
	return r.end()
}

// cutOff takes the network from the replica. A leader stops by itself after the renew deadline; any other is stopped
// then.
func (r *replica) cutOff() error {
	r.line.cutOff()
	select {
	case <-r.done:
	case <-time.After(renewDeadline + time.Second):
	}
	return r.restart()
}

// scrape reads the metrics, as Prometheus would.
func (r *replica) scrape() error {
	t := &http.Transport{DisableKeepAlives: true}
	defer t.CloseIdleConnections()
	answer, err := (&http.Client{Transport: t}).Get("http://" + r.admin.Addr().String() + "/metrics")
	if err != nil {
		return fmt.Errorf("soak: metrics of %s: %w", r.name, err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

// hasEnded reports whether Run has returned.
func (r *replica) hasEnded() bool { return runstate.IsClosed(r.done) }

// line is the network between a replica and the server. It can be cut.
type line struct {
	mu    sync.Mutex // guards the fields below
	cut   bool
	conns []net.Conn // all that were opened; a replica lives for two rounds
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, errors.Join(&net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}, conn.Close())
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

// cutOff cuts the connections that are open, and refuses others.
func (l *line) cutOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		_ = c.Close() // what was closed meanwhile is cut as well
	}
}
