package history

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leatproject/leat/workqueue"
)

// perKey is the number of reconciles that a history keeps of each key.
const perKey = 4

// longError is the longest error text in a history, in bytes. Longer texts are cut.
const longError = 512

// Entry is a reconcile that has ended.
type Entry struct {
	ID                 [2]uint64
	Attempt            int
	Work               workqueue.Work[struct{}] // without the key
	Started            time.Time
	Took, RequeueAfter time.Duration
	Next               time.Time
	Outcome            string
	TimedOut, Failed   bool
	Err                string // the text of the error, if Failed
}

// History remembers the last reconciles of the keys that were reconciled last. The number of keys limits its memory,
// which it reuses. A nil History is empty.
type History[K comparable] struct {
	limit int // number of keys

	mu             sync.Mutex // guards the fields below
	keys           map[K]*past[K]
	newest, oldest *past[K]
}

// past has the remembered reconciles of one key.
type past[K comparable] struct {
	key          K
	entries      [perKey]Entry // a ring
	count        int           // number of reconciles since this key is remembered
	newer, older *past[K]
}

// New returns a history of so many keys. It returns nil if limit is not positive.
func New[K comparable](limit int) *History[K] {
	if limit <= 0 {
		return nil
	}
	return &History[K]{limit: limit, keys: map[K]*past[K]{}}
}

// Note remembers a reconcile of a key. It copies the causes.
func (h *History[K]) Note(key K, e *Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.open(key).next()
	causes := append(p.Work.Causes[:0], e.Work.Causes...)
	*p = *e
	p.Work.Causes = causes
}

// open makes the history of a key the newest one. A new key reuses the oldest one if the history is full.
func (h *History[K]) open(key K) *past[K] {
	if h.newest != nil && h.newest.key == key {
		return h.newest
	}
	p := h.keys[key]
	switch {
	case p != nil:
		h.unlink(p)
	case len(h.keys) < h.limit:
		p = &past[K]{key: key}
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

func (h *History[K]) unlink(p *past[K]) {
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

func (h *History[K]) lead(p *past[K]) {
	p.newer, p.older = nil, h.newest
	if h.newest == nil {
		h.oldest = p
	} else {
		h.newest.newer = p
	}
	h.newest = p
}

// begin reuses the struct for another key and drops all strings of the previous key.
func (p *past[K]) begin(key K) {
	for i := range p.entries {
		causes := p.entries[i].Work.Causes
		clear(causes[:cap(causes)])
		p.entries[i].Err = ""
	}
	p.key, p.count = key, 0
}

// next returns the entry for the next reconcile.
func (p *past[K]) next() *Entry {
	p.count++
	return &p.entries[p.count%perKey]
}

// Find returns the remembered reconciles of a key, newest first.
func (h *History[K]) Find(key K) []Entry {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[key].all()
}

// Match returns a key for which is returns true, with its reconciles. It looks at every key, which is fast enough for
// people. is runs under the lock, so it must not use the history.
func (h *History[K]) Match(is func(K) bool) (key K, all []Entry) {
	if h == nil {
		return key, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, p := range h.keys {
		if is(key) {
			return key, p.all()
		}
	}
	return key, nil
}

func (p *past[K]) all() (all []Entry) {
	if p == nil {
		return nil
	}
	for i := range min(p.count, perKey) {
		e := p.entries[(p.count-i)%perKey]
		e.Work.Causes = slices.Clone(e.Work.Causes)
		all = append(all, e)
	}
	return all
}

// ErrorText returns the beginning of an error's text, even if its Error method panics. The text is a copy, so that the
// history does not keep a larger string alive.
func ErrorText(err error) (text string) {
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
