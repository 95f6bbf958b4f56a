package subject

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/bench/measure"
)

const (
	producers = 4
	consumers = 4
	waiting   = 1_000_000 // delayed keys in the queue while others are added
)

func keys(n int) []Key {
	made := make([]Key, n)
	for i := range made {
		made[i] = Key{Namespace: "default", Name: fmt.Sprintf("web-6b7f9c5d4-%07d", i)}
	}
	return made
}

// timed measures a function that does n operations.
func (w *worker) timed(n int, f func()) error {
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	before := measure.Now()
	f()
	spent := measure.Now().Since(before)
	stopProfile()
	w.set("ns/op", float64(spent.Wall)/float64(n))
	w.set("cpu ns/op", float64(spent.CPU)/float64(n))
	w.set("allocs/op", spent.Allocs/float64(n))
	w.set("B/op", spent.Bytes/float64(n))
	return nil
}

func (w *worker) newQueue() (Keys, error) {
	if w.library.Queue == nil {
		return nil, ErrUnsupported
	}
	return w.library.Queue(), nil
}

// queue measures Add, Get and Done on one goroutine.
func (w *worker) queue(context.Context) error {
	q, err := w.newQueue()
	if err != nil {
		return err
	}
	some := keys(64)
	round := func(n int) {
		for i := range n {
			q.Add(some[i%len(some)])
			key, _ := q.Get()
			q.Done(key)
		}
	}
	round(len(some)) // the first add of each key may allocate
	err = w.timed(w.spec.Events, func() { round(w.spec.Events) })
	q.ShutDown()
	return err
}

// queueLimited measures a failure and its Forget, without the delay.
func (w *worker) queueLimited(context.Context) error {
	q, err := w.newQueue()
	if err != nil {
		return err
	}
	some := keys(w.spec.Events)
	err = w.timed(w.spec.Events, func() {
		for _, key := range some {
			q.AddRateLimited(key)
			q.Forget(key)
		}
	})
	q.ShutDown()
	return err
}

func (w *worker) queueContended(context.Context) error {
	return w.contended(func(q Keys, key Key, _ int) { q.Add(key) })
}

func (w *worker) queuePriorities(context.Context) error {
	return w.contended(func(q Keys, key Key, i int) { q.AddPriority(key, i%3) })
}

// contended counts Done calls. Every key is added once.
func (w *worker) contended(add func(q Keys, key Key, i int)) error {
	q, err := w.newQueue()
	if err != nil {
		return err
	}
	all := keys(w.spec.Events)
	return w.timed(len(all), func() {
		var producing, consuming sync.WaitGroup
		var done atomic.Int64
		for p := range producers {
			producing.Go(func() {
				for i := p; i < len(all); i += producers {
					add(q, all[i], i)
				}
			})
		}
		for range consumers {
			consuming.Go(func() {
				for {
					key, more := q.Get()
					if !more {
						return
					}
					q.Done(key)
					if done.Add(1) == int64(len(all)) {
						q.ShutDown()
					}
				}
			})
		}
		producing.Wait()
		consuming.Wait()
	})
}

// queueDelayed measures AddAfter while a million keys are delayed.
func (w *worker) queueDelayed(context.Context) error {
	q, err := w.newQueue()
	if err != nil {
		return err
	}
	all := keys(waiting + w.spec.Events)
	for i, key := range all[:waiting] {
		q.AddAfter(key, 3600+i*7919%3600)
	}
	more := all[waiting:]
	err = w.timed(len(more), func() {
		for i, key := range more {
			q.AddAfter(key, 3600+i*7919%3600)
		}
	})
	q.ShutDown()
	return err
}
