package livepage

import (
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

// patience is how long a page without a request counts as looked at. A browser asks every second, and less often for a
// tab in the background.
const patience = 15 * time.Second

// viewer knows whether somebody looks. Only then are batches and reconciles measured. It needs no goroutine: a request
// attaches the hooks, and a timer detaches them. The lock of the page guards it.
type viewer struct {
	page     *Page
	looks    bool
	lookedAt time.Time
	timer    *time.Timer
}

// look notes a request. The caller holds the lock of the page.
func (v *viewer) look() {
	v.lookedAt = time.Now()
	if v.looks {
		v.timer.Reset(patience)
		return
	}
	v.looks = true
	for _, s := range v.page.informers {
		s.attach()
	}
	for _, s := range v.page.controllers {
		s.attach()
	}
	v.timer = time.AfterFunc(patience, v.leave)
}

// leave ends the measurements, unless a request came while the timer fired.
func (v *viewer) leave() {
	v.page.mu.Lock()
	defer v.page.mu.Unlock()
	if time.Since(v.lookedAt) < patience {
		return // look has set the timer again
	}
	v.looks = false
	for _, s := range v.page.informers {
		s.detach()
	}
	for _, s := range v.page.controllers {
		s.detach()
	}
}

// shownInformer is an informer on the page. The lock of the page guards stop.
type shownInformer struct {
	name      string
	informer  informer.Any
	transient bool // belongs to a factory, and is forgotten when it has stopped

	batches batchCounts
	sizes   atomic.Pointer[sizes] // the last sample
	stop    func()                // ends the measurement; nil without a viewer
}

func (s *shownInformer) attach() {
	if s.stop == nil {
		s.stop = s.informer.Trace(informer.Trace{Batch: s.batches.add})
	}
}

func (s *shownInformer) detach() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// shownController is a controller on the page. The lock of the page guards stop.
type shownController struct {
	name       string
	controller reconciling

	times stageTimes
	stop  func()
}

func (s *shownController) attach() {
	measured, ok := s.controller.(interface {
		Trace(t controller.Trace) (stop func())
	})
	if ok && s.stop == nil {
		s.stop = measured.Trace(controller.Trace{Reconciled: s.times.add})
	}
}

func (s *shownController) detach() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}
