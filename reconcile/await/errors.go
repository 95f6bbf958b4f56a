package await

import (
	"fmt"
	"strings"

	"github.com/leatproject/leat/api"
)

// UnmetError reports that a wait ended before its condition was met. errors.Is finds context.DeadlineExceeded or
// context.Canceled in it. If the server never answered with a list, errors.Is also finds the server's last error.
type UnmetError struct {
	Resource api.Resource
	What     string // the condition: "condition Ready=True"
	Subject  string // the objects: "pods default/web"

	// Listed is true if there was a list. Then Waiting holds the objects that did not meet the condition, in their last
	// known state. It has at least one element, except after Until, which keeps no list of objects.
	Listed  bool
	Waiting []Waiting

	Last error // the last error of a list or watch, or nil
	Err  error // of the context
}

// mostNamed is the number of objects that an error text names.
const mostNamed = 3

// Error returns one line: the condition, the reason for the end, and the progress.
func (e *UnmetError) Error() string {
	return fmt.Sprintf("wait for %s of %s: %v; %s", e.What, e.Subject, e.Err, e.progress())
}

// progress returns "still waiting for default/web (Ready=False)", for example.
func (e *UnmetError) progress() string {
	switch {
	case !e.Listed && e.Last != nil:
		return "no list succeeded: " + e.Last.Error()
	case !e.Listed:
		return "the server has not answered"
	case len(e.Waiting) == 0:
		return "the condition was not met"
	}
	return "still waiting for " + list(e.Waiting)
}

// list names the first few objects and counts the others.
func list(waiting []Waiting) string {
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

// Unwrap returns the error of the context and, if there was no list, the server's last error.
func (e *UnmetError) Unwrap() []error {
	if e.Listed || e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}
