package call

import (
	"strings"
	"sync"
	"unicode"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Warning is a message of the server in the head of an answer.
type Warning struct {
	Code  int    // 299 from kube-apiserver: a persistent warning of no special kind
	Agent string // the sender; "-" for the server itself
	Text  string // one line of at most 1,024 bytes
}

const (
	maxWarningText = 1 << 10
	maxWarnings    = 256 // the number of texts that are remembered
)

// warnings calls a handler once for each text.
type warnings struct {
	handle func(Warning)

	mu   sync.Mutex // guards the fields below
	seen map[string]bool
	ring []string // the texts in seen; at most maxWarnings
	next int      // index of the text that is forgotten next
}

func newWarnings(handle func(Warning)) *warnings {
	if handle == nil {
		return nil
	}
	return &warnings{handle: handle, seen: map[string]bool{}}
}

// deliver calls the handler for the new warnings in the head of an answer (RFC 7234, 5.5). It skips the rest of a
// header that it cannot parse.
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

// isNew remembers a text. If there are too many, it forgets the oldest.
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

// oneWarning makes a text safe for terminals and logs: it removes control characters and characters that change the
// writing direction, and shortens the text.
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
