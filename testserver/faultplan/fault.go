package faultplan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/internal/quote"
	"github.com/leatproject/leat/testserver/faults"
)

// Fault is a fault with its times. Its effect has no snapshot yet.
type Fault struct {
	faults.Fault
	Snapshot string        // the name of the snapshot of a stale or a restore; empty means the state at the injection
	After    time.Duration // the delay of the first injection
	For      time.Duration // the time until the removal; zero means until somebody removes it
	Every    time.Duration // the time between two injections; zero means that there is one

	text string
}

// String returns the text that Parse read, with one space between two words. It is empty for a fault that Parse did not
// return.
func (f Fault) String() string { return f.text }

var (
	verbs      = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	frameTypes = []watch.EventType{
		watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error, faults.InitialEventsEnd, faults.Item,
	}
)

// MaxText limits the text of one fault, in bytes. The body of an answer is the longest part.
const MaxText = 64 << 10

// Bounds of what an error quotes, in bytes.
const (
	maxQuote = 128
	maxError = 512
)

// Parse reads the text of one fault. An error quotes the beginning of a long text.
func Parse(text string) (Fault, error) {
	if len(text) > MaxText {
		return Fault{}, fmt.Errorf("fault %q: it has %d bytes; a fault has at most %d", quote.Short(text, maxQuote), len(text), MaxText)
	}
	f, err := parse(text)
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: %s", quote.Short(text, maxQuote), quote.Short(err.Error(), maxError))
	}
	return f, nil
}

func parse(text string) (Fault, error) {
	words, err := split(text)
	if err != nil {
		return Fault{}, err
	}
	f := Fault{text: strings.Join(words, " ")}
	for i, word := range words {
		if !strings.HasSuffix(word, ":") { // never a colon in quotes, because the quote comes after it
			continue
		}
		selecting := words[:i]
		if word != ":" {
			selecting = append(slices.Clone(selecting), strings.TrimSuffix(word, ":"))
		}
		if f.Match, err = parseMatch(selecting); err != nil {
			return Fault{}, err
		}
		words = words[i+1:]
		break
	}
	err = f.parseEffect(words)
	return f, err
}

// split returns the words of a text. A part of a word in double quotes may contain spaces.
func split(text string) ([]string, error) {
	var words []string
	start, quoted := -1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if start < 0 {
				start = i
			}
		case !quoted && (c == ' ' || c == '\t'):
			if start >= 0 {
				words, start = append(words, text[start:i]), -1
			}
		case !quoted && (c == '\n' || c == '\r'):
			return nil, errors.New("a fault is one line")
		case start < 0:
			start = i
		}
	}
	if quoted {
		return nil, errors.New("a double quote is not closed")
	}
	if start >= 0 {
		words = append(words, text[start:])
	}
	return words, nil
}

func parseMatch(words []string) (m faults.Match, err error) {
	for _, word := range words {
		if name, value, named := strings.Cut(word, "="); named {
			if value, err = unquote(value); err == nil {
				err = setMatch(&m, name, value)
			}
			if err != nil {
				return m, err
			}
			continue
		}
		if word == "*" {
			continue
		}
		if parts := strings.Split(word, ","); slices.Contains(verbs, parts[0]) && len(m.Verbs) == 0 && m.Resource == "" {
			for _, verb := range parts {
				if !slices.Contains(verbs, verb) {
					return m, fmt.Errorf("%q is not a verb; the verbs are %s", verb, strings.Join(verbs, ", "))
				}
			}
			m.Verbs = parts
			continue
		}
		if m.Resource != "" {
			return m, fmt.Errorf("%q and %q would be two resources; verbs come first and are %s", m.Resource, word, strings.Join(verbs, ", "))
		}
		if strings.ContainsAny(word, `",`) {
			return m, fmt.Errorf("%q is not a resource; write one, such as pods, deployments.apps or deployments.apps/status", word)
		}
		m.Resource = word
	}
	return m, nil
}

func setMatch(m *faults.Match, name, value string) error {
	if value == "" {
		return fmt.Errorf("%s= has no value", name)
	}
	var field *string
	switch name {
	case "namespace":
		field = &m.Namespace
	case "name":
		field = &m.Name
	case "agent":
		field = &m.UserAgent
	case "frames":
		if m.Frames != nil {
			return errors.New("frames= is repeated")
		}
		for _, text := range strings.Split(value, ",") {
			frame := watch.EventType(strings.ToUpper(text))
			if !slices.Contains(frameTypes, frame) {
				return fmt.Errorf("%q is not a frame; the frames are added, modified, deleted, bookmark, error, initial-events-end and item", text)
			}
			m.Frames = append(m.Frames, frame)
		}
		return nil
	default:
		return fmt.Errorf("%s= does not select anything; namespace, name, agent and frames do", name)
	}
	if *field != "" {
		return fmt.Errorf("%s= is repeated", name)
	}
	*field = value
	return nil
}

// unquote returns a value without its double quotes, if it has some.
func unquote(value string) (string, error) {
	if !strings.Contains(value, `"`) {
		return value, nil
	}
	text, err := strconv.Unquote(value)
	if err != nil || value[0] != '"' {
		return "", fmt.Errorf("%s is not a text in double quotes", value)
	}
	return text, nil
}

// check compares the effect with what the fault selects.
func (f *Fault) check(e kind) error {
	m := f.Match
	switch {
	case e.scope != frames && m.Frames != nil:
		return fmt.Errorf("frames= does not fit %s, which does not affect single frames", e.name)
	case e.scope == always && (f.Skip > 0 || f.Times > 0 || f.Probability > 0 || selects(m)):
		return fmt.Errorf("%s affects the whole server, so it takes neither a selection nor skip, times and N%%", e.name)
	case e.scope == watches && m.Verbs != nil && !slices.Equal(m.Verbs, []string{"watch"}):
		return fmt.Errorf("%s affects watches, so its verb is watch", e.name)
	case e.scope == frames && slices.Equal(m.Verbs, []string{"list"}) && m.Frames == nil:
		f.Match.Frames = []watch.EventType{faults.Item}
	}
	if e.scope == frames {
		for _, verb := range m.Verbs {
			if verb != "list" && verb != "watch" {
				return fmt.Errorf("%s affects frames of watches and items of lists, so its verbs are list and watch", e.name)
			}
		}
		if !e.items && slices.Contains(f.Match.Frames, faults.Item) {
			return fmt.Errorf("%s affects frames of watches, and no items of lists", e.name)
		}
	}
	switch {
	case f.Every > 0 && f.For >= f.Every:
		return errors.New("for= must be shorter than every=, or the fault never ends")
	case f.Every > 0 && f.For == 0 && !e.instant:
		return fmt.Errorf("every= needs for=, because %s lasts until it is removed", e.name)
	}
	return nil
}

// selects reports whether a match leaves anything out.
func selects(m faults.Match) bool {
	return m.Verbs != nil || m.Resource != "" || m.UserAgent != "" || m.Namespace != "" || m.Name != "" || m.Frames != nil
}
