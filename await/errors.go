package await

import (
	"fmt"
	"strings"

	"github.com/leatproject/leat/api"
)

// UnmetError is a wait that ended before its condition was met. errors.Is finds context.DeadlineExceeded or
// context.Canceled in it, and the last error of a server that never answered with a list.
type UnmetError struct {
	Resource api.Resource
	What     string // what was waited for: "condition Ready=True"
	Subject  string // of what: "pods default/web"

	// Listed says that there was a list, and Waiting are the objects that did not meet the condition, as they were last
	// seen: at least one, except for Until, which keeps no list of them.
	Listed  bool
	Waiting []Waiting

	Last error // the last thing that a list or a watch ended with, nil if none did
	Err  error // of the context
}

// mostNamed is how many objects the text of an error names.
const mostNamed = 3

// Error says what was waited for, why that ended, and how far it had come.
func (e *UnmetError) Error() string {
	return fmt.Sprintf("wait for %s of %s: %v; %s", e.What, e.Subject, e.Err, e.Progress())
}

// Progress says how far the wait had come: "still waiting for default/web (Ready=False)".
func (e *UnmetError) Progress() string {
	switch {
	case !e.Listed && e.Last != nil:
		return "nothing was seen of it, because of: " + e.Last.Error()
	case !e.Listed:
		return "the server has not answered"
	case len(e.Waiting) == 0:
		return "it was not met"
	}
	return "still waiting for " + List(e.Waiting)
}

// List names the first few objects of many, and counts the others.
func List(waiting []Waiting) string {
	var b strings.Builder
	for i, w := range waiting[:min(len(waiting), mostNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w.String())
	}
	if more := len(waiting) - mostNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// Unwrap returns the error of the context and, where there was no list, the reason.
func (e *UnmetError) Unwrap() []error {
	if e.Listed || e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}
