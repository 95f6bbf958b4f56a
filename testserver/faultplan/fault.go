package faultplan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
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
	// A word never ends with a colon in quotes, because the quote comes after it.
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, ":") }); i >= 0 {
		selecting := slices.Clone(words[:i+1])
		if selecting[i] = strings.TrimSuffix(words[i], ":"); selecting[i] == "" {
			selecting = selecting[:i]
		}
		if f.Match, err = parseMatch(selecting); err != nil {
			return Fault{}, err
		}
		words = words[i+1:]
	}
	err = f.parseEffect(words)
	return f, err
}

// word matches a word. A part of it in double quotes may contain spaces.
var word = regexp.MustCompile(`(?s)([^ \t\r\n"]|"([^"\\]|\\.)*")+`)

// split returns the words of a text.
func split(text string) ([]string, error) {
	between := word.ReplaceAllLiteralString(text, "")
	switch {
	case strings.Contains(between, `"`):
		return nil, errors.New("a double quote is not closed")
	case strings.ContainsAny(between, "\r\n"):
		return nil, errors.New("a fault is one line")
	}
	return word.FindAllString(text, -1), nil
}

func parseMatch(words []string) (m faults.Match, err error) {
	a := newArguments("", words)
	m.Namespace, m.Name, m.UserAgent = a.text("namespace"), a.text("name"), a.text("agent")
	if list := a.text("frames"); list != "" {
		for _, text := range strings.Split(list, ",") {
			frame := watch.EventType(strings.ToUpper(text))
			if !slices.Contains(frameTypes, frame) {
				a.fail("%q is not a frame; the frames are added, modified, deleted, bookmark, error, initial-events-end and item", text)
			}
			m.Frames = append(m.Frames, frame)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.named)) {
		a.fail("%s= does not select anything; namespace, name, agent and frames do", name)
	}
	for _, word := range a.words {
		parts := strings.Split(word, ",")
		switch {
		case word == "*":
		case slices.Contains(verbs, parts[0]) && m.Verbs == nil && m.Resource == "":
			for _, verb := range parts {
				if !slices.Contains(verbs, verb) {
					a.fail("%q is not a verb; the verbs are %s", verb, strings.Join(verbs, ", "))
				}
			}
			m.Verbs = parts
		case m.Resource != "":
			a.fail("%q and %q would be two resources; verbs come first and are %s", m.Resource, word, strings.Join(verbs, ", "))
		case strings.ContainsAny(word, `",`):
			a.fail("%q is not a resource; write one, such as pods, deployments.apps or deployments.apps/status", word)
		default:
			m.Resource = word
		}
	}
	return m, a.err
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
