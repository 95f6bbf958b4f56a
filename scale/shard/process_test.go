package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/workqueue"
)

var errKilled = errors.New("the process is gone")

// process is a replica: a member, an informer and a controller, with its own clock. Late
// answers come one to eight seconds after the server has handled the request.
type process struct {
	*fixture.Process
	*shard.Member
	sim   *simulation
	id    int
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex // guards the field below
	leaving bool
}

// start starts a replica with the next of the rates.
func (s *simulation) start() *process {
	p := &process{
		Process: fixture.NewProcess(s.rates[len(s.all)%len(s.rates)]), sim: s, id: len(s.all), ended: make(chan struct{}),
	}
	s.all = append(s.all, p)
	// A stopped process does not reach the fence, and a request that passed the fence reaches the network at once.
	network := shard.Fence(fixture.RoundTripper(p.network))
	client, err := apiclient.New(apiclient.Config{Host: s.server.URL(), Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if !p.Wait() {
			return nil, errKilled
		}
		return network.RoundTrip(r)
	})})
	require.NoError(s.t, err)
	p.Member, err = shard.New(client, shard.Options{
		Namespace: "default", Group: "mill", Identity: fmt.Sprint("process-", p.id), Field: s.field,
		LeaseDuration: p.Local(nominalLease), RenewDeadline: p.Local(nominalDeadline), RetryPeriod: p.Local(nominalRetry),
		Logger: s.log,
	})
	require.NoError(s.t, err)
	configs := apiclient.NewTyped[*corev1.ConfigMap](client, maps, "")
	cached := informer.New(configs, informer.Options[*corev1.ConfigMap]{})
	kind := shard.For(p.Member, cached)
	c := controller.New("mill", kind.Reconciler(&miller{p, configs, cached}), controller.Options{
		Workers: 4, Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Second, Max: 20 * time.Second}}, CacheSyncTimeout: -1,
	})
	c.Watch(kind.Source())
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		defer close(p.ended)
		var parts sync.WaitGroup
		for _, run := range []func(context.Context) error{p.Run, cached.Run, c.Run} {
			parts.Go(func() { require.NoError(s.t, run(ctx)) })
		}
		parts.Wait()
		client.CloseIdleConnections()
	}()
	return p
}

// miller reconciles a ConfigMap: it says that it begins, works for a while, and says that it is done. Its patches have
// no resource version, so the server accepts all of them. It does not look at its context. An object that is deleted
// meanwhile needs no patch.
type miller struct {
	process *process
	configs *apiclient.TypedClient[*corev1.ConfigMap]
	cache   *informer.Informer[*corev1.ConfigMap]
}

// Reconcile implements controller.Reconciler.
func (m *miller) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	config, found := m.cache.Snapshot().Get(key)
	acquired := slices.ContainsFunc(controller.Causes(ctx), func(c workqueue.Cause) bool { return c.Event == "acquired" })
	if !found {
		m.process.sim.noteGone(key.Name)
		return controller.Result{}, nil
	}
	if config.Data["done"] == config.Data["want"] && !acquired {
		return controller.Result{}, nil
	}
	work := m.process.sim.newWork(m.process)
	if err := m.say(ctx, key, fmt.Sprintf(`{"data":{"work":%q}}`, work)); err != nil {
		return controller.Result{}, err
	}
	<-time.After(m.process.sim.workTime())
	return controller.Result{}, m.say(ctx, key, fmt.Sprintf(`{"data":{"work":%q,"done":%q}}`, work, config.Data["want"]))
}

func (m *miller) say(ctx context.Context, key api.Key, patch string) error {
	_, err := m.configs.Patch(ctx, key, apiclient.Patch{Type: types.MergePatchType, Data: []byte(patch)}, apiclient.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// leave ends the process as a supervisor does.
func (p *process) leave() {
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.stop()
}

// gone reports whether the process does not take part any more.
func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, _ := p.Current()
	return p.leaving || c == fixture.Killed
}

// end ends the process, and kills it if it does not end.
func (p *process) end() {
	p.stop()
	select {
	case <-p.ended:
	case <-time.After(5 * time.Minute):
		p.sim.problem("process %d does not end: %+v", p.id, p.Status())
		p.Set(fixture.Killed)
		<-p.ended
	}
}

// network carries a request to the server and the answer back.
func (p *process) network(r *http.Request) (*http.Response, error) {
	if err := p.waitForNetwork(r.Context()); err != nil {
		return nil, err
	}
	isLease := strings.Contains(r.URL.Path, "/leases")
	if isLease && r.Body != nil {
		body, err := p.rewrite(r.Body, p.Local(nominalLease), nominalLease)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	answer, err := p.sim.transport.RoundTrip(r)
	if err != nil || r.URL.Query().Get("watch") != "" || !isLease && r.Method == http.MethodGet {
		return answer, err
	}
	body, err := p.rewrite(answer.Body, nominalLease, p.Local(nominalLease))
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodPatch && answer.StatusCode == http.StatusOK {
		p.sim.note(body)
	}
	if c, _ := p.Current(); c == fixture.Late {
		select {
		case <-time.After(time.Duration(p.sim.number(1000, 8000)) * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	if err := p.waitForNetwork(r.Context()); err != nil {
		return nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// waitForNetwork waits until the process is neither stopped nor disconnected.
func (p *process) waitForNetwork(ctx context.Context) error {
	for disconnected := false; ; {
		c, changed := p.Current()
		switch {
		case c == fixture.Killed:
			return errKilled
		case ctx.Err() != nil:
			return ctx.Err()
		case c == fixture.Stopped && disconnected:
			return errors.New("the connection was lost while the process was stopped")
		case c == fixture.Stopped:
			<-changed
		case c == fixture.CutOff:
			disconnected = true
			select {
			case <-changed:
			case <-ctx.Done():
			}
		default:
			return nil
		}
	}
}

// rewrite reads and closes a body, and replaces the duration of Leases. Each clock measures a nominal duration.
func (p *process) rewrite(body io.ReadCloser, from, to time.Duration) ([]byte, error) {
	content, err := io.ReadAll(body)
	const field = `"leaseDurationSeconds":%.0f`
	content = bytes.ReplaceAll(content, fmt.Appendf(nil, field, from.Seconds()), fmt.Appendf(nil, field, to.Seconds()))
	return content, errors.Join(err, body.Close())
}
