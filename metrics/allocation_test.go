package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/metrics"
)

// told keeps the functions that a member adds to a part.
type told struct {
	metrics.Controller // the other methods are not called
	metrics.Informer
	ended   func(controller.Reconciled)
	batches func(informer.TracedBatch)
	left    int
	stats   controller.Stats
	status  informer.Status
}

func (c *told) Stats() controller.Stats  { return c.stats }
func (c *told) Status() informer.Status  { return c.status }
func (c *told) Stopped() <-chan struct{} { return nil }

func (c *told) Name() string { return "told" }

func (c *told) Trace(t controller.Trace) func() {
	c.ended = t.Reconciled
	return func() { c.left++ }
}

// timed is a reconcile that has only times.
type timed struct {
	controller.Reconciled
	times controller.Times
}

func (t timed) Times() controller.Times { return t.times }

// toldInformer keeps the function of an informer.
type toldInformer struct{ *told }

func (c toldInformer) Trace(t informer.Trace) func() {
	c.batches = t.Batch
	return func() { c.left++ }
}

// hooks are the functions that are called between two scrapes.
func hooks(t *testing.T) map[string]func() {
	m, _ := registered(t)
	var c told
	shown(t)(m.Controller(&c))
	shown(t)(m.Informer("told", toldInformer{&c}))
	queue := m.QueueTimes("queue")
	slow := m.SlowPath("lock")
	now := time.Now()
	times := &timed{times: controller.Times{Received: now, Ready: now.Add(time.Millisecond), Started: now.Add(time.Second), Done: now.Add(time.Minute)}}
	request := apiclient.Request{Verb: "get", Method: "GET", Host: "server", Code: 200, Attempt: 2, Total: time.Second}
	return map[string]func(){
		"reconcile": func() { c.ended(times) },
		"batch":     func() { c.batches(informer.TracedBatch{Objects: 1, Received: now}) },
		"queue":     func() { queue.QueueDuration(time.Second, 0); queue.WorkDuration(time.Second) },
		"renewal":   slow,
		"request":   func() { m.OnRequest(request) },
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, hook := range hooks(t) {
		hook() // a native histogram allocates a bucket at its first value
		allocations := testing.AllocsPerRun(100, hook)
		if name == "request" {
			allocations-- // for the three digits of its code
		}
		require.Zero(t, allocations, name)
	}
}
