package controller

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/workqueue"
)

// pastReconciles is the number of reconciles that a history keeps of each key.
const pastReconciles = 4

// longError is the longest error text in a history, in bytes. Longer texts are cut.
const longError = 512

// history remembers the last reconciles of the keys that were reconciled last. The number of keys limits its memory,
// which it reuses.
type history[K comparable] struct {
	limit int // number of keys; zero or less disables the history

	mu             sync.Mutex // guards the fields below
	keys           map[K]*keyHistory[K]
	newest, oldest *keyHistory[K]
}

// keyHistory holds the remembered reconciles of one key.
type keyHistory[K comparable] struct {
	key          K
	past         [pastReconciles]past // a ring
	count        int                  // number of reconciles since this key is remembered
	newer, older *keyHistory[K]
}

// past is a reconcile that has ended.
type past struct {
	id              [2]uint64
	number          int
	work            workqueue.Work[struct{}] // without the key; the causes are copies
	started         time.Time
	took, requeue   time.Duration
	next            time.Time
	outcome         Outcome
	failed, timeout bool
	err             string
}

// note records a reconcile that has returned.
func (h *history[K]) note(a *attempt[K], outcome Outcome, r Result, next time.Time, err error) {
	if h.limit <= 0 {
		return
	}
	text := errorText(err) // without the lock, because it is user code
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.open(a.work.Key).next()
	p.id, p.number, p.started, p.took = a.id, a.number, a.started, a.took
	p.outcome, p.timeout, p.failed, p.err = outcome, a.timedOut, err != nil, text
	p.requeue, p.next = r.after(outcome), next
	w := &p.work
	w.Causes = append(w.Causes[:0], a.work.Causes...)
	w.CausesOmitted, w.Priority, w.Added, w.Ready = a.work.CausesOmitted, a.work.Priority, a.work.Added, a.work.Ready
}

// open makes the history of a key the newest one. A new key reuses the oldest one if the history is full.
func (h *history[K]) open(key K) *keyHistory[K] {
	if h.newest != nil && h.newest.key == key {
		return h.newest
	}
	p := h.keys[key]
	switch {
	case p != nil:
		h.unlink(p)
	case len(h.keys) < h.limit:
		p = &keyHistory[K]{key: key}
		h.keys[key] = p
	default:
		p = h.oldest
		h.unlink(p)
		delete(h.keys, p.key)
		p.begin(key)
		h.keys[key] = p
	}
	h.lead(p)
	return p
}

func (h *history[K]) unlink(p *keyHistory[K]) {
	if p.newer == nil {
		h.newest = p.older
	} else {
		p.newer.older = p.older
	}
	if p.older == nil {
		h.oldest = p.newer
	} else {
		p.older.newer = p.newer
	}
}

func (h *history[K]) lead(p *keyHistory[K]) {
	p.newer, p.older = nil, h.newest
	if h.newest == nil {
		h.oldest = p
	} else {
		h.newest.newer = p
	}
	h.newest = p
}

// begin reuses the struct for another key and drops all strings of the previous key.
func (p *keyHistory[K]) begin(key K) {
	for i := range p.past {
		clear(p.past[i].work.Causes)
		p.past[i].err = ""
	}
	p.key, p.count = key, 0
}

// next returns the entry for the next reconcile.
func (p *keyHistory[K]) next() *past {
	p.count++
	return &p.past[p.count%pastReconciles]
}

// find returns the remembered reconciles of a key, newest first.
func (h *history[K]) find(controller string, key K) []Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.keys[key]; p != nil {
		return p.reports(controller)
	}
	return nil
}

// findText is find for a key in its text form. It looks at every key, which is fast enough for people.
func (h *history[K]) findText(controller, text string) []Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, p := range h.keys {
		if formatKey(key) == text {
			return p.reports(controller)
		}
	}
	return nil
}

func (p *keyHistory[K]) reports(controller string) []Report {
	var reports []Report
	for i := range min(p.count, pastReconciles) {
		reports = append(reports, p.past[(p.count-i)%pastReconciles].report(controller, formatKey(p.key)))
	}
	return reports
}

func (p *past) report(controller, key string) Report {
	r := Report{
		Controller: controller, Key: key, ID: formatID(p.id), Attempt: p.number, Priority: p.work.Priority,
		Causes: slices.Clone(p.work.Causes), CausesOmitted: p.work.CausesOmitted,
		Added: p.work.Added, Ready: p.work.Ready, Started: p.started, Took: p.took,
		Outcome: p.outcome, RequeueAfter: p.requeue, Next: p.next, TimedOut: p.timeout,
	}
	if p.failed {
		r.Err = errors.New(p.err)
	}
	return r
}

// errorText returns the beginning of an error's text, even if its Error method panics. The text is a copy, so that the
// history does not keep a larger string alive.
func errorText(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if p := recover(); p != nil {
			text = "an error whose Error method panics"
		}
	}()
	text = err.Error()
	if len(text) > longError {
		return strings.ToValidUTF8(text[:longError], "") + "…"
	}
	return strings.Clone(text)
}
