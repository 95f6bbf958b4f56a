package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// stepper holds the stages of the demonstration back. The methods of a nil stepper do nothing.
type stepper struct {
	ended <-chan struct{} // closed when the demonstration ends
	step  chan struct{}   // each value lets one stage go on

	mu      sync.Mutex    // guards the fields below
	resumed chan struct{} // closed when the stages need not wait any more; nil if they run
	slow    time.Duration // the pause of each stage
	waiting []string      // stages that wait
}

func newStepper(ended <-chan struct{}) *stepper {
	return &stepper{ended: ended, step: make(chan struct{})}
}

// wait blocks while the stages are paused, or for the time of slow motion. It returns when the demonstration ends.
func (s *stepper) wait(stage string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	resumed, slow := s.resumed, s.slow
	if resumed == nil && slow == 0 {
		s.mu.Unlock()
		return
	}
	s.waiting = append(s.waiting, stage)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.waiting, stage)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}()
	var over <-chan time.Time
	if resumed == nil {
		over = time.After(slow)
	}
	select {
	case <-s.step:
	case <-resumed:
	case <-over:
	case <-s.ended:
	}
}

// pause makes each stage wait for next or resume.
func (s *stepper) pause() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		s.resumed = make(chan struct{})
	}
	return "batches wait behind the cache, and keys before the reconciler"
}

// resume ends a pause, and sets the pause of each stage from now on.
func (s *stepper) resume(slow time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed != nil {
		close(s.resumed)
		s.resumed = nil
	}
	s.slow = slow
}

// next lets one stage go on, and says which ones waited.
func (s *stepper) next() string {
	s.mu.Lock()
	waited := strings.Join(s.waiting, ", ")
	s.mu.Unlock()
	if waited == "" {
		return "no stage waits"
	}
	select {
	case s.step <- struct{}{}:
		return fmt.Sprintf("one of these went on: %s", waited)
	default:
		return "no stage waits any more"
	}
}
