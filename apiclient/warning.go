package apiclient

import (
	"strings"
	"sync"
	"unicode"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Warning is what a server says beside an answer: that an API is deprecated, that a field is unknown or has no effect. It
// corresponds to the arguments of rest.WarningHandler of client-go.
type Warning struct {
	Code  int    // 299 from kube-apiserver: of no special kind, and as true tomorrow
	Agent string // who warns; "-" for the server itself
	Text  string // on one line, of 1,024 bytes at most
}

const (
	maxWarningText = 1 << 10
	maxWarnings    = 256 // that are remembered
)

// warnings hands each text to a handler once.
type warnings struct {
	handle func(Warning)

	mu   sync.Mutex // guards the fields below
	seen map[string]bool
	ring []string // what is in seen, in no more than maxWarnings places
	next int      // the place whose text is forgotten next
}

func newWarnings(handle func(Warning)) *warnings {
	if handle == nil {
		return nil
	}
	return &warnings{handle: handle, seen: map[string]bool{}}
}

// deliver hands on what is new in the headers of an answer (RFC 7234, 5.5). What cannot be read is left out with the rest
// of its header.
func (w *warnings) deliver(headers []string, clean func(string) string) {
	if w == nil || len(headers) == 0 {
		return
	}
	parsed, _ := utilnet.ParseWarningHeaders(headers)
	for _, p := range parsed {
		text := oneWarning(clean(p.Text))
		if text != "" && w.isNew(text) {
			w.handle(Warning{Code: p.Code, Agent: oneWarning(p.Agent), Text: text})
		}
	}
}

// isNew remembers a text, and forgets the oldest where there are too many.
func (w *warnings) isNew(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[text] {
		return false
	}
	if len(w.ring) < maxWarnings {
		w.ring = append(w.ring, text)
	} else {
		delete(w.seen, w.ring[w.next])
		w.ring[w.next] = text
		w.next = (w.next + 1) % maxWarnings
	}
	w.seen[text] = true
	return true
}

// oneWarning makes a text fit for a terminal and a log: no control characters, none that turn the direction of writing
// round, and not more than somebody reads.
func oneWarning(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	text = strings.TrimSpace(text)
	if len(text) > maxWarningText {
		text = strings.ToValidUTF8(text[:maxWarningText-len("…")], "") + "…"
	}
	return text
}
